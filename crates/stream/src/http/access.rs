//! Access control: requests need the token, and must not come from a page of another origin.

use super::Server;
use super::refusal::Refusal;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use subtle::ConstantTimeEq;

pub(super) async fn check(State(server): State<Server>, request: Request, next: Next) -> Response {
    match refusal(&server, &request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(server: &Server, request: &Request) -> Option<Refusal> {
    let headers = request.headers();
    let open = server.options.token.is_none();
    if !request.method().is_safe() && is_of_another_origin(headers, open) {
        return Some(Refusal::new(
            StatusCode::FORBIDDEN,
            "origin",
            "a page of another origin may not change anything here",
        ));
    }
    let token = server.options.token.as_deref()?;
    let given = given(headers).unwrap_or_default();
    if bool::from(given.as_bytes().ct_eq(token.as_bytes())) {
        return None;
    }
    Some(Refusal::new(
        StatusCode::UNAUTHORIZED,
        "token",
        "give the token: `Authorization: Bearer TOKEN`, `Token TOKEN`, or as the password of `Basic`",
    ))
}

/// True if a browser sends the request for a page of another origin. Programs send no origin.
///
/// `open` means that no token is required. The owner of a name can point it at any address, so a page that was loaded
/// under a name counts as local only if a token is required.
fn is_of_another_origin(headers: &HeaderMap, open: bool) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"));
    match (origin, host) {
        (Some((_, authority)), Some(host)) => {
            !authority.eq_ignore_ascii_case(host) || (open && !is_address(host))
        }
        _ => true,
    }
}

/// True if a host is an IP address or `localhost`, with or without a port.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

/// Returns the token of a request. InfluxDB 1 clients send it as a password.
fn given(headers: &HeaderMap) -> Option<String> {
    let (scheme, given) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let given = given.trim();
    if scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token") {
        return Some(given.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let login = String::from_utf8(BASE64_STANDARD.decode(given).ok()?).ok()?;
    Some(login.split_once(':')?.1.to_owned())
}
