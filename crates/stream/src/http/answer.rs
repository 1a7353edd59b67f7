//! Sends long answers. They are created one at a time, and the memory of the answers that are being sent is bounded.

use super::memory::kibibytes;
use super::refusal::{Refusal, internal};
use super::{HttpOptions, Server};
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// The number of bytes that are sent at a time.
const PIECE: usize = 64 << 10;

/// Returns the number of permits for an answer of this length, at most all permits.
pub(super) fn permits(bytes: usize, options: &HttpOptions) -> usize {
    kibibytes(bytes.min(options.answer_memory)).max(1)
}

/// Sends an answer that may be long. Waits until other long answers have been sent; answers 503 if
/// that takes too long.
pub(super) async fn long(
    server: &Server,
    kind: &'static str,
    make: impl FnOnce() -> Vec<u8> + Send + 'static,
) -> Result<Response, Refusal> {
    let patience = server.engine.options().patience;
    let making = timeout(patience, server.making.clone().acquire_owned());
    let Ok(Ok(_making)) = making.await else {
        return Err(busy());
    };
    let made = tokio::task::spawn_blocking(make).await;
    let rest = Bytes::from(made.map_err(|_| internal())?);
    let permits = permits(rest.len(), &server.options);
    let permits = u32::try_from(permits).unwrap_or(u32::MAX);
    let sending = timeout(patience, server.answers.clone().acquire_many_owned(permits));
    let Ok(Ok(sending)) = sending.await else {
        return Err(busy());
    };
    let answer = Answer {
        rest,
        _sending: sending,
    };
    Ok(([(CONTENT_TYPE, kind)], Body::new(answer)).into_response())
}

fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "busy",
        "other long answers are being sent; try again in a moment",
    )
}

/// The body of a long answer.
struct Answer {
    rest: Bytes,
    _sending: OwnedSemaphorePermit,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
