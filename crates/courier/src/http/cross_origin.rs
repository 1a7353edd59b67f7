//! Cross-origin requests (CORS) from the pages of origins that the node allows.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The methods that pages of other origins may use.
const METHODS: &str = "GET, POST, PUT, DELETE";
const HEADERS: &str = "authorization, content-type, idempotency-key, registration-token";
/// The headers that pages of other origins may read.
const EXPOSED: &str = "retry-after, courier-behind";
/// The time in seconds for which a browser may cache the answer to a preflight request.
const AGE: &str = "600";

/// Answers preflight requests of browsers, and lets pages of allowed origins read answers.
pub(super) async fn answer(
    State(origins): State<Arc<[String]>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(origin) = allowed(request.headers(), &origins) else {
        return next.run(request).await;
    };
    let asks = header::ACCESS_CONTROL_REQUEST_METHOD;
    let mut response =
        match request.method() == Method::OPTIONS && request.headers().contains_key(asks) {
            true => {
                let told = [
                    (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                    (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
                    (header::ACCESS_CONTROL_MAX_AGE, AGE),
                ];
                (StatusCode::NO_CONTENT, told).into_response()
            }
            false => next.run(request).await,
        };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static(EXPOSED);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}

/// Returns the origin of a request, if it is one of `origins`.
fn allowed(headers: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    let known = origins.iter().any(|one| one.eq_ignore_ascii_case(text));
    known.then(|| origin.clone())
}
