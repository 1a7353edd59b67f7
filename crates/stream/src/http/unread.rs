//! Request bodies that a handler has not read completely.
//!
//! A client that sends its whole body before it reads the answer never sees the answer if the server closes the
//! connection first. So the rest of a body is read and dropped before the answer is sent, within limits of time and
//! bytes. Beyond these limits the answer says that the connection closes, because the start of the next request is
//! unknown.

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, EXPECT};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// The maximum number of bytes of a body that are dropped, and the time limit for that.
const DROPPED: usize = 256 << 20;
const DROPPING: Duration = Duration::from_secs(10);

pub(super) async fn close(request: Request, next: Next) -> Response {
    // A client that waits for `100 Continue` does not send its body.
    let waits = request.headers().contains_key(EXPECT);
    let unread = Arc::new(Mutex::new(Body::empty()));
    let request = request.map(|body| {
        *unread.lock() = body;
        Body::new(ReclaimableBody(unread.clone()))
    });
    let mut response = next.run(request).await;
    let mut body = std::mem::take(&mut *unread.lock());
    if body.is_end_stream() {
        return response;
    }
    let dropped = !waits && timeout(DROPPING, drop_rest(&mut body)).await == Ok(true);
    if !dropped {
        // The connection closes when this body is dropped.
        *unread.lock() = body;
    }
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Reads a body to its end. False if it is too long or incomplete.
async fn drop_rest(body: &mut Body) -> bool {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > DROPPED {
            return false;
        }
    }
    true
}

/// A body that can be taken back from a handler that does not read it.
struct ReclaimableBody(Arc<Mutex<Body>>);

impl hyper::body::Body for ReclaimableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}
