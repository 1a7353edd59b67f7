//! A worker: the state behind one thread of a pool.
//!
//! All data that a fork accesses belongs to the worker's thread alone and needs no atomic operations. Other workers
//! access only four fields: the guard, by which they ask for work; the mailbox, in which the worker puts its answer;
//! the queue of halves that were woken here, from which they steal; and the bell, which wakes the worker.
//!
//! # Asking
//! A fork must detect two rare conditions: the end of the stack, and another worker without work. One comparison
//! detects both: it compares the address of the fork with the *guard*. The guard is the end of the usable stack, or an
//! address above all others when another worker has asked for work. A worker is asked at most every 50 microseconds,
//! because handing out a tiny fork costs far more than running it. Before a worker falls asleep it asks all other
//! workers regardless of this interval, so the next fork on any worker wakes it.
#![allow(
    unsafe_code,
    reason = "a worker is reached by a pointer in its thread's local storage"
)]

mod work;

use super::bell::Bell;
use super::frames::{Frames, ReturnedFrames};
use super::job::JobHandle;
use super::mailbox::Mailbox;
use super::offer::Offers;
use super::ready_queue::ReadyQueue;
use super::registry::{Registry, RegistryHold};
use super::stack::Extent;
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The number of references to the registry that are taken or returned at once.
const REFERENCES: usize = 256;

/// The guard of a worker that has been asked: no stack address is above it.
const ASKED: usize = usize::MAX;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// One worker of a pool.
#[repr(C, align(128))]
pub(super) struct Worker {
    // Only this worker's thread accesses the fields above `public`.
    pub(super) offers: Offers,
    pub(super) frames: Frames,
    stack: Cell<Extent>,
    /// The half that was woken when the last job ended. This half runs first, because the values that it waited for,
    /// mostly results of its own halves, are still in the CPU's caches.
    next: Cell<Option<JobHandle>>,
    /// True while a job ends. A half that is woken in the meantime becomes `next`.
    ending: Cell<bool>,
    /// The number of consecutive jobs that came from `next`.
    streak: Cell<u32>,
    /// The number of searches for a job. The number wraps around.
    looks: Cell<u32>,
    /// The number of references to the registry that this worker has reserved for blocks.
    references: Cell<usize>,
    index: usize,
    registry: *const Registry,
    public: Public,
}

/// The fields that other workers read and write, on separate cache lines.
#[repr(C, align(128))]
struct Public {
    /// The lowest address at which a fork may begin, or [`ASKED`].
    guard: AtomicUsize,
    /// The time of the worker's last answer, on the registry's clock.
    answered: AtomicU64,
    mailbox: Mailbox,
    /// True if other workers should wait for an offer instead of stealing woken halves: this worker had an offer when
    /// it last answered, or has not answered yet. An offer probably contains more work, and its blocks will belong to
    /// the worker that takes it.
    offers: AtomicBool,
    /// Blocks of this worker that were freed on other workers.
    returned: ReturnedFrames,
    bell: Bell,
    woken: CachePadded<ReadyQueue>,
}

// SAFETY: the fields above `public` are accessed only by the thread that currently acts as the worker:
// `Worker::current` returns the worker to no other thread, and a change of threads synchronises the fields (see
// `Worker::embody`). `registry` outlives its workers. The fields in `public` are atomic or locked.
unsafe impl Sync for Worker {}
// SAFETY: other threads use only the atomic and locked fields in `public`; a worker moves only while its registry is
// created.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(index: usize, registry: *const Registry) -> Worker {
        Worker {
            offers: Offers::new(),
            frames: Frames::new(),
            next: Cell::new(None),
            ending: Cell::new(false),
            streak: Cell::new(0),
            looks: Cell::new(0),
            references: Cell::new(0),
            stack: Cell::new(Extent::UNLIMITED),
            index,
            registry,
            public: Public {
                guard: AtomicUsize::new(0),
                answered: AtomicU64::new(0),
                mailbox: Mailbox::new(),
                offers: AtomicBool::new(true),
                returned: ReturnedFrames::new(),
                bell: Bell::new(),
                woken: CachePadded::new(ReadyQueue::new()),
            },
        }
    }

    /// Initialises the worker in its final place. Called once.
    pub(super) fn settle(&self) {
        self.offers.settle();
    }

    /// Returns the worker that this thread currently acts as, if any.
    #[inline(always)]
    pub(super) fn current<'a>() -> Option<&'a Worker> {
        // SAFETY: the pointer is set only while `embody` borrows the worker, on this thread, and all code that this
        // thread runs during the borrow returns before the borrow ends.
        unsafe { CURRENT.get().as_ref() }
    }

    /// Makes the calling thread act as this worker while it runs `work`.
    ///
    /// # Safety
    /// No other thread acts as this worker, or the thread that does waits until this call returns.
    pub(super) unsafe fn embody<R>(&self, stack: Extent, work: impl FnOnce(&Worker) -> R) -> R {
        struct Before<'a>(&'a Worker, *const Worker, Extent);
        impl Drop for Before<'_> {
            fn drop(&mut self) {
                CURRENT.set(self.1);
                self.0.set_stack(self.2);
            }
        }
        let before = Before(self, CURRENT.replace(self), self.stack.get());
        self.set_stack(stack);
        let result = work(self);
        drop(before);
        result
    }

    fn set_stack(&self, stack: Extent) {
        self.stack.set(stack);
        let before = self
            .public
            .guard
            .swap(stack.lowest_fork(), Ordering::Relaxed);
        if before == ASKED {
            self.public.guard.store(ASKED, Ordering::Relaxed);
        }
    }

    /// True if this is a worker of this registry.
    pub(super) fn is_of(&self, registry: *const Registry) -> bool {
        ptr::eq(self.registry, registry)
    }

    /// True if both are workers of one registry.
    pub(super) fn shares_pool_with(&self, other: &Worker) -> bool {
        self.is_of(other.registry)
    }

    /// Returns a reference to the registry; on any thread.
    pub(super) fn hold_registry(&self) -> RegistryHold {
        match Worker::current().filter(|worker| worker.shares_pool_with(self)) {
            Some(worker) => worker.spend_reference(),
            // SAFETY: `self.registry` is the pointer of the registry's `Arc`, which owns this worker.
            None => unsafe { RegistryHold::shared(self.registry) },
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        // SAFETY: a registry owns its workers, so it lives as long as `self`.
        unsafe { &*self.registry }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn stack(&self) -> Extent {
        self.stack.get()
    }

    /// Returns memory for a block from the free list; `None` if the list is empty.
    #[inline(always)]
    pub(super) fn take_frame<T>(&self) -> Option<NonNull<T>> {
        self.frames.take()
    }

    /// Ensures that memory for a block is available.
    pub(super) fn refill_frames<T>(&self) {
        self.frames.refill::<T>(&self.public.returned);
    }

    /// Returns a block of this worker, on any thread.
    ///
    /// # Safety
    /// As for [`ReturnedFrames::give_back`].
    pub(super) unsafe fn return_frame<T>(&self, block: NonNull<T>) {
        let here = Worker::current().is_some_and(|worker| ptr::eq(worker, self));
        // SAFETY: the block is one of this worker's frames of this type, no longer used; on another thread it goes through
        // the locked list.
        unsafe {
            if here {
                self.frames.give_back(block)
            } else {
                self.public.returned.give_back(block)
            }
        }
    }

    /// Returns a reference to the registry, on the thread of this worker.
    pub(super) fn spend_reference(&self) -> RegistryHold {
        if self.references.get() == 0 {
            for _ in 0..REFERENCES {
                // SAFETY: `self.registry` is the pointer of the registry's `Arc`, which owns this worker.
                unsafe { RegistryHold::shared(self.registry) }.leak();
            }
            self.references.set(REFERENCES);
        }
        self.references.set(self.references.get() - 1);
        // SAFETY: one of the references that were taken above.
        unsafe { self.leaked_reference() }
    }

    /// Returns a reference to the registry that was leaked.
    ///
    /// # Safety
    /// The caller owns a leaked reference to this worker's registry, and gives it up.
    pub(super) unsafe fn leaked_reference(&self) -> RegistryHold {
        // SAFETY: the caller owns the reference. `self.registry` is the pointer of the registry's `Arc`.
        unsafe { RegistryHold::owned(self.registry) }
    }

    /// Takes a reference to this worker's registry back, on the thread of this worker.
    pub(super) fn regain_reference(&self, reference: RegistryHold) {
        reference.leak();
        self.references.set(self.references.get() + 1);
        if self.references.get() == 2 * REFERENCES {
            self.give_up_references(REFERENCES);
        }
    }

    fn give_up_references(&self, count: usize) {
        self.references.set(self.references.get() - count);
        for _ in 0..count {
            // SAFETY: this worker owns these references. The registry stays alive, because the worker's thread has
            // another reference.
            unsafe { Arc::decrement_strong_count(self.registry) };
        }
    }

    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.public.mailbox
    }

    pub(super) fn wake(&self) {
        self.public.bell.ring();
    }

    /// True if a fork at this address must call [`Worker::attend`].
    #[inline(always)]
    pub(super) fn must_attend(&self, address: usize) -> bool {
        address < self.public.guard.load(Ordering::Relaxed)
    }

    /// Returns the queue of halves that were woken here, from which other workers may take some.
    pub(super) fn woken(&self) -> &ReadyQueue {
        &self.public.woken
    }
}
