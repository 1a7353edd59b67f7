//! Unit tests of the queue: order, growth, and stealing.
#![allow(unsafe_code, reason = "jobs of the test are addresses")]

use crate::fork_join::job::{Job, JobHandle};
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// Jobs that are never run, in the order of their addresses.
pub(super) fn jobs(count: usize) -> Box<[Job]> {
    let never = || Job::new(|_, _| unreachable!("these jobs are only passed on"));
    (0..count).map(|_| never()).collect()
}

/// Returns a handle of a job at this address.
pub(super) fn handle(job: NonNull<Job>) -> JobHandle {
    // SAFETY: the handle is only passed on; no worker runs the job.
    unsafe { JobHandle::new(job) }
}

pub(super) fn numbers(jobs: &[Job]) -> Vec<NonZeroUsize> {
    jobs.iter().map(|job| NonNull::from(job).addr()).collect()
}

#[cfg(not(loom))]
mod alone {
    use super::super::ReadyQueue;
    use super::{handle, jobs, numbers};
    use std::collections::VecDeque;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    proptest::proptest! {
        /// Compares the queue with a `VecDeque`, including growth and wrapping of the ring.
        #[test]
        fn the_oldest_comes_first_and_half_is_stolen(
            steps in proptest::collection::vec((0_u8..4, 1_usize..40), 1..40),
        ) {
            let jobs = jobs(1);
            let mut made = 0;
            let woken = ReadyQueue::new();
            let mut model = VecDeque::new();
            let job = |number: usize| {
                let job = NonNull::from(&jobs[0]);
                handle(job.map_addr(|address| address.saturating_add(number)))
            };
            for (step, count) in steps {
                match step {
                    0 | 1 => for _ in 0..count {
                        woken.push(job(made));
                        model.push_back(job(made));
                        made += 1;
                    },
                    2 => for _ in 0..count {
                        assert_eq!(woken.pop(), model.pop_front());
                    },
                    _ => {
                        let own = ReadyQueue::new();
                        let stolen: Vec<_> = woken
                            .steal(count, &own)
                            .into_iter()
                            .chain(std::iter::from_fn(|| own.pop()))
                            .collect();
                        let half = if model.len() < count { 0 } else { model.len().div_ceil(2) };
                        assert_eq!(stolen, model.drain(..half).collect::<Vec<_>>());
                    }
                }
                assert_eq!(woken.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn what_two_thieves_and_the_owner_take_is_everything_once() {
        struct Shared(ReadyQueue);
        // SAFETY: only one thread calls the owner's methods.
        unsafe impl Sync for Shared {}

        const COUNT: usize = if cfg!(miri) { 200 } else { 100_000 };
        let jobs = jobs(COUNT);
        let shared = Shared(ReadyQueue::new());
        let over = AtomicBool::new(false);
        let (shared, over) = (&shared, &over);
        let mut taken: Vec<_> = thread::scope(|scope| {
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(move || {
                        let own = ReadyQueue::new();
                        let mut taken = Vec::new();
                        while !over.load(Ordering::Acquire) || !shared.0.is_empty() {
                            taken.extend(shared.0.steal(1, &own).map(|job| job.addr()));
                            taken.extend(std::iter::from_fn(|| own.pop()).map(|job| job.addr()));
                        }
                        taken
                    })
                })
                .collect();
            let mut taken = Vec::new();
            for (number, job) in jobs.iter().enumerate() {
                shared.0.push(handle(job.into()));
                if number % 3 == 0 {
                    taken.extend(shared.0.pop().map(|job| job.addr()));
                }
            }
            taken.extend(std::iter::from_fn(|| shared.0.pop()).map(|job| job.addr()));
            over.store(true, Ordering::Release);
            for thief in thieves {
                taken.extend(thief.join().expect("the thief does not panic"));
            }
            taken
        });
        taken.sort();
        assert_eq!(taken, numbers(&jobs));
    }
}
