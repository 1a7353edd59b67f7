//! The memory of bodies: a budget that all bodies share, and the part of it that a body has reserved.
//!
//! Bodies that hold a part of the budget while they wait for more could block each other until all of them are refused,
//! again and again. The following rules prevent this:
//!
//! - A large body reserves its length before it is received, and an estimate of what it needs besides before it is
//!   unpacked and parsed. Bodies wait in the order of arrival.
//! - Bodies that are being received, or wait for the estimate, hold at most three eighths of the budget. So a body that
//!   was received finds memory as soon as earlier bodies are complete.
//! - A body that exceeds its estimate takes memory that is free. If there is none, one body takes an eighth of the budget
//!   that is only for this, and then waits; the others are refused.
//! - A small body reserves all that it is likely to need at once. An eighth of the budget is for small bodies only.

use super::refusal::Refusal;
use axum::http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The memory up to which a body is small.
const SMALL: usize = 1 << 20;

/// The memory for all bodies, with a permit for each KiB.
#[derive(Debug)]
pub(super) struct Budget {
    /// The memory that one body may use at most, in bytes.
    most: usize,
    /// The memory that one body may reserve before it is parsed, in bytes.
    most_estimated: usize,
    /// Memory for all bodies.
    common: Arc<Semaphore>,
    /// Memory for small bodies.
    small: Arc<Semaphore>,
    /// Permits for the part of the common memory that belongs to bodies that are being received.
    receiving: Arc<Semaphore>,
    /// The number of permits of `receiving`.
    most_receiving: usize,
    /// A permit to take more memory than estimated although none is free.
    exceeding: Arc<Semaphore>,
    /// Memory for the body with this permit, which other bodies that wait cannot take.
    spare: Arc<Semaphore>,
    /// The number of bodies that wait for memory.
    waiting: AtomicUsize,
    patience: Duration,
}

/// Memory for one body, which is released when this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    budget: Arc<Budget>,
    /// The reserved memory in bytes.
    bytes: usize,
    common: Option<OwnedSemaphorePermit>,
    small: Option<OwnedSemaphorePermit>,
    receiving: Option<OwnedSemaphorePermit>,
    exceeding: Option<OwnedSemaphorePermit>,
    spare: Option<OwnedSemaphorePermit>,
    /// True while the body is being received.
    is_received: bool,
}

/// Returns the number of permits for a number of bytes.
pub(super) fn kibibytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 10).min(Semaphore::MAX_PERMITS)
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(kibibytes(bytes)).unwrap_or(u32::MAX)
}

impl Budget {
    /// Creates a budget of this many bytes. Bodies wait for memory for at most `patience`.
    pub(super) fn new(bytes: usize, patience: Duration) -> Budget {
        let part = |eighths: usize| Arc::new(Semaphore::new(kibibytes(bytes / 8 * eighths)));
        Budget {
            most: bytes / 8 * 7,
            most_estimated: bytes / 8 * 6,
            common: part(6),
            small: part(1),
            receiving: part(3),
            most_receiving: kibibytes(bytes / 8 * 3),
            exceeding: Arc::new(Semaphore::new(1)),
            spare: part(1),
            waiting: AtomicUsize::new(0),
            patience,
        }
    }

    /// Reserves memory for a body of `length` bytes that will be received. `estimate` is the memory that the body is
    /// likely to need in total.
    pub(super) async fn reserve(
        self: &Arc<Budget>,
        length: usize,
        estimate: usize,
    ) -> Result<Reserved, Refusal> {
        let mut reserved = Reserved {
            budget: self.clone(),
            bytes: 0,
            common: None,
            small: None,
            receiving: None,
            exceeding: None,
            spare: None,
            is_received: false,
        };
        if length > self.most_estimated {
            return Err(reserved.too_large());
        }
        if estimate <= SMALL {
            match self
                .common
                .clone()
                .try_acquire_many_owned(permits(estimate))
            {
                Ok(permits) => reserved.common = Some(permits),
                Err(_) => reserved.small = Some(self.wait(&self.small, permits(estimate)).await?),
            }
            reserved.bytes = estimate;
            return Ok(reserved);
        }
        // A body that is larger than this part of the budget may still be received alone.
        let receiving = kibibytes(length).min(self.most_receiving) as u32;
        reserved.receiving = Some(self.wait(&self.receiving, receiving).await?);
        reserved.common = Some(self.wait(&self.common, permits(length)).await?);
        reserved.bytes = length;
        Ok(reserved)
    }

    /// True if bodies wait for memory.
    pub(super) fn is_contended(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits for permits in the order of arrival.
    async fn wait(
        &self,
        semaphore: &Arc<Semaphore>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        if let Ok(permits) = semaphore.clone().try_acquire_many_owned(permits) {
            return Ok(permits);
        }
        let _waiting = Waiting::new(&self.waiting);
        match timeout(self.patience, semaphore.clone().acquire_many_owned(permits)).await {
            Ok(Ok(permits)) => Ok(permits),
            _ => Err(busy()),
        }
    }
}

impl Reserved {
    /// Returns the reserved memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if others cannot use memory because of this body, so that it must not take longer than necessary.
    pub(super) fn is_awaited(&self) -> bool {
        self.exceeding.is_some() || self.budget.is_contended()
    }

    /// Ends the phase in which the body is received, and raises the reservation to `estimate` in total, the memory that
    /// the body is likely to need until the tasks have it.
    pub(super) async fn received(&mut self, estimate: usize) -> Result<(), Refusal> {
        self.is_received = true;
        let total = estimate.min(self.budget.most_estimated);
        if total > self.bytes {
            let budget = self.budget.clone();
            let permits = budget.wait(&budget.common, self.missing(total)).await?;
            self.add(permits, total);
        }
        self.receiving = None;
        Ok(())
    }

    /// Raises the reservation to `bytes` in total, even if this is more than estimated.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        if self.try_grow(bytes)? {
            return Ok(());
        }
        let budget = self.budget.clone();
        if self.exceeding.is_none() {
            let exceeding = budget.exceeding.clone().try_acquire_owned();
            self.exceeding = Some(exceeding.map_err(|_| busy())?);
        }
        let missing = self.missing(bytes);
        if let Ok(permits) = budget.spare.clone().try_acquire_many_owned(missing) {
            merge(&mut self.spare, permits);
            self.bytes = bytes;
            return Ok(());
        }
        let permits = budget.wait(&budget.common, missing).await?;
        self.add(permits, bytes);
        Ok(())
    }

    /// Raises the reservation like [`grow`](Reserved::grow), and blocks the thread while it waits.
    pub(super) fn grow_blocking(&mut self, bytes: usize) -> Result<(), Refusal> {
        match self.try_grow(bytes)? {
            true => Ok(()),
            false => Handle::current().block_on(self.grow(bytes)),
        }
    }

    /// Raises the reservation without waiting; false if too little memory is free.
    pub(super) fn try_grow(&mut self, bytes: usize) -> Result<bool, Refusal> {
        if bytes > self.budget.most {
            return Err(self.too_large());
        }
        if bytes <= self.bytes {
            return Ok(true);
        }
        let missing = self.missing(bytes);
        let common = self.budget.common.clone();
        let Ok(common) = common.try_acquire_many_owned(missing) else {
            return Ok(false);
        };
        if !self.is_received && self.exceeding.is_none() {
            let receiving = self.budget.receiving.clone();
            match receiving.try_acquire_many_owned(missing) {
                Ok(permits) => merge(&mut self.receiving, permits),
                Err(_) => return Ok(false),
            }
        }
        self.add(common, bytes);
        Ok(true)
    }

    /// Returns the number of permits that a reservation of `total` bytes needs besides the present ones. It is the
    /// difference of two rounded numbers, so that a body can reserve the whole budget step by step.
    fn missing(&self, total: usize) -> u32 {
        permits(total).saturating_sub(permits(self.bytes))
    }

    fn add(&mut self, permits: OwnedSemaphorePermit, total: usize) {
        merge(&mut self.common, permits);
        self.bytes = total;
    }

    fn too_large(&self) -> Refusal {
        let message = format!(
            "this body and its points take more than the {} bytes that a body may take of --body-memory; write in smaller parts (nothing was written)",
            self.budget.most
        );
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }
}

fn merge(into: &mut Option<OwnedSemaphorePermit>, permits: OwnedSemaphorePermit) {
    match into {
        Some(into) => into.merge(permits),
        None => *into = Some(permits),
    }
}

/// Counts a body that waits, until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(count: &AtomicUsize) -> Waiting<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "busy",
        "too little memory is free for the body; try again in a moment (nothing was written)",
    )
}
