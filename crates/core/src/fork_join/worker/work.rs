//! The work of a worker: asking others for work, handing out work, and choosing its next job.
//!
//! Halves that were woken on this worker come first, then jobs queued from outside the pool, then offers of other
//! workers, and last halves that were woken on other workers.

use super::super::job::JobHandle;
use super::super::latch::Latch;
use super::{ASKED, Worker};
use std::hint;
use std::sync::atomic::Ordering;
use std::thread;

/// The minimum interval between two requests to a worker, in nanoseconds.
const PACE: u64 = 50_000;

/// The number of searches that an idle worker makes before it falls asleep.
const PATIENCE: u32 = if cfg!(miri) { 4 } else { 2_000 };

/// The number of searches if there are more workers than cores. It is small, because a worker without a core may have
/// the job, or may need the core to finish its work.
const PATIENCE_IN_A_CROWD: u32 = 4;

/// The interval, in searches for a job, at which the queue of the pool is searched before the halves that were woken
/// here.
const FAIRNESS: u32 = 64;

/// The maximum number of consecutive jobs that may overtake older halves because they were woken last.
const STREAK: u32 = 16;

impl Worker {
    /// Runs jobs until the pool is stopped, and then the remaining ones.
    pub(in crate::fork_join) fn live(&self) {
        let registry = self.registry();
        self.work_until(|| registry.is_stopped());
        self.clear();
        self.give_up_references(self.references.get());
    }

    /// Runs all available jobs.
    pub(in crate::fork_join) fn clear(&self) {
        while let Some(job) = self.find(false) {
            job.run(self);
        }
    }

    /// Answers the request for work of another worker, if there is one. Returns true if the stack has space for a fork
    /// at this address.
    #[cold]
    #[inline(never)]
    pub(in crate::fork_join) fn attend(&self, address: usize) -> bool {
        let lowest = self.stack.get().lowest_fork();
        if self.public.guard.swap(lowest, Ordering::Relaxed) == ASKED {
            self.answer();
        }
        address >= lowest
    }

    /// Puts the oldest offer into the mailbox, if the mailbox is empty. If there is no offer, other workers may take
    /// halves that were woken here.
    fn answer(&self) {
        if !self.mailbox().is_empty() {
            return;
        }
        let offers = !self.offers.is_empty();
        self.public.offers.store(offers, Ordering::Relaxed);
        if let Some(job) = self.offers.take_oldest(self) {
            self.public
                .answered
                .store(self.registry().now(), Ordering::Relaxed);
            self.mailbox().put(job);
            self.registry().wake_one();
        }
    }

    /// Asks all other workers for work. With `urgently`, the minimum interval between requests is ignored.
    fn ask(&self, urgently: bool) {
        let registry = self.registry();
        let now = registry.now();
        for other in &registry.workers {
            let public = &other.public;
            let guard = public.guard.load(Ordering::Relaxed);
            if other.index == self.index || guard == ASKED {
                continue;
            }
            let since = now.saturating_sub(public.answered.load(Ordering::Relaxed));
            if urgently || since > PACE {
                public.guard.store(ASKED, Ordering::Relaxed);
            }
        }
    }

    /// Runs `of_job`, the last action of a job. Afterwards this worker searches for its next job.
    pub(in crate::fork_join) fn at_the_end<R>(&self, of_job: impl FnOnce() -> R) -> R {
        self.ending.set(true);
        let result = of_job();
        self.ending.set(false);
        result
    }

    /// Queues a half that no longer waits: as the next half of this worker if a job is ending, otherwise in the queue
    /// of woken halves.
    pub(in crate::fork_join) fn enqueue_next(&self, job: JobHandle) {
        let job = if self.ending.get() {
            self.next.replace(Some(job))
        } else {
            Some(job)
        };
        if let Some(job) = job {
            self.enqueue(job);
        }
    }

    /// Queues a half behind the other halves that were woken here; any free worker may take it.
    pub(in crate::fork_join) fn enqueue(&self, job: JobHandle) {
        self.woken().push(job);
        if self.registry().workers.len() > 1 {
            self.registry().wake_one();
        }
    }

    /// Finds a job here, in the queue of the pool, or at another worker. With `patiently`, halves woken at
    /// another worker stay there while that worker may have offers, or if there is only one half, which that
    /// worker may be about to run.
    pub(in crate::fork_join) fn find(&self, patiently: bool) -> Option<JobHandle> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        // Jobs from outside the pool must not wait forever behind halves woken here.
        if looks.is_multiple_of(FAIRNESS)
            && let Some(job) = self.registry().dequeue(self.woken())
        {
            return Some(job);
        }
        self.find_here().or_else(|| self.find_elsewhere(patiently))
    }

    fn find_here(&self) -> Option<JobHandle> {
        if let Some(job) = self.next.take() {
            if self.streak.get() < STREAK {
                self.streak.set(self.streak.get() + 1);
                return Some(job);
            }
            self.woken().push(job);
        }
        self.streak.set(0);
        self.woken().pop()
    }

    fn find_elsewhere(&self, patiently: bool) -> Option<JobHandle> {
        let registry = self.registry();
        if let Some(job) = registry.dequeue(self.woken()) {
            return Some(job);
        }
        let (before, after) = registry.workers.split_at(self.index);
        let others = || after[1..].iter().chain(before);
        others()
            .find_map(|other| other.mailbox().take())
            // A worker's own mailbox comes last, because its job was meant for others.
            .or_else(|| self.mailbox().take())
            .or_else(|| others().find_map(|other| self.steal_from(other, patiently)))
    }

    /// Moves some of the woken halves of another worker to this worker, and returns the first of them.
    fn steal_from(&self, other: &Worker, patiently: bool) -> Option<JobHandle> {
        let offers = &other.public.offers;
        if patiently && offers.load(Ordering::Relaxed) {
            return None;
        }
        let least = if patiently { 2 } else { 1 };
        let job = other.woken().steal(least, self.woken())?;
        // The other worker updates the flag with its next answer.
        offers.store(true, Ordering::Relaxed);
        Some(job)
    }

    /// Runs available jobs until `over` returns true.
    pub(in crate::fork_join) fn work_until(&self, over: impl Fn() -> bool) {
        let crowded = self.registry().is_crowded();
        let patience = if crowded {
            PATIENCE_IN_A_CROWD
        } else {
            PATIENCE
        };
        let mut looked = 0;
        let mut woken = false;
        while !over() {
            if self.public.guard.load(Ordering::Relaxed) == ASKED {
                self.public
                    .guard
                    .store(self.stack.get().lowest_fork(), Ordering::Relaxed);
                self.answer();
            }
            if let Some(job) = self.find(looked < patience / 2) {
                if std::mem::take(&mut woken) {
                    // There may be more jobs, so each worker that finds one wakes the next worker.
                    self.registry().wake_one();
                }
                job.run(self);
                looked = 0;
                continue;
            }
            if looked < patience {
                self.ask(false);
                looked += 1;
                if crowded {
                    thread::yield_now();
                } else {
                    hint::spin_loop();
                }
                continue;
            }
            self.sleep(&over);
            looked = 0;
            woken = true;
        }
        // The caller may continue with long work, so other workers get the next half.
        if let Some(job) = self.next.take() {
            self.enqueue(job);
        }
    }

    /// Waits for a latch, and runs other jobs during the wait.
    pub(in crate::fork_join) fn wait(&self, latch: &Latch) {
        self.work_until(|| latch.is_set());
    }

    fn sleep(&self, over: impl Fn() -> bool) {
        let registry = self.registry();
        self.ask(true);
        registry.fall_asleep(self.index);
        if !over() && !registry.has_work() {
            self.public.bell.wait();
        }
        registry.stay_awake(self.index);
    }
}
