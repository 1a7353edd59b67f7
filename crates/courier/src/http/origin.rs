//! The allowed origins of WebSockets.
//!
//! A browser sends the origin of the page that opens a socket. Without this check, any page on the web could open a
//! socket in the name of its visitor. Clients other than browsers send no origin and are allowed.

use axum::http::{HeaderMap, header};

/// True if a socket may be opened: the request has no origin, or its origin is the requested host or one of
/// `allowed`.
pub(crate) fn allows(headers: &HeaderMap, allowed: &[String]) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else {
        return true;
    };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else {
        return false;
    };
    if allowed.iter().any(|one| one.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let place = ["http://", "https://"]
        .iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    match (place, host) {
        (Some(place), Some(host)) => place.eq_ignore_ascii_case(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_pages_may_connect() {
        let check = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "chat.example:8080".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            allows(&headers, &["https://app.example".to_owned()])
        };
        assert!(check(None));
        assert!(check(Some("http://chat.example:8080")));
        assert!(check(Some("https://APP.example")));
        for wrong in [
            "",
            "null",
            "https://evil.example",
            "http://chat.example",
            "http://chat.example:8080.evil.example",
            "chat.example:8080",
        ] {
            assert!(!check(Some(wrong)), "{wrong}");
        }
    }
}
