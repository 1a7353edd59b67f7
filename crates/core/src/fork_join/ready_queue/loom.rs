//! A loom model of the queue, checked in every order: the owner adds and takes jobs, the ring grows, and another worker
//! steals at the same time.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --lib fork_join::ready_queue::loom`
#![allow(unsafe_code, reason = "jobs of the model are addresses")]

use super::ReadyQueue;
use super::tests::{handle, jobs, numbers};
use loom::sync::Arc;
use loom::thread;

struct Shared(ReadyQueue);

// SAFETY: only the model's first thread calls the owner's methods.
unsafe impl Sync for Shared {}
// SAFETY: the model's jobs are only addresses, which are never dereferenced.
unsafe impl Send for Shared {}

/// Appends `count` jobs, takes one of them halfway and the others at the end, while another worker steals `times`
/// times.
fn every_job_is_taken_once(count: usize, times: usize) {
    loom::model(move || {
        let jobs = jobs(count);
        let woken = Arc::new(Shared(ReadyQueue::new()));
        let thief = {
            let woken = Arc::clone(&woken);
            thread::spawn(move || {
                let own = ReadyQueue::new();
                let mut taken = Vec::new();
                for _ in 0..times {
                    taken.extend(woken.0.steal(1, &own).map(|job| job.addr()));
                    taken.extend(std::iter::from_fn(|| own.pop()).map(|job| job.addr()));
                }
                taken
            })
        };
        let mut taken = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            woken.0.push(handle(job.into()));
            if number == count / 2 {
                taken.extend(woken.0.pop().map(|job| job.addr()));
            }
        }
        taken.extend(std::iter::from_fn(|| woken.0.pop()).map(|job| job.addr()));
        assert!(woken.0.is_empty());
        assert!(taken.is_sorted(), "the owner takes the oldest first");
        let stolen = thief.join().expect("the thief does not panic");
        assert!(stolen.is_sorted(), "the thief takes the oldest first");
        taken.extend(stolen);
        taken.sort();
        assert_eq!(taken, numbers(&jobs), "each once");
    });
}

// Guarantee: core-91.
#[test]
fn a_queue_that_grows_gives_every_job_to_one_side() {
    every_job_is_taken_once(3, 1);
}

#[test]
fn a_ring_that_is_used_again_gives_every_job_to_one_side() {
    every_job_is_taken_once(3, 2);
}
