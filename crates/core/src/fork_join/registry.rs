//! The shared state of the workers of one pool.
#![allow(unsafe_code, reason = "blocks hold the registry by a counted pointer")]

use super::job::JobHandle;
use super::ready_queue::ReadyQueue;
use super::root::Roots;
use super::worker::Worker;
use crate::sync::lock;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

/// The number of jobs that a worker takes from the queue at once, besides the one that it runs.
const MOST_AT_ONCE: usize = 64;

/// The workers of a pool, their shared queue, and the set of sleeping workers.
pub(super) struct Registry {
    pub(super) workers: Box<[Worker]>,
    queue: Mutex<VecDeque<JobHandle>>,
    /// The queue's length, readable without its lock.
    queued: AtomicUsize,
    sleepers: Mutex<Vec<usize>>,
    /// The number of sleeping workers, readable without their lock.
    sleeping: AtomicUsize,
    pub(super) roots: Roots,
    stopped: AtomicBool,
    /// The time from which [`Registry::now`] counts.
    start: Instant,
    /// The number of cores of the machine.
    cores: usize,
}

/// A reference that keeps a registry alive. Workers take such references in bulk, so that the shared count does not change
/// for every block ([`Worker::hold_registry`]).
pub(super) struct RegistryHold(*const Registry);

impl RegistryHold {
    /// Returns a reference to the registry of a worker, taken from the shared count.
    ///
    /// # Safety
    /// The pointer came from `Arc::as_ptr` for the `Arc` of the registry, which is alive; a pointer from a reference does
    /// not suffice.
    pub(super) unsafe fn shared(registry: *const Registry) -> RegistryHold {
        // SAFETY: the registry is alive, and the pointer is valid for the whole `Arc`.
        unsafe { Arc::increment_strong_count(registry) };
        RegistryHold(registry)
    }

    /// Returns one of the references that the shared count contains already.
    ///
    /// # Safety
    /// As for [`RegistryHold::shared`]; the caller owns one reference of the shared count, and gives it up.
    pub(super) unsafe fn owned(registry: *const Registry) -> RegistryHold {
        RegistryHold(registry)
    }

    pub(super) fn registry(&self) -> &Registry {
        // SAFETY: the reference keeps the registry alive.
        unsafe { &*self.0 }
    }

    /// Gives the reference to a block or a worker, which converts it back by [`RegistryHold::owned`].
    pub(super) fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for RegistryHold {
    fn drop(&mut self) {
        match Worker::current().filter(|worker| worker.is_of(self.0)) {
            Some(worker) => worker.regain_reference(RegistryHold(self.0)),
            // SAFETY: this value is a reference of the shared count, and is not used afterwards.
            None => unsafe { Arc::decrement_strong_count(self.0) },
        }
    }
}

impl Registry {
    pub(super) fn new(workers: usize) -> Arc<Registry> {
        let registry = Arc::new_cyclic(|registry| Registry {
            workers: (0..workers)
                .map(|index| Worker::new(index, registry.as_ptr()))
                .collect(),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            sleepers: Mutex::new(Vec::with_capacity(workers)),
            sleeping: AtomicUsize::new(0),
            roots: Roots::default(),
            stopped: AtomicBool::new(false),
            start: Instant::now(),
            cores: thread::available_parallelism().map_or(1, NonZeroUsize::get),
        });
        registry.workers.iter().for_each(Worker::settle);
        registry
    }

    /// True if a thread outside of the pool may spin without keeping a worker from its core.
    pub(super) fn has_spare_core(&self) -> bool {
        self.workers.len() < self.cores
    }

    /// True if the pool has more workers than the machine has cores.
    pub(super) fn is_crowded(&self) -> bool {
        self.workers.len() > self.cores
    }

    /// Returns the nanoseconds since the pool was created.
    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Queues a job for the first free worker.
    pub(super) fn enqueue(&self, job: JobHandle) {
        let mut queue = self.queue();
        queue.push_back(job);
        self.queued.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        self.wake_one();
    }

    /// Takes the next job of the queue. If the queue is long, moves further jobs to `more`, the queue of the calling
    /// worker.
    pub(super) fn dequeue(&self, more: &ReadyQueue) -> Option<JobHandle> {
        if self.queued.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = self.queue();
        let job = queue.pop_front();
        let share = (queue.len() / (2 * self.workers.len())).min(MOST_AT_ONCE);
        queue.drain(..share).for_each(|job| more.push(job));
        self.queued.store(queue.len(), Ordering::Relaxed);
        job
    }

    /// Wakes a sleeping worker, if there is one, to look for the work that the caller has just made available.
    pub(super) fn wake_one(&self) {
        // Either this thread sees the sleeping worker, or that worker sees the work of this thread, because a worker
        // searches once more after `Registry::fall_asleep`.
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) == 0 {
            return;
        }
        let sleeper = {
            let mut sleepers = self.sleepers();
            let sleeper = sleepers.pop();
            self.sleeping.store(sleepers.len(), Ordering::Relaxed);
            sleeper
        };
        if let Some(index) = sleeper {
            self.workers[index].wake();
        }
    }

    /// Records that a worker falls asleep. The worker looks for work once more before it sleeps.
    pub(super) fn fall_asleep(&self, index: usize) {
        let mut sleepers = self.sleepers();
        sleepers.push(index);
        self.sleeping.store(sleepers.len(), Ordering::Relaxed);
        drop(sleepers);
        fence(Ordering::SeqCst);
    }

    /// Removes a worker from the sleeping workers, unless `wake_one` has removed it already.
    pub(super) fn stay_awake(&self, index: usize) {
        let mut sleepers = self.sleepers();
        sleepers.retain(|sleeper| *sleeper != index);
        self.sleeping.store(sleepers.len(), Ordering::Relaxed);
    }

    /// True if there is work that a worker could take.
    pub(super) fn has_work(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
            || self
                .workers
                .iter()
                .any(|worker| !worker.mailbox().is_empty() || !worker.woken().is_empty())
    }

    /// Makes the workers' threads end when no work is left.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.workers.iter().for_each(Worker::wake);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<JobHandle>> {
        lock(&self.queue)
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<usize>> {
        lock(&self.sleepers)
    }
}
