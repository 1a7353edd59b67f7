//! The slot through which a half moves to another worker.
//!
//! A worker that has been asked for work puts its oldest offer into its mailbox. Another worker takes the offer from
//! there, unless the owner takes it back first. One atomic exchange decides, so exactly one worker runs the half.
#![allow(unsafe_code, reason = "a handle is stored as an atomic pointer")]

use super::job::{Job, JobHandle};
use crate::sync::AtomicPtr;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

/// A slot for one handed-out job.
pub(super) struct Mailbox(AtomicPtr<Job>);

impl Mailbox {
    pub(super) fn new() -> Mailbox {
        Mailbox(AtomicPtr::new(ptr::null_mut()))
    }

    /// True if the mailbox is empty. Exact for the owner, because only the owner fills it; a hint for other workers.
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Offers a job to the first worker that looks. Only the owner calls this, on an empty mailbox.
    pub(super) fn put(&self, job: JobHandle) {
        self.0.store(job.into_ptr(), Ordering::Release);
    }

    /// Takes the job.
    pub(super) fn take(&self) -> Option<JobHandle> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: only `put` stores pointers that are not null, and the exchange gives each to one caller.
        unsafe { JobHandle::from_ptr(self.0.swap(ptr::null_mut(), Ordering::Acquire)) }
    }

    /// Takes `job` back; false if another worker has taken it. If it was taken back, its handle no longer exists.
    pub(super) fn take_back(&self, job: NonNull<Job>) -> bool {
        self.0
            .compare_exchange(
                job.as_ptr(),
                ptr::null_mut(),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}
