//! Jobs, which any worker of a pool can run.
#![allow(
    unsafe_code,
    reason = "a job is run by the address of the block that it begins"
)]

use super::worker::Worker;
#[cfg(test)]
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// The first field of each item that moves between workers: a handed-out half, a woken half, a root, or a spawn of a
/// scope.
///
/// The address of a job is the address of the block that begins with the job; `run` knows the type of the block.
#[repr(C)]
pub(super) struct Job {
    run: unsafe fn(NonNull<Job>, &Worker),
}

impl Job {
    /// Creates a job that runs by calling `run` with the address of the block that begins with the job.
    pub(super) const fn new(run: unsafe fn(NonNull<Job>, &Worker)) -> Job {
        Job { run }
    }
}

/// The right to run a job once. It moves through mailboxes and queues to the worker that runs the job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JobHandle(NonNull<Job>);

// SAFETY: one thread uses a handle, and the contents of the job are `Send`, as `JobHandle::new` requires.
unsafe impl Send for JobHandle {}

impl JobHandle {
    /// # Safety
    /// The block that begins with the job exists until the job has run, its contents are `Send`, and its function
    /// accepts its address. No other handle of the job exists.
    #[inline(always)]
    pub(super) unsafe fn new(job: NonNull<Job>) -> JobHandle {
        JobHandle(job)
    }

    /// Runs the job. Panics of user code do not leave this function.
    pub(super) fn run(self, worker: &Worker) {
        // SAFETY: the block exists until the job has run, and its function accepts its address. The handle is the only
        // one and is consumed, so the function is called once.
        unsafe { (self.0.as_ref().run)(self.0, worker) }
    }

    /// Converts the handle to a pointer, from which [`JobHandle::from_ptr`] makes the handle again.
    #[inline(always)]
    pub(super) fn into_ptr(self) -> *mut Job {
        self.0.as_ptr()
    }

    /// Returns the handle of a pointer; `None` for a null pointer.
    ///
    /// # Safety
    /// The pointer is null or comes from [`JobHandle::into_ptr`], and only this caller converts it back.
    #[inline(always)]
    pub(super) unsafe fn from_ptr(job: *mut Job) -> Option<JobHandle> {
        NonNull::new(job).map(JobHandle)
    }

    /// Returns the address of the job.
    #[cfg(test)]
    pub(super) fn addr(&self) -> NonZeroUsize {
        self.0.addr()
    }
}
