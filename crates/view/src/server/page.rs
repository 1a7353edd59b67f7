//! The files of the page, which are part of the program, and their security headers.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The content security policy: only resources of this server may be loaded.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The type and the text of a file.
pub(super) type File = (&'static str, &'static str);

macro_rules! files {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../page/", $name)))),*] };
}

/// The files by name.
const FILES: [(&str, &str); 25] = files! {
    "index.html" "style.css" "actions.js" "app.js" "arrange.js" "charts.js" "connect.js" "controls.js" "dom.js" "edges.js"
    "find.js" "geometry.js" "gestures.js" "graph.js" "guide.js" "hover.js" "labels.js" "layers.js" "measured.js" "node.js"
    "numbers.js" "panels.js" "past.js" "socket.js" "traces.js"
};

/// Returns the file with this name.
pub(super) fn file(name: &str) -> Option<File> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    let kind = match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => "text/javascript; charset=utf-8",
    };
    Some((kind, text))
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
