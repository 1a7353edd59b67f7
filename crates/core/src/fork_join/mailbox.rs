//! The one place through which a half changes hands.
//!
//! A worker that has been asked puts its oldest offer into its own mailbox. From there either
//! another worker takes it, or the owner takes it back when it gets to it first: one atomic
//! exchange decides, so exactly one of them runs the half.

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

    /// Whether nothing is in it; only a hint for everybody but the owner, who alone fills it.
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

    /// Takes this job back; false if another worker has taken it.
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
