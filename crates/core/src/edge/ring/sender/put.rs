//! Putting messages into the ring: finding capacity, writing, and publishing.
#![allow(
    unsafe_code,
    reason = "messages are written to cells that the ring's positions assign to this end"
)]

use super::RingSender;
use super::no_capacity::{NoCapacity, ReceiverView};
use crate::edge::abort::Abort;
use crate::edge::batch::Batch;
use crate::edge::error::Aborted;
use crate::edge::options::Overflow;
use crate::edge::ring::shared::{ABORTED, UnsettledTail, position};
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;
use std::mem::MaybeUninit;

impl<T: Send + 'static, W: Weigh<T>> RingSender<T, W> {
    /// True if, according to the receiver's plain progress word, another message fits below the high-water mark.
    #[inline]
    pub(super) fn glance(&mut self) -> bool {
        self.head = self.head.max(self.ring.consumed.load(Ordering::Acquire));
        self.tail - self.head < self.limit
    }

    /// Reads the receiver's position.
    pub(in crate::edge) fn read_head(&mut self) -> ReceiverView {
        let seen = self.ring.head.load(Ordering::Acquire);
        if self.closed || seen & ABORTED != 0 {
            return ReceiverView::Aborted;
        }
        self.head = position(seen);
        if let Some(load) = &mut self.load {
            load.received_up_to(self.head);
        }
        ReceiverView::At(seen, self.ring.capacity - (self.tail - self.head))
    }

    /// Finds capacity for at least the first of these messages, dropping older messages if the policy allows. Returns
    /// the number of messages for which there is capacity. With a limit by weight only the first message is considered.
    #[cold]
    pub(super) fn reserve(&mut self, messages: &[T]) -> Result<u64, NoCapacity> {
        let wanted = messages.len() as u64;
        loop {
            let seen = match self.read_head() {
                ReceiverView::Aborted => return Err(NoCapacity::Aborted),
                ReceiverView::At(seen, 0) => seen,
                ReceiverView::At(seen, free_capacity) => match &self.load {
                    None => return Ok(free_capacity.min(wanted)),
                    Some(load) if load.has_capacity_for(W::weight(&messages[0])) => return Ok(1),
                    Some(_) => seen,
                },
            };
            match self.ring.overflow {
                Overflow::Block => return Err(NoCapacity::Full(seen)),
                Overflow::DropNewest => return Err(NoCapacity::Drop),
                Overflow::DropOldest => {
                    let count = match self.load {
                        None => wanted.min(self.ring.capacity),
                        Some(_) => 1,
                    };
                    self.drop_oldest(seen, count);
                }
                Overflow::Abort => {
                    self.ring.abort();
                    return Err(NoCapacity::Aborted);
                }
            }
        }
    }

    /// Drops `count` messages at the head, if the head is still `seen`.
    pub(super) fn drop_oldest(&mut self, seen: u64, count: u64) {
        let (Some(free), Some(order)) = (&mut self.free, &self.ring.order) else {
            unreachable!("an edge that drops the oldest has an order");
        };
        let oldest = position(seen);
        if !self.ring.take(seen, count) {
            return;
        }
        let dropped: Vec<T> = (oldest..oldest + count)
            .map(|at| {
                let number = order.number(at);
                free.put(number);
                // SAFETY: this end has moved the head past the message's position, so only this end accesses the cell.
                unsafe { self.slots.copy(u64::from(number)).assume_init() }
            })
            .collect();
        self.count_dropped(&dropped);
    }

    /// Counts messages that the policy dropped.
    pub(super) fn count_dropped(&self, messages: &[T]) {
        if self.ring.statistics {
            let weight = messages.iter().map(W::weight).sum();
            self.ring.sent.dropped.add(weight);
        }
    }

    /// Updates the high-water mark before `count` messages are put; the position of the receiver is current.
    pub(super) fn raise_mark(&mut self, count: u64) {
        let filled = self.tail - self.head + count;
        if filled > self.mark {
            self.mark = filled;
            self.ring.sent.high_water.set(filled);
        }
        // With a limit by weight, capacity is checked for every message.
        if self.load.is_none() {
            self.limit = self.ring.capacity.min(self.mark);
        }
    }

    /// Puts a message into a free slot.
    #[inline(always)]
    pub(super) fn put(&mut self, message: T) -> Result<(), Aborted<T>> {
        let weight = W::weight(&message);
        let cell = self.fill(self.tail, MaybeUninit::new(message));
        // SAFETY: only the sender calls this, and the message has been written at `tail`.
        match unsafe { self.ring.publish(self.tail, 1) } {
            Ok(woken) => {
                self.advance_tail(1, weight);
                if let Some(receiver) = woken {
                    self.wake(receiver);
                }
                Ok(())
            }
            Err(UnsettledTail(tail)) => {
                self.settle(tail);
                self.unfill(1);
                // SAFETY: the message was not published, so this end still owns it, and uses only this copy.
                Err(Aborted(unsafe { self.slots.copy(cell).assume_init() }))
            }
        }
    }

    /// Puts as much of a batch into the ring as fits. Returns `None` if the complete batch was put. Otherwise the edge
    /// is full and its policy is to block; returns the value of the head for which it is full.
    pub(in crate::edge) fn put_all(
        &mut self,
        batch: &mut Batch<'_, T>,
    ) -> Result<Option<u64>, Aborted<()>> {
        if self.load.is_some() {
            return self.put_each(batch);
        }
        while !batch.remaining().is_empty() {
            let wanted = batch.remaining().len() as u64;
            let count = match self.limit.saturating_sub(self.tail - self.head) {
                free_capacity if free_capacity >= wanted => wanted,
                _ => match self.reserve(batch.remaining()) {
                    Ok(free_capacity) => {
                        self.raise_mark(free_capacity);
                        free_capacity
                    }
                    Err(NoCapacity::Drop) => {
                        self.count_dropped(batch.remaining());
                        batch.discard();
                        return Ok(None);
                    }
                    Err(NoCapacity::Full(seen)) => return Ok(Some(seen)),
                    Err(NoCapacity::Aborted) => return Err(Aborted(())),
                },
            };
            let messages = &batch.remaining()[..count as usize];
            let weight = match W::ALL_ONE {
                true => count,
                false => messages.iter().map(W::weight).sum(),
            };
            for (at, message) in (self.tail..).zip(messages) {
                // SAFETY: reads an initialised message. The copy counts as a message only if it is published; then the
                // batch gives up its own.
                let copy = unsafe { std::ptr::from_ref(message).cast::<MaybeUninit<T>>().read() };
                self.fill(at, copy);
            }
            // SAFETY: only the sender calls this, and `count` messages have been written from `tail` on. When they are
            // published, their copies in the ring are their only owners.
            let published = unsafe {
                let published = self.ring.publish(self.tail, count);
                if published.is_ok() {
                    batch.advance(count as usize);
                }
                published
            };
            match published {
                Ok(woken) => {
                    self.advance_tail(count, weight);
                    if let Some(receiver) = woken {
                        self.wake(receiver);
                    }
                }
                Err(UnsettledTail(tail)) => {
                    self.settle(tail);
                    self.unfill(count);
                    return Err(Aborted(()));
                }
            }
        }
        Ok(None)
    }

    /// Puts a batch like [`put_all`](Self::put_all), but one message at a time, because each message is weighed.
    fn put_each(&mut self, batch: &mut Batch<'_, T>) -> Result<Option<u64>, Aborted<()>> {
        while let Some(message) = batch.next() {
            match self.reserve_and_put(message) {
                Ok(()) => {}
                Err((NoCapacity::Drop, message)) => self.count_dropped(&[message]),
                Err((NoCapacity::Full(seen), message)) => {
                    batch.give_back(message);
                    return Ok(Some(seen));
                }
                Err((NoCapacity::Aborted, message)) => {
                    batch.give_back(message);
                    return Err(Aborted(()));
                }
            }
        }
        Ok(None)
    }

    /// Puts a message, or returns why the ring is full.
    #[inline(always)]
    pub(in crate::edge) fn reserve_and_put(&mut self, message: T) -> Result<(), (NoCapacity, T)> {
        if self.tail - self.head >= self.limit && !self.glance() {
            match self.reserve(std::slice::from_ref(&message)) {
                Ok(free_capacity) => self.raise_mark(free_capacity),
                Err(no_capacity) => return Err((no_capacity, message)),
            }
        }
        self.put(message)
            .map_err(|Aborted(message)| (NoCapacity::Aborted, message))
    }

    /// Writes a message to the slot of an unpublished position within the capacity. Returns the number of the slot's
    /// cell.
    #[inline(always)]
    pub(super) fn fill(&mut self, at: u64, message: MaybeUninit<T>) -> u64 {
        let cell = match &mut self.free {
            None => at,
            Some(free) => match &self.ring.order {
                Some(order) => free.fill(order, at),
                None => at,
            },
        };
        // SAFETY: the head has passed the last message of this slot, and the receiver reads the slot only after the
        // publication. With `drop_oldest`, only the sender accesses a free cell.
        unsafe { self.slots.write(cell, message) };
        cell
    }

    /// Takes back the cells of `count` messages at the tail that were filled but not published.
    #[cold]
    pub(super) fn unfill(&mut self, count: u64) {
        if let (Some(free), Some(order)) = (&mut self.free, &self.ring.order) {
            (self.tail..self.tail + count).for_each(|at| free.put(order.number(at)));
        }
    }

    /// Advances the position by `count` published messages with this total weight.
    #[inline]
    pub(super) fn advance_tail(&mut self, count: u64, weight: u64) {
        self.tail += count;
        // Releases the messages to the receiver.
        self.ring.published.store(self.tail, Ordering::Release);
        if let Some(load) = &mut self.load {
            load.sent(weight);
        }
        if !W::ALL_ONE && self.ring.statistics {
            self.ring.sent.weight.add(weight);
        }
    }
}
