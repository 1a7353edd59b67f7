//! The files of the page, which are part of the program, and their security headers.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The content security policy: only resources of this server may be loaded.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The type and the text of a file.
pub(super) type File = (&'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns the file with this name.
pub(super) fn file(name: &str) -> Option<File> {
    Some(match name {
        "index.html" => (
            "text/html; charset=utf-8",
            include_str!("../page/index.html"),
        ),
        "style.css" => ("text/css; charset=utf-8", include_str!("../page/style.css")),
        "actions.js" => (SCRIPT, include_str!("../page/actions.js")),
        "arrange.js" => (SCRIPT, include_str!("../page/arrange.js")),
        "geometry.js" => (SCRIPT, include_str!("../page/geometry.js")),
        "gestures.js" => (SCRIPT, include_str!("../page/gestures.js")),
        "guide.js" => (SCRIPT, include_str!("../page/guide.js")),
        "hover.js" => (SCRIPT, include_str!("../page/hover.js")),
        "labels.js" => (SCRIPT, include_str!("../page/labels.js")),
        "numbers.js" => (SCRIPT, include_str!("../page/numbers.js")),
        "app.js" => (SCRIPT, include_str!("../page/app.js")),
        "connect.js" => (SCRIPT, include_str!("../page/connect.js")),
        "socket.js" => (SCRIPT, include_str!("../page/socket.js")),
        "edges.js" => (SCRIPT, include_str!("../page/edges.js")),
        "graph.js" => (SCRIPT, include_str!("../page/graph.js")),
        "charts.js" => (SCRIPT, include_str!("../page/charts.js")),
        "node.js" => (SCRIPT, include_str!("../page/node.js")),
        "panels.js" => (SCRIPT, include_str!("../page/panels.js")),
        "past.js" => (SCRIPT, include_str!("../page/past.js")),
        "traces.js" => (SCRIPT, include_str!("../page/traces.js")),
        _ => return None,
    })
}

pub(super) fn answer((kind, text): File) -> Response {
    let mut response = text.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
