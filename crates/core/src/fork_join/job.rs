//! Jobs, which any worker of a pool can run.
#![allow(
    unsafe_code,
    reason = "a job is run by the address of the block that it begins"
)]

use super::worker::Worker;
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
    /// # Safety
    /// `run` must accept the address of the block that will begin with this job, at most once each time the job is put
    /// into a mailbox or a queue.
    pub(super) const unsafe fn new(run: unsafe fn(NonNull<Job>, &Worker)) -> Job {
        Job { run }
    }

    /// Runs the job. Panics of user code do not leave this function.
    ///
    /// # Safety
    /// `job` was found in a mailbox or a queue, by this caller alone.
    pub(super) unsafe fn run(job: NonNull<Job>, worker: &Worker) {
        // SAFETY: the block that begins with the job exists until the job has run.
        let run = unsafe { job.as_ref().run };
        // SAFETY: only this caller found the job, so `run` gets its block once, as required by `Job::new`.
        unsafe { run(job, worker) }
    }
}
