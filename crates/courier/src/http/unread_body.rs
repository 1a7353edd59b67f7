//! The rest of a request that was refused before its body was read.
//!
//! The connection can be used again only when the body has been read. If the rest is short, it is read and dropped
//! before the answer. If the rest is long or late, the answer says that the connection closes, and the rest is dropped
//! after the answer. Without this, a client that sends its whole body before it reads would see a broken connection
//! instead of the answer.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The maximum bytes that are dropped before the answer, and the time limit for dropping them.
const SHORT: usize = 64 << 10;
const SHORT_TIME: Duration = Duration::from_secs(1);
/// The maximum bytes that are dropped after the answer, and the time limit for dropping them.
const LONG: usize = 256 << 20;
const LONG_TIME: Duration = Duration::from_secs(30);

/// A body that can still be read after its request was dropped.
#[derive(Clone)]
pub(super) struct Remaining(Arc<Mutex<Incoming>>);

impl HttpBody for Remaining {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}

/// Separates a request from its body, if there is one.
pub(super) fn keep(request: Request<Incoming>) -> (Request<Body>, Option<Remaining>) {
    if request.body().is_end_stream() || expects_leave(request.headers()) {
        return (request.map(Body::new), None);
    }
    let (parts, body) = request.into_parts();
    let rest = Remaining(Arc::new(Mutex::new(body)));
    (
        Request::from_parts(parts, Body::new(rest.clone())),
        Some(rest),
    )
}

/// True if the client waits for `100 Continue` before it sends its body.
fn expects_leave(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

/// Drops the rest of a body. A long rest is dropped after the answer, which says that the connection closes.
pub(super) async fn finish(rest: Option<Remaining>, answer: &mut Response<Body>) {
    let Some(mut rest) = rest else { return };
    if discard(&mut rest, SHORT, SHORT_TIME).await {
        return;
    }
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(header::CONNECTION, close);
    tokio::spawn(async move { discard(&mut rest, LONG, LONG_TIME).await });
}

/// Drops a body. Returns false if it is too long, takes too long or is incomplete.
async fn discard(rest: &mut Remaining, bytes: usize, time: Duration) -> bool {
    let read = async {
        let mut left = bytes;
        while let Some(frame) = rest.frame().await {
            let length = frame.ok()?.data_ref().map_or(0, Bytes::len);
            left = left.checked_sub(length)?;
        }
        Some(())
    };
    matches!(tokio::time::timeout(time, read).await, Ok(Some(())))
}
