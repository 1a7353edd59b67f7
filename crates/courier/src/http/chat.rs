//! The chat page: files that are part of the program, and cannot load anything else.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};

/// The content security policy of the page: its own scripts and styles, and requests to its origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns the routes of the page and its resources.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let scripts = [
        ("/page/app.js", include_str!("../page/app.js")),
        ("/page/api.js", include_str!("../page/api.js")),
        ("/page/chat.js", include_str!("../page/chat.js")),
        ("/page/dom.js", include_str!("../page/dom.js")),
        ("/page/messages.js", include_str!("../page/messages.js")),
        ("/page/outbox.js", include_str!("../page/outbox.js")),
        ("/page/socket.js", include_str!("../page/socket.js")),
        ("/page/storage.js", include_str!("../page/storage.js")),
    ];
    let page = Router::new()
        .route("/", file(HTML, include_str!("../page/index.html")))
        .route(
            "/page/style.css",
            file(CSS, include_str!("../page/style.css")),
        );
    scripts.into_iter().fold(page, |page, (path, script)| {
        page.route(path, file(SCRIPT, script))
    })
}

fn file<S: Clone + Send + Sync + 'static>(
    kind: &'static str,
    content: &'static str,
) -> MethodRouter<S> {
    get(move || async move {
        let headers: [(HeaderName, HeaderValue); 6] = [
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::from_static(POLICY),
            ),
            (
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            ),
            (
                header::REFERRER_POLICY,
                HeaderValue::from_static("no-referrer"),
            ),
            (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            // An upgraded node may serve another page, so browsers must ask each time.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (headers, content).into_response()
    })
}
