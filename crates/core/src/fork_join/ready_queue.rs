//! The queue of woken halves, in the order in which they will run.
//!
//! The worker that woke the halves adds and removes them; an idle worker steals some of the oldest halves. So no half
//! waits behind a long-running half while another worker is idle. Putting a half in takes two plain stores; taking any
//! number out takes one compare-and-exchange.
//!
//! The queue is based on the deque of Chase and Lev (*Dynamic circular work-stealing deque*, 2005), but both sides take
//! from the same end. The memory orderings are those of Lê et al. (*Correct and efficient work-stealing for weak memory
//! models*, 2013), where they apply.
#![allow(
    unsafe_code,
    reason = "the queue's slots are read by several workers, one of which takes each job"
)]

#[cfg(all(test, loom))]
mod loom;
#[cfg(test)]
mod tests;

use super::job::{Job, JobHandle};
use crate::sync::{AtomicPtr, AtomicUsize};
use std::cell::RefCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

/// The size of the first ring; the size of every ring is a power of two.
const FIRST: usize = if cfg!(loom) { 2 } else { 64 };

/// The queue of one worker. "Owner" is that worker's thread.
pub(super) struct ReadyQueue {
    /// The number of the oldest job; increases with each job that is taken out, and wraps.
    head: AtomicUsize,
    /// The number of the next job to be put in; only the owner writes it.
    tail: AtomicUsize,
    /// The ring: the job with number `n` is in slot `n % size`. Only the owner replaces it.
    ring: AtomicPtr<Ring>,
    /// All rings, including outgrown ones, from which other workers may still be reading. Only the owner accesses
    /// this list.
    rings: RefCell<Vec<NonNull<Ring>>>,
}

struct Ring(Box<[AtomicPtr<Job>]>);

impl Ring {
    fn boxed(size: usize) -> NonNull<Ring> {
        let slots = (0..size).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        NonNull::from(Box::leak(Box::new(Ring(slots))))
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn slot(&self, number: usize) -> &AtomicPtr<Job> {
        &self.0[number & (self.0.len() - 1)]
    }
}

impl ReadyQueue {
    pub(super) fn new() -> ReadyQueue {
        let ring = Ring::boxed(FIRST);
        ReadyQueue {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            ring: AtomicPtr::new(ring.as_ptr()),
            rings: RefCell::new(vec![ring]),
        }
    }

    /// True if the queue is empty. The result is exact only if it is true and the caller is the owner; otherwise it is
    /// a hint.
    pub(super) fn is_empty(&self) -> bool {
        // `head` is read before `tail`, so a missed job was added after this call began.
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Acquire) == head
    }

    /// Appends a job. Only the owner calls this.
    pub(super) fn push(&self, job: JobHandle) {
        let tail = self.tail.load(Ordering::Relaxed);
        let ring = self.ring_with_capacity_for(1, tail);
        ring.slot(tail).store(job.into_ptr(), Ordering::Relaxed);
        // Release: a thread that sees the new tail sees the slot and the contents of the job.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Takes the oldest job. Only the owner calls this.
    pub(super) fn pop(&self) -> Option<JobHandle> {
        let tail = self.tail.load(Ordering::Relaxed);
        let ring = self.ring();
        let mut head = self.head.load(Ordering::Relaxed);
        while head != tail {
            let job = ring.slot(head).load(Ordering::Relaxed);
            match self.head.compare_exchange_weak(
                head,
                head.wrapping_add(1),
                // Release: the owner has finished adding earlier jobs; see `is_empty`.
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                // SAFETY: `push` or `steal` has stored the pointer, and the exchange gives each job to one thread.
                Ok(_) => return unsafe { JobHandle::from_ptr(job) },
                Err(other) => head = other,
            }
        }
        None
    }

    /// Steals the older half of the jobs, if there are at least `least` jobs. Returns the oldest job, and moves the
    /// others into `own`, the queue of the calling worker.
    pub(super) fn steal(&self, least: usize, own: &ReadyQueue) -> Option<JobHandle> {
        let head = self.head.load(Ordering::Acquire);
        let length = self.tail.load(Ordering::Acquire).wrapping_sub(head);
        if length < least || length == 0 {
            return None;
        }
        let ring = self.ring();
        // The length may be out of date, but then the exchange fails.
        let count = length.div_ceil(2).min(ring.size());
        let first = ring.slot(head).load(Ordering::Relaxed);
        // The jobs are copied before the exchange, because after it the owner may reuse the slots. No other thread sees
        // the copies before `own.tail` is stored.
        let own_tail = own.tail.load(Ordering::Relaxed);
        let own_ring = own.ring_with_capacity_for(count - 1, own_tail);
        for number in 1..count {
            let job = ring.slot(head.wrapping_add(number)).load(Ordering::Relaxed);
            own_ring
                .slot(own_tail.wrapping_add(number - 1))
                .store(job, Ordering::Relaxed);
        }
        // If the exchange succeeds, no other thread has taken these jobs, so the copies are valid. Release: the owner
        // may reuse the slots.
        self.head
            .compare_exchange(
                head,
                head.wrapping_add(count),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .ok()?;
        own.tail
            .store(own_tail.wrapping_add(count - 1), Ordering::Release);
        // SAFETY: `push` or `steal` has stored the pointer, and the exchange gives each job to one thread.
        unsafe { JobHandle::from_ptr(first) }
    }

    /// Returns a ring with capacity for `more` further jobs. Only the owner calls this. Growing takes time proportional
    /// to the length.
    #[inline(always)]
    fn ring_with_capacity_for(&self, more: usize, tail: usize) -> &Ring {
        // Acquire: a thread that has taken a job does not read its slot any more.
        let head = self.head.load(Ordering::Acquire);
        let needed = tail.wrapping_sub(head) + more;
        let ring = self.ring();
        if needed <= ring.size() {
            ring
        } else {
            self.grow(head, tail, needed.next_power_of_two())
        }
    }

    fn ring(&self) -> &Ring {
        // SAFETY: `Ring::boxed` has allocated the ring, and it is freed with `self`. Acquire: the slots are
        // initialised.
        unsafe { &*self.ring.load(Ordering::Acquire) }
    }

    /// Replaces the ring by a ring of `size` slots.
    #[cold]
    #[inline(never)]
    fn grow(&self, head: usize, tail: usize, size: usize) -> &Ring {
        let old = self.ring();
        let new = Ring::boxed(size);
        // SAFETY: the ring is freed only with `self`.
        let ring = unsafe { new.as_ref() };
        let mut number = head;
        while number != tail {
            let job = old.slot(number).load(Ordering::Relaxed);
            ring.slot(number).store(job, Ordering::Relaxed);
            number = number.wrapping_add(1);
        }
        self.rings.borrow_mut().push(new);
        self.ring.store(new.as_ptr(), Ordering::Release);
        ring
    }
}

impl Drop for ReadyQueue {
    fn drop(&mut self) {
        for ring in self.rings.get_mut().drain(..) {
            // SAFETY: `Ring::boxed` has leaked the ring, and no other thread reads it while `self` is dropped.
            drop(unsafe { Box::from_raw(ring.as_ptr()) });
        }
    }
}
