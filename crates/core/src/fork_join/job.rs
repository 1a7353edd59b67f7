//! Jobs, which any worker of a pool can run.
#![allow(
    unsafe_code,
    reason = "a job is run by the address of the block that it begins"
)]

use super::worker::Worker;
use std::ptr::NonNull;

/// The first field of each item that travels between workers: a handed-out half, a suspended half
/// that was woken, a root, a spawn of a scope.
///
/// The address of a job is the address of the block that begins with it; `run` knows the type of
/// the block.
#[repr(C)]
pub(super) struct Job {
    run: unsafe fn(NonNull<Job>, &Worker),
}

impl Job {
    /// # Safety
    /// `run` must accept the address of the block that will begin with this job, at most once per
    /// time that the job is put where a worker finds it.
    pub(super) const unsafe fn new(run: unsafe fn(NonNull<Job>, &Worker)) -> Job {
        Job { run }
    }

    /// Runs the job. Panics of user code do not come out of it.
    ///
    /// # Safety
    /// `job` was found in a mailbox or a queue, by this caller alone.
    pub(super) unsafe fn run(job: NonNull<Job>, worker: &Worker) {
        // SAFETY: the thread that put the job there keeps its block until it has run.
        let run = unsafe { job.as_ref().run };
        // SAFETY: the finder of a job runs it, as `Job::new` was promised.
        unsafe { run(job, worker) }
    }
}
