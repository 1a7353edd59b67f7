//! Bodies of requests, for which memory is reserved before they are read.

use super::Server;
use super::refusal::Refusal;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The number of bytes that are reserved at a time for a body of unknown length.
const STEP: usize = 64 << 10;

/// Memory for one body, which is released when this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    memory: Arc<Semaphore>,
    permits: Option<OwnedSemaphorePermit>,
    patience: Duration,
    /// The reserved memory in bytes.
    bytes: usize,
    limit: usize,
    /// The memory for all bodies.
    all: usize,
}

/// Returns the number of permits for a number of bytes.
pub(super) fn kibibytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 10).min(Semaphore::MAX_PERMITS)
}

impl Reserved {
    fn new(server: &Server, limit: usize) -> Reserved {
        Reserved {
            memory: server.memory.clone(),
            permits: None,
            patience: server.engine.options().patience,
            bytes: 0,
            limit,
            all: server.engine.options().body_memory,
        }
    }

    /// Raises the reservation to `bytes` in total. Waits until other bodies release memory.
    async fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        if let Some(permits) = self.permits_for(bytes)? {
            let acquired = self.memory.clone().acquire_many_owned(permits);
            match timeout(self.patience, acquired).await {
                Ok(Ok(permits)) => self.add(permits),
                _ => return Err(busy()),
            }
        }
        Ok(())
    }

    /// Raises the reservation like [`grow`](Self::grow), but without waiting.
    fn try_grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        if let Some(permits) = self.permits_for(bytes)? {
            match self.memory.clone().try_acquire_many_owned(permits) {
                Ok(permits) => self.add(permits),
                Err(_) => return Err(busy()),
            }
        }
        Ok(())
    }

    /// Reserves more memory for the parsed body; false if there is not enough.
    pub(super) fn try_more(&mut self, bytes: usize) -> bool {
        self.limit = usize::MAX;
        self.try_grow(self.bytes.saturating_add(bytes)).is_ok()
    }

    /// Returns the refusal for a parsed body that needs too much memory.
    pub(super) fn refusal(&self) -> Refusal {
        if self.bytes <= self.all {
            return busy();
        }
        let message = format!(
            "the points of this body take more than the {} bytes that there are for all bodies; write in smaller parts (nothing was written)",
            self.all
        );
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// Returns the number of further permits that this many bytes need.
    fn permits_for(&mut self, bytes: usize) -> Result<Option<u32>, Refusal> {
        if bytes > self.limit {
            return Err(too_large(self.limit));
        }
        let more = kibibytes(bytes).saturating_sub(kibibytes(self.bytes));
        self.bytes = self.bytes.max(bytes);
        Ok(u32::try_from(more).ok().filter(|more| *more > 0))
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permits {
            Some(permits) => permits.merge(more),
            None => self.permits = Some(more),
        }
    }
}

/// Reads a body of at most `limit` bytes within the time limit, if there is memory for it.
pub(super) async fn read(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<(Bytes, Reserved), Refusal> {
    let within = server.options.body_timeout;
    match timeout(within, read_all(server, headers, body, limit)).await {
        Ok(read) => read,
        Err(_) => {
            let message = format!("the body took more than {within:?}; nothing was written");
            // Not 408, because telegraf drops a batch that is answered with 4xx.
            Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "slow",
                message,
            ))
        }
    }
}

async fn read_all(
    server: &Server,
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
) -> Result<(Bytes, Reserved), Refusal> {
    let mut reserved = Reserved::new(server, limit);
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    reserved.grow(announced.unwrap_or_default()).await?;
    let mut read: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let message = format!("the body ended before its end ({error}); nothing was written");
            Refusal::new(StatusCode::BAD_REQUEST, "truncated", message)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let needed = read.len() + data.len();
        if needed > reserved.bytes {
            let step = (reserved.bytes + STEP).min(limit);
            reserved.grow(needed.max(step)).await?;
        }
        read.extend_from_slice(&data);
    }
    Ok((read.into(), reserved))
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

/// Unpacks a body, if there is memory for it. A large body takes long, so this function must not be called on threads
/// that serve requests.
pub(super) fn unpack(packed: &[u8], reserved: &mut Reserved) -> Result<Bytes, Refusal> {
    let mut unpacked: Vec<u8> = Vec::new();
    let mut decoder = MultiGzDecoder::new(packed);
    let before = reserved.bytes;
    let limit = reserved.limit;
    // The memory of the packed body stays reserved.
    reserved.limit = limit.saturating_add(before);
    loop {
        // The reservation grows with the buffer, so that it equals the memory of the body.
        let needed = unpacked.len() + STEP;
        if needed > unpacked.capacity() {
            let doubled = (unpacked.capacity() * 2).min(limit + STEP).max(needed);
            reserved
                .try_grow((before + doubled).min(reserved.limit))
                .map_err(|_| busy())?;
            unpacked.reserve_exact(doubled - unpacked.len());
        }
        let read = decoder
            .by_ref()
            .take(STEP as u64)
            .read_to_end(&mut unpacked)
            .map_err(|error| {
                let message = format!("the body is not valid gzip ({error}); nothing was written");
                Refusal::new(StatusCode::BAD_REQUEST, "gzip", message)
            })?;
        if unpacked.len() > limit {
            return Err(too_large(limit));
        }
        if read == 0 {
            return Ok(unpacked.into());
        }
    }
}

fn too_large(limit: usize) -> Refusal {
    let message = format!(
        "a body may have {limit} bytes after unpacking; write in smaller parts (nothing was written)"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "busy",
        "there is no memory for the body now; try again in a moment (nothing was written)",
    )
}
