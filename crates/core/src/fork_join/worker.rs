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
use super::frames::{Frames, Returned};
use super::job::Job;
use super::latch::Latch;
use super::mailbox::Mailbox;
use super::offer::Offers;
use super::registry::Registry;
use super::stack::Extent;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A worker is asked at most once in so many nanoseconds.
const PACE: u64 = 50_000;

/// So often an idle worker looks around before it falls asleep.
const PATIENCE: u32 = if cfg!(miri) { 4 } else { 2_000 };

/// At every such look for a job the queue comes before what was woken here.
const FAIRNESS: u32 = 64;

/// So often in a row the half that was woken last may come before those that wait longer.
const STREAK: u32 = 16;

/// So many references to the registry are taken or given up at once.
const REFERENCES: usize = 256;

/// The guard of a worker that has been asked: no stack address is above it.
const ASKED: usize = usize::MAX;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// One worker of a pool.
#[repr(C, align(128))]
pub(super) struct Worker {
    // Only this worker's thread touches what is above `public`.
    pub(super) offers: Offers,
    frames: Frames,
    stack: Cell<Extent>,
    /// Halves that were woken here.
    woken: RefCell<VecDeque<NonNull<Job>>>,
    /// The half that was woken last, which comes before the others: what it waited for, mostly the
    /// results of its own halves, is still in the processor's caches.
    next: Cell<Option<NonNull<Job>>>,
    /// How often in a row `next` has come first.
    streak: Cell<u32>,
    /// How often this worker has looked for a job.
    looks: Cell<u32>,
    /// References to the registry, to be spent on blocks.
    references: Cell<usize>,
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
    /// Blocks of this worker's that were given back elsewhere.
    returned: Returned,
    bell: Bell,
}

// SAFETY: what is above `public` is touched only by the thread that is the worker at the time
// (`Worker::current` hands them out to no other; a change of threads synchronises them, see
// `Worker::embody`); `registry` outlives its workers; the rest is made for sharing.
unsafe impl Sync for Worker {}
// SAFETY: as above; a worker moves only while its registry is being made.
unsafe impl Send for Worker {}

impl Worker {
    pub(super) fn new(index: usize, registry: *const Registry) -> Worker {
        Worker {
            offers: Offers::new(),
            frames: Frames::new(),
            woken: RefCell::default(),
            next: Cell::new(None),
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
                returned: Returned::new(),
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

    /// The registry as [`Registry::hold`] needs it.
    pub(super) fn registry_pointer(&self) -> *const Registry {
        self.registry
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

    /// Memory for a block, if there is some at hand.
    #[inline(always)]
    pub(super) fn take_frame<T>(&self) -> Option<NonNull<T>> {
        self.frames.take()
    }

    /// Sees to it that there is memory for a block at hand.
    pub(super) fn refill_frames<T>(&self) {
        self.frames.refill::<T>(&self.public.returned);
    }

    /// Gives back a block of this worker's, on its thread.
    ///
    /// # Safety
    /// As for [`Frames::give_back`].
    #[inline(always)]
    pub(super) unsafe fn give_back_frame<T>(&self, block: NonNull<T>) {
        // SAFETY: by the caller.
        unsafe { self.frames.give_back(block) };
    }

    /// Gives back a block of this worker's, on whichever thread.
    ///
    /// # Safety
    /// As for [`Returned::give_back`].
    pub(super) unsafe fn return_frame<T>(&self, block: NonNull<T>) {
        let here = Worker::current().is_some_and(|worker| ptr::eq(worker, self));
        // SAFETY: by the caller.
        unsafe {
            if here {
                self.frames.give_back(block)
            } else {
                self.public.returned.give_back(block)
            }
        }
    }

    pub(super) fn spend_reference(&self) {
        if self.references.get() == 0 {
            for _ in 0..REFERENCES {
                // SAFETY: registries live in an `Arc` and nowhere else.
                unsafe { Arc::increment_strong_count(self.registry) };
            }
            self.references.set(REFERENCES);
        }
        self.references.set(self.references.get() - 1);
    }

    pub(super) fn regain_reference(&self) {
        self.references.set(self.references.get() + 1);
        if self.references.get() == 2 * REFERENCES {
            self.give_up_references(REFERENCES);
        }
    }

    fn give_up_references(&self, count: usize) {
        self.references.set(self.references.get() - count);
        for _ in 0..count {
            // SAFETY: they are this worker's. Its thread has one of its own.
            unsafe { Arc::decrement_strong_count(self.registry) };
        }
    }

    /// The whole life of a worker: runs jobs until the pool is stopped, and then what is left.
    pub(super) fn live(&self) {
        let registry = self.registry();
        self.work_until(|| registry.is_stopped());
        self.clear();
        self.give_up_references(self.references.get());
    }

    /// Runs all there is to run.
    pub(super) fn clear(&self) {
        while let Some(job) = self.find() {
            // SAFETY: just found, by this worker alone.
            unsafe { Job::run(job, self) };
        }
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

    /// Puts the oldest offer into the mailbox, if that is free, or shares what was woken here.
    fn answer(&self) {
        let mut woken = self.woken.borrow_mut();
        let half = woken.len() / 2;
        if half > 0 {
            // SAFETY: they were in no other place.
            unsafe { self.registry().enqueue_all(woken.drain(..half)) };
            return;
        }
        drop(woken);
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

    /// Queues a half that waits no more, before others that were woken here.
    ///
    /// # Safety
    /// As for [`Registry::enqueue`].
    pub(super) unsafe fn enqueue_next(&self, job: NonNull<Job>) {
        if let Some(job) = self.next.replace(Some(job)) {
            // SAFETY: by the caller, of an earlier call.
            unsafe { self.enqueue(job) };
        }
    }

    /// Queues a half behind others that were woken here. It stays here unless others would have to wait for it
    /// while some worker sleeps.
    ///
    /// # Safety
    /// As for [`Registry::enqueue`].
    pub(super) unsafe fn enqueue(&self, job: NonNull<Job>) {
        let mut woken = self.woken.borrow_mut();
        if !woken.is_empty() && self.registry().has_sleepers() {
            drop(woken);
            // SAFETY: by the caller.
            unsafe { self.registry().enqueue(job) };
        } else {
            woken.push_back(job);
        }
    }

    /// Something to run, from here, from the queue, or from a mailbox.
    pub(super) fn find(&self) -> Option<NonNull<Job>> {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        // What others have queued must not wait for ever for those here.
        if looks.is_multiple_of(FAIRNESS)
            && let Some(job) = self.registry().dequeue(&mut self.woken.borrow_mut())
        {
            return Some(job);
        }
        self.find_here().or_else(|| self.find_elsewhere())
    }

    fn find_here(&self) -> Option<NonNull<Job>> {
        if let Some(job) = self.next.take() {
            if self.streak.get() < STREAK {
                self.streak.set(self.streak.get() + 1);
                return Some(job);
            }
            self.woken.borrow_mut().push_back(job);
        }
        self.streak.set(0);
        self.woken.borrow_mut().pop_front()
    }

    fn find_elsewhere(&self) -> Option<NonNull<Job>> {
        let registry = self.registry();
        if let Some(job) = registry.dequeue(&mut self.woken.borrow_mut()) {
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
            if self.public.guard.load(Ordering::Relaxed) == ASKED {
                self.public
                    .guard
                    .store(self.stack.get().lowest_fork(), Ordering::Relaxed);
                self.answer();
            }
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
