//! The slot through which a half moves to another worker.
//!
//! A worker that has been asked for work puts its oldest offer into its mailbox. Another worker takes the offer from
//! there, unless the owner takes it back first. One atomic exchange decides, so exactly one worker runs the half.

use super::job::Job;
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
    pub(super) fn put(&self, job: NonNull<Job>) {
        self.0.store(job.as_ptr(), Ordering::Release);
    }

    /// Takes the job.
    pub(super) fn take(&self) -> Option<NonNull<Job>> {
        if self.is_empty() {
            return None;
        }
        NonNull::new(self.0.swap(ptr::null_mut(), Ordering::Acquire))
    }

    /// Takes `job` back; false if another worker has taken it.
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
