//! A worker: the state behind one thread of a pool.
//!
//! What every fork touches belongs to the worker's thread alone and is read and written plainly.
//! Other workers see three things only: the guard, through which they ask; the mailbox, through
//! which the worker answers; the bell, which wakes it.
//!
//! # Asking
//! A fork has to look out for two rare things: the end of the stack, and a worker without work.
//! Both are one comparison: the address of the fork against the *guard*, which is the end of the
//! usable stack, or above every address when another worker has asked. Who asks does so at most
//! every [`PACE`] per worker, so that a fork of next to nothing is not handed out at a cost far
//! above its own. Before a worker falls asleep it asks everybody, without regard to the pace: the
//! next fork anywhere wakes it up.

use super::bell::Bell;
use super::job::Job;
use super::latch::Latch;
use super::mailbox::Mailbox;
use super::offer::Offers;
use super::registry::Registry;
use super::stack::Extent;
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A worker is asked at most once in so many nanoseconds.
const PACE: u64 = 50_000;

/// So often an idle worker looks around before it falls asleep.
const PATIENCE: u32 = if cfg!(miri) { 4 } else { 2_000 };

/// The guard of a worker that has been asked: no stack address is above it.
const ASKED: usize = usize::MAX;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// One worker of a pool.
#[repr(C, align(128))]
pub(super) struct Worker {
    /// Only this worker's thread touches it.
    pub(super) offers: Offers,
    stack: Cell<Extent>,
    index: usize,
    registry: *const Registry,
    public: Public,
}

/// What other workers read and write; on cache lines of its own.
#[repr(C, align(128))]
struct Public {
    /// The lowest address at which a fork may begin, or [`ASKED`].
    guard: AtomicUsize,
    /// When the worker last answered, on the registry's clock.
    answered: AtomicU64,
    mailbox: Mailbox,
    bell: Bell,
}

// SAFETY: `offers` and `stack` are touched only by the thread that is the worker at the time
// (`Worker::current` hands them out to no other; a change of threads synchronises them, see
// `Worker::embody`); `registry` outlives its workers; the rest is made for sharing.
unsafe impl Sync for Worker {}
// SAFETY: as above; a worker moves only while its registry is being made.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(index: usize, registry: *const Registry) -> Worker {
        Worker {
            offers: Offers::new(),
            stack: Cell::new(Extent::UNLIMITED),
            index,
            registry,
            public: Public {
                guard: AtomicUsize::new(0),
                answered: AtomicU64::new(0),
                mailbox: Mailbox::new(),
                bell: Bell::new(),
            },
        }
    }

    /// To be called once, where the worker is to stay.
    pub(super) fn settle(&self) {
        self.offers.settle();
    }

    /// The worker that this thread is, if it is one.
    #[inline(always)]
    pub(super) fn current<'a>() -> Option<&'a Worker> {
        // SAFETY: the pointer is set only while `embody` borrows the worker, on this thread, and
        // what runs on this thread meanwhile returns before that borrow ends.
        unsafe { CURRENT.get().as_ref() }
    }

    /// Makes the calling thread this worker for the time of `work`.
    ///
    /// # Safety
    /// No other thread is this worker at the time, or the one that is waits until this returns.
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

    pub(super) fn registry(&self) -> &Registry {
        // SAFETY: a registry owns its workers, so it lives as long as `self`.
        unsafe { &*self.registry }
    }

    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.public.mailbox
    }

    pub(super) fn wake(&self) {
        self.public.bell.ring();
    }

    /// Whether a fork at this address has to call [`Worker::attend`].
    #[inline(always)]
    pub(super) fn must_attend(&self, address: usize) -> bool {
        address < self.public.guard.load(Ordering::Relaxed)
    }

    /// Answers who has asked. True if the stack has room for a fork at this address.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&self, address: usize) -> bool {
        let lowest = self.stack.get().lowest_fork();
        if self.public.guard.swap(lowest, Ordering::Relaxed) == ASKED {
            self.answer();
        }
        address >= lowest
    }

    /// Puts the oldest offer into the mailbox, if that is free.
    fn answer(&self) {
        if !self.mailbox().is_empty() {
            return;
        }
        if let Some(job) = self.offers.take_oldest(self) {
            self.public
                .answered
                .store(self.registry().now(), Ordering::Relaxed);
            self.mailbox().put(job);
            self.registry().wake_one();
        }
    }

    /// Asks all others for work; `urgently` without regard to the pace.
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

    /// Something to run, from the queue or from a mailbox.
    fn find(&self) -> Option<NonNull<Job>> {
        let registry = self.registry();
        if let Some(job) = registry.dequeue() {
            return Some(job);
        }
        let (before, after) = registry.workers.split_at(self.index + 1);
        after
            .iter()
            .chain(before)
            .find_map(|worker| worker.mailbox().take())
    }

    /// Runs whatever there is to run until `over`.
    pub(super) fn work_until(&self, over: impl Fn() -> bool) {
        let mut looked = 0;
        let mut woken = false;
        while !over() {
            if let Some(job) = self.find() {
                if std::mem::take(&mut woken) {
                    // Where this came from there may be more: one after another they wake up.
                    self.registry().wake_one();
                }
                // SAFETY: just found, by this worker alone.
                unsafe { Job::run(job, self) };
                looked = 0;
                continue;
            }
            if looked < PATIENCE {
                self.ask(false);
                looked += 1;
                std::hint::spin_loop();
                continue;
            }
            self.sleep(&over);
            looked = 0;
            woken = true;
        }
    }

    /// Waits for a latch, and runs whatever there is to run meanwhile.
    pub(super) fn wait(&self, latch: &Latch) {
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
