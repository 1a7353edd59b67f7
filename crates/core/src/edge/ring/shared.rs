//! The shared state of both ends of a ring, and the operations on its two words.
#![allow(
    unsafe_code,
    reason = "cells are freed, and wakers woken, by the thread that the ring's words select"
)]

use super::order::Order;
use super::slots::Slots;
use crate::edge::abort::Abort;
use crate::edge::counters::{Counter, ReceiverCounters, SenderCounters};
use crate::edge::meter::{EdgeStatistics, Source, State};
use crate::edge::options::{Options, Overflow};
use crate::edge::park::ParkedWaker;
use crate::edge::weigh::Weigh;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::marker::PhantomData;
use std::task::Waker;

/// The bit *aborted*. Once it is set, it is never cleared, and no end may change the word any more.
pub(super) const ABORTED: u64 = 1;
/// The other end waits for this word to change.
pub(super) const WAITS: u64 = 2;
/// The bit of the tail that is set when the sender has closed the edge.
pub(super) const CLOSED: u64 = 4;
/// The number of bits below the position.
const BITS: u32 = 3;

/// The position in a word, which overflows after 2^61 messages, or some hundred years.
#[inline]
pub(super) const fn position(word: u64) -> u64 {
    word >> BITS
}

/// Returns the word of a position, without bits.
#[inline]
const fn word(position: u64) -> u64 {
    position << BITS
}

/// The error of an operation that came after the abort.
#[derive(Debug)]
pub(super) struct IsAborted;

/// A tail that is aborted, with its value. The abort must be [settled](RingEdge::settle) before the caller reports it.
#[derive(Debug)]
pub(super) struct UnsettledTail(pub(super) u64);

/// The result of a request to be woken.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::edge) enum WakerRegistration {
    /// The end will be woken when the word changes.
    Begun,
    /// The word has already changed, so there is no wait.
    Over,
    /// Another thread is about to call the waker of the previous wait.
    Waking,
}

/// The shared state of both ends of a ring.
pub struct RingEdge<T, W> {
    pub(super) tail: CachePadded<AtomicU64>,
    pub(super) head: CachePadded<AtomicU64>,
    /// The position up to which the sender has published messages, written by a plain store after publishing.
    pub(super) published: CachePadded<AtomicU64>,
    /// The position up to which the receiver has taken messages, also written by a plain store; unused with
    /// `drop_oldest`.
    pub(super) consumed: CachePadded<AtomicU64>,
    pub(super) sent: CachePadded<SenderCounters>,
    pub(super) received: CachePadded<ReceiverCounters>,
    /// The waker of the sender that waits for capacity, guarded by *waits* in the head.
    sender: CachePadded<ParkedWaker>,
    /// The waker of the receiver that waits for messages, guarded by *waits* in the tail.
    receiver: CachePadded<ParkedWaker>,
    pub(super) slots: Slots<T>,
    /// The order of the cells; `None` without `drop_oldest`.
    pub(super) order: Option<Order>,
    /// The weight of the messages that were buffered at the abort. Not counted if all messages weigh 1.
    aborted_weight: Counter,
    pub(super) capacity: u64,
    pub(super) weight_limit: u64,
    pub(super) overflow: Overflow,
    pub(super) statistics: bool,
    weigh: PhantomData<fn() -> W>,
}

// SAFETY: one thread at a time accesses a message, so `T: Send` suffices. The words `head` and `tail` decide which
// thread may access which cell (see the module `ring`).
unsafe impl<T: Send, W> Sync for RingEdge<T, W> {}

impl<T, W: Weigh<T>> RingEdge<T, W> {
    pub(in crate::edge) fn new(options: &Options) -> RingEdge<T, W> {
        let oldest = options.overflow_policy() == Overflow::DropOldest;
        let capacity = options.capacity().max(1);
        let slots = Slots::new(capacity << u32::from(oldest));
        RingEdge {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            published: CachePadded::new(AtomicU64::new(0)),
            consumed: CachePadded::new(AtomicU64::new(0)),
            sent: CachePadded::new(SenderCounters::new()),
            received: CachePadded::new(ReceiverCounters::new()),
            sender: CachePadded::new(ParkedWaker::new()),
            receiver: CachePadded::new(ParkedWaker::new()),
            order: oldest.then(|| Order::new(slots.len())),
            slots,
            aborted_weight: Counter::new(),
            capacity: capacity as u64,
            weight_limit: options.limit(),
            overflow: options.overflow_policy(),
            statistics: options.keeps_statistics(),
            weigh: PhantomData,
        }
    }

    /// True if the ring was recently full, by the positions that both ends published.
    pub(in crate::edge) fn is_full(&self) -> bool {
        let consumed = self.consumed.load(Ordering::Relaxed);
        let published = self.published.load(Ordering::Relaxed);
        published.saturating_sub(consumed) >= self.capacity
    }

    /// Moves the tail past the messages that the sender has put from `from` on. Returns the waker of the receiver, if
    /// it waits; the caller must call it.
    ///
    /// # Safety
    /// The caller is the sender, and has written `count` messages from `from` on.
    #[inline]
    pub(super) unsafe fn publish(
        &self,
        from: u64,
        count: u64,
    ) -> Result<Option<Waker>, UnsettledTail> {
        // Releases the messages; acquires the waker.
        match self.tail.compare_exchange(
            word(from),
            word(from + count),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(None),
            Err(found) => self.publish_and_wake(found, count),
        }
    }

    /// The slow path of publishing, when a bit is set.
    #[cold]
    fn publish_and_wake(&self, mut found: u64, count: u64) -> Result<Option<Waker>, UnsettledTail> {
        while found & ABORTED == 0 {
            let to = word(position(found) + count);
            match change(&self.tail, &self.receiver, found, to) {
                Ok(waker) => return Ok(waker),
                Err(now) => found = now,
            }
        }
        Err(UnsettledTail(found))
    }

    /// Moves the head past `count` messages from `from` on, which then belong to the receiver.
    ///
    /// # Safety
    /// The caller is the receiver, the messages have been published, and the policy is not `drop_oldest`, so no other
    /// thread moves the head.
    #[inline]
    pub(super) unsafe fn advance(&self, from: u64, count: u64) -> Result<(), IsAborted> {
        // Releases the slots; acquires the waker.
        match self.head.compare_exchange(
            word(from),
            word(from + count),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(()),
            Err(found) => self.advance_and_wake(found, count),
        }
    }

    /// The slow path of advancing, when a bit is set.
    #[cold]
    fn advance_and_wake(&self, mut found: u64, count: u64) -> Result<(), IsAborted> {
        while found & ABORTED == 0 {
            let to = word(position(found) + count);
            match change(&self.head, &self.sender, found, to) {
                Ok(waker) => {
                    waker.into_iter().for_each(Waker::wake);
                    return Ok(());
                }
                Err(now) => found = now,
            }
        }
        Err(IsAborted)
    }

    /// Advances the head from `seen`, for the policy `drop_oldest`, with which no sender waits. Returns false if the
    /// head has changed.
    pub(super) fn take(&self, seen: u64, count: u64) -> bool {
        debug_assert_eq!(seen & WAITS, 0, "no sender waits for capacity");
        self.head
            .compare_exchange(
                seen,
                word(position(seen) + count),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Arranges that the sender is woken when the head is no longer `seen`.
    pub(super) fn await_capacity(&self, seen: u64, waker: &Waker) -> WakerRegistration {
        // SAFETY: only the sender's end calls this, and it borrows that end, so no other thread stores a waker in
        // `sender`.
        unsafe { await_change(&self.head, &self.sender, seen, waker) }
    }

    /// Arranges that the receiver is woken when the tail is no longer `seen`. Returns false if the tail has already
    /// changed.
    pub(super) fn await_message(&self, seen: u64, waker: &Waker) -> bool {
        // SAFETY: only the receiver's end calls this, and it borrows that end, so no other thread stores a waker in
        // `receiver`.
        match unsafe { await_change(&self.tail, &self.receiver, seen, waker) } {
            WakerRegistration::Begun => true,
            WakerRegistration::Over => false,
            WakerRegistration::Waking => {
                waker.wake_by_ref();
                true
            }
        }
    }

    /// Closes the sending end.
    pub(in crate::edge) fn close(&self) {
        let mut found = self.tail.load(Ordering::Relaxed);
        while found & (ABORTED | CLOSED) == 0 {
            let to = found & !WAITS | CLOSED;
            match change(&self.tail, &self.receiver, found, to) {
                Ok(waker) => return waker.into_iter().for_each(Waker::wake),
                Err(now) => found = now,
            }
        }
    }

    /// Completes an abort whose bit is in the tail: aborts the head, and returns the buffered messages, to be
    /// dropped. An edge that was closed and has been emptied stays closed.
    #[cold]
    pub(super) fn settle(&self, tail: u64) -> Vec<T> {
        debug_assert_ne!(tail & ABORTED, 0, "then the tail stays as it is");
        let mut found = self.head.load(Ordering::Acquire);
        let waker = loop {
            let over = tail & CLOSED != 0 && position(found) == position(tail);
            if over || found & ABORTED != 0 {
                return Vec::new();
            }
            match change(&self.head, &self.sender, found, found & !WAITS | ABORTED) {
                Ok(waker) => break waker,
                Err(now) => found = now,
            }
        };
        waker.into_iter().for_each(Waker::wake);
        let slots = self.slots.view();
        let buffered: Vec<T> = (position(found)..position(tail))
            .map(|at| {
                // SAFETY: both words are aborted and do not change any more, so no thread writes to the cells between
                // them. This thread has set the head's bit, so only it takes their messages.
                unsafe { slots.copy(self.cell(at)).assume_init() }
            })
            .collect();
        if !W::ALL_ONE && self.statistics {
            self.aborted_weight
                .set(buffered.iter().map(W::weight).sum());
        }
        buffered
    }

    /// Completes an abort, if one has been begun.
    #[cold]
    pub(in crate::edge) fn settle_aborted(&self) {
        let tail = self.tail.load(Ordering::Acquire);
        if tail & ABORTED != 0 {
            drop(self.settle(tail));
        }
    }

    /// Returns the cell of a position that the head has not passed.
    fn cell(&self, at: u64) -> u64 {
        match &self.order {
            Some(order) => u64::from(order.number(at)),
            None => at,
        }
    }
}

impl<T: Send, W: Weigh<T>> Abort for RingEdge<T, W> {
    #[cold]
    fn abort(&self) {
        let found = self.tail.fetch_or(ABORTED, Ordering::AcqRel);
        let buffered = self.settle(found | ABORTED);
        if found & (ABORTED | WAITS) == WAITS {
            // SAFETY: *waits* was set and stays set in an aborted tail, so no other thread takes the waker: only the
            // thread that has aborted the tail does, which is this one.
            let waker = unsafe { self.receiver.take() };
            waker.into_iter().for_each(Waker::wake);
        }
        // Dropping messages runs foreign code, which may panic, so it comes last.
        drop(buffered);
    }
}

impl<T: Send, W: Weigh<T>> Source for RingEdge<T, W> {
    fn read(&self) -> EdgeStatistics {
        // Reads the received count first, so that it never exceeds the sent count.
        let received_weight = self.received.weight.get();
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        let between = position(tail)
            .saturating_sub(position(head))
            .min(self.capacity);
        let (aborted, buffered) = match head & ABORTED {
            0 => (0, between),
            _ => (between, 0),
        };
        let mut statistics =
            EdgeStatistics::uncounted(self.state(), self.capacity as usize, buffered as usize);
        if !self.statistics {
            return statistics;
        }
        let counts = &self.sent;
        statistics.high_water = counts.high_water.get() as usize;
        statistics.dropped_by_overflow = counts.dropped.get();
        statistics.received = match W::ALL_ONE && self.order.is_none() {
            true => position(head),
            false => received_weight,
        };
        let published = match W::ALL_ONE {
            true => position(tail),
            false => counts.weight.get(),
        };
        statistics.sent = match self.overflow {
            Overflow::DropNewest => published + statistics.dropped_by_overflow,
            _ => published,
        };
        statistics.dropped_by_abort = match W::ALL_ONE {
            true => aborted,
            false => self.aborted_weight.get(),
        };
        statistics.blocked_sending = counts.blocked.read();
        statistics.blocked_receiving = self.received.blocked.read();
        statistics
    }

    fn state(&self) -> State {
        if self.head.load(Ordering::Acquire) & ABORTED != 0 {
            State::Aborted
        } else if self.tail.load(Ordering::Acquire) & CLOSED != 0 {
            State::Closed
        } else {
            State::Open
        }
    }

    fn filled(&self) -> (usize, usize) {
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        let between = position(tail).saturating_sub(position(head));
        let buffered = match head & ABORTED {
            0 => between.min(self.capacity) as usize,
            _ => 0,
        };
        (buffered, self.capacity as usize)
    }
}

/// Changes the word from `from` to `to`. If that clears *waits*, returns the waker that was parked; the caller must call
/// it. If the word is not `from`, returns its value as an error.
fn change(
    word: &AtomicU64,
    parked: &ParkedWaker,
    from: u64,
    to: u64,
) -> Result<Option<Waker>, u64> {
    word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)?;
    Ok(match from & !to & WAITS {
        0 => None,
        // SAFETY: this thread has just cleared *waits* with an acquire operation.
        _ => unsafe { parked.take() },
    })
}

/// Stores a waker and sets *waits*, if the word is still `seen`.
///
/// # Safety
/// The caller owns `parked`, whose bit *waits* is in `word`.
unsafe fn await_change(
    word: &AtomicU64,
    parked: &ParkedWaker,
    mut seen: u64,
    waker: &Waker,
) -> WakerRegistration {
    let change = |from, to| {
        word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    if seen & WAITS != 0 {
        // The end waits again without having been woken.
        if !change(seen, seen & !WAITS) {
            return WakerRegistration::Over;
        }
        seen &= !WAITS;
        // SAFETY: the owner has cleared *waits* itself, so no other thread can take the waker.
        unsafe { parked.take_back() };
    }
    // SAFETY: the caller owns `parked`, and *waits* is clear.
    if !unsafe { parked.put(waker) } {
        return WakerRegistration::Waking;
    }
    if change(seen, seen | WAITS) {
        return WakerRegistration::Begun;
    }
    // SAFETY: *waits* was not set, so no other thread can take the waker.
    unsafe { parked.take_back() };
    WakerRegistration::Over
}
