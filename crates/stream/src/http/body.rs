//! Bodies of requests, for which memory is reserved before they are read.

use super::Server;
use super::memory::Reserved;
use super::refusal::Refusal;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The number of bytes that are at least reserved at a time for a body of unknown length.
const STEP: usize = 64 << 10;

/// The number of checks whether a body arrives fast enough, within the time limit of a body.
const CHECKS: u32 = 15;

/// The maximum length of a body, and its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The maximum length in bytes.
    pub(super) limit: usize,
    /// The memory that a body of this length is likely to need in total, until it has been processed.
    pub(super) estimate: fn(usize) -> usize,
}

/// Reads a small body of at most `limit` bytes, which needs no memory besides.
pub(super) async fn read(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<(Bytes, Reserved), Refusal> {
    let estimate = |length| length;
    read_sized(server, headers, body, Sizes { limit, estimate }).await
}

/// Reads a body within the time limit, if there is memory for it.
pub(super) async fn read_sized(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    sizes: Sizes,
) -> Result<(Bytes, Reserved), Refusal> {
    let limit = sizes.limit;
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let length = announced.unwrap_or(STEP.min(limit));
    let estimate = (sizes.estimate)(length);
    let mut reserved = server.memory.reserve(length, estimate).await?;
    // The whole reservation of a body of unknown length is for what is received.
    let capacity = announced.unwrap_or(reserved.bytes());
    let within = server.options.body_timeout;
    let pace = Pace::new(within);
    match timeout(within, receive(body, &mut reserved, limit, capacity, pace)).await {
        Ok(received) => Ok((received?, reserved)),
        Err(_) => Err(slow(format!(
            "the body took more than {within:?}; nothing was written"
        ))),
    }
}

/// Receives a body, for whose first `capacity` bytes there is memory.
async fn receive(
    mut body: Body,
    reserved: &mut Reserved,
    limit: usize,
    mut capacity: usize,
    mut pace: Pace,
) -> Result<Bytes, Refusal> {
    let mut received: Vec<u8> = Vec::new();
    while let Some(part) = pace
        .next(&mut body, reserved, received.len(), capacity)
        .await?
    {
        let needed = received.len() + part.len();
        if needed > limit {
            return Err(too_large(limit));
        }
        if needed > capacity {
            let grown = capacity + STEP.max(capacity / 4);
            capacity = needed.max(grown.min(limit));
            reserved.grow(capacity).await?;
        }
        if needed > received.capacity() {
            received.reserve_exact(capacity - received.len());
        }
        received.extend_from_slice(&part);
    }
    Ok(received.into())
}

/// Checks that a body arrives fast enough while other bodies wait for its memory.
struct Pace {
    /// The time between two checks.
    interval: Duration,
    check: Instant,
    /// The number of bytes that had been read at the last check.
    read: usize,
}

impl Pace {
    fn new(limit: Duration) -> Pace {
        let interval = (limit / CHECKS).max(Duration::from_millis(1));
        Pace {
            interval,
            check: Instant::now() + interval,
            read: 0,
        }
    }

    /// Waits for the next part of a body of which `read` bytes have been read; `None` at the end.
    async fn next(
        &mut self,
        body: &mut Body,
        reserved: &Reserved,
        read: usize,
        capacity: usize,
    ) -> Result<Option<Bytes>, Refusal> {
        loop {
            let Ok(frame) = timeout_at(self.check, body.frame()).await else {
                let arrived = read - self.read;
                if reserved.is_awaited() && arrived < (capacity / CHECKS as usize).max(1) {
                    return Err(slow(format!(
                        "the body is too slow while others wait for its memory: {arrived} bytes in {:?}; nothing was written",
                        self.interval
                    )));
                }
                self.read = read;
                self.check += self.interval;
                continue;
            };
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| {
                let message =
                    format!("the body ended before its end ({error}); nothing was written");
                Refusal::new(StatusCode::BAD_REQUEST, "truncated", message)
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// True if a body must be unpacked.
pub(super) fn is_packed(headers: &HeaderMap) -> Result<bool, Refusal> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else {
        return Ok(false);
    };
    let is = |name: &[u8]| encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(name);
    if is(b"identity") || is(b"") {
        return Ok(false);
    }
    if is(b"gzip") || is(b"x-gzip") {
        return Ok(true);
    }
    let other = String::from_utf8_lossy(encoding.as_bytes());
    let message = format!("bodies may be plain or gzip, not {other}");
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Refusal::new(status, "encoding", message))
}

pub(super) fn too_large(limit: usize) -> Refusal {
    let message = format!(
        "a body may have {limit} bytes after unpacking; write in smaller parts (nothing was written)"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

// Not 408, because telegraf drops a batch that is answered with 4xx.
fn slow(message: String) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "slow", message)
}
