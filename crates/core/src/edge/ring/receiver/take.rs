//! Taking messages out of the ring.
#![allow(
    unsafe_code,
    reason = "messages are read from cells that the ring's positions assign to this end"
)]

use super::RingReceiver;
use super::no_message::NoMessage;
use crate::edge::meter::{Source, State};
use crate::edge::ring::shared::{ABORTED, CLOSED, position};
use crate::edge::weigh::Weigh;
use crate::sync::Ordering;

impl<T: Send + 'static, W: Weigh<T>> RingReceiver<T, W> {
    /// Advances the head by `count` messages.
    #[inline]
    pub(super) fn advance_head(&mut self, count: u64) {
        self.head += count;
        // Releases the slots of these messages.
        self.ring.consumed.store(self.head, Ordering::Release);
    }

    /// True if the sender's plain progress word shows published messages after the head.
    #[inline]
    pub(super) fn glance(&mut self) -> bool {
        let published = self.ring.published.load(Ordering::Acquire);
        let more = published > self.head;
        if more {
            self.tail = published;
        }
        more
    }

    /// Reads the sender's position, to see whether messages follow `head`.
    #[cold]
    pub(super) fn read_tail(&mut self, head: u64) -> Result<(), NoMessage> {
        let seen = self.ring.tail.load(Ordering::Acquire);
        if seen & ABORTED != 0 {
            drop(self.ring.settle(seen));
            return Err(match self.ring.state() {
                State::Aborted => NoMessage::Aborted,
                _ => NoMessage::Closed,
            });
        }
        self.seen = seen;
        self.tail = position(seen);
        match (self.tail == head, seen & CLOSED) {
            (false, _) => Ok(()),
            (true, 0) => Err(NoMessage::Empty(seen)),
            (true, _) => Err(NoMessage::Closed),
        }
    }

    /// Takes the next message.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<T, NoMessage> {
        if self.ordered {
            return self.take_cell();
        }
        if self.head == self.tail && !self.glance() {
            self.read_tail(self.head)?;
        }
        // SAFETY: the message at `head` is published, and the sender does not write to its slot before the head has
        // passed it. Only the receiver moves the head, because the policy is not `drop_oldest`. When the head has moved
        // past the message, this copy is its only owner.
        let message = unsafe {
            let copy = self.slots.copy(self.head);
            self.ring.advance(self.head, 1)?;
            self.advance_head(1);
            copy.assume_init()
        };
        if !W::ALL_ONE {
            self.count(std::slice::from_ref(&message));
        }
        Ok(message)
    }

    /// Takes at least one message and at most `max`, and appends them to a vector.
    pub(super) fn take_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, NoMessage> {
        let max = max.max(1) as u64;
        let before = messages.len();
        if self.ordered {
            self.take_cells(max)?;
            messages.reserve(self.cells.len());
            self.empty_cells(|message| messages.push(message));
            self.count(&messages[before..]);
            return Ok(messages.len() - before);
        }
        if self.tail - self.head < max && !self.glance() {
            self.read_tail(self.head)?;
        }
        let count = max.min(self.tail - self.head);
        messages.reserve(count as usize);
        for (at, spare) in (self.head..self.head + count).zip(messages.spare_capacity_mut()) {
            // SAFETY: the slots from `head` to `tail` hold published messages. Without `drop_oldest` only this end
            // takes them.
            *spare = unsafe { self.slots.copy(at) };
        }
        // SAFETY: `count` messages are published from `head` on, and only the receiver moves the head without
        // `drop_oldest`. They were copied behind `before`. When the head has moved past them, these copies are their only
        // owners.
        unsafe {
            self.ring.advance(self.head, count)?;
            self.advance_head(count);
            messages.set_len(before + count as usize);
        }
        if !W::ALL_ONE {
            self.count(&messages[before..]);
        }
        Ok(count as usize)
    }

    /// Takes the next message, with `drop_oldest`.
    #[inline(never)]
    pub(super) fn take_cell(&mut self) -> Result<T, NoMessage> {
        self.take_cells(1)?;
        let mut message = None;
        self.empty_cells(|it| message = Some(it));
        self.count(message.as_slice());
        message.ok_or(NoMessage::Closed)
    }

    /// Takes the cells of the next messages, from one to `max`, with `drop_oldest`.
    pub(super) fn take_cells(&mut self, max: u64) -> Result<(), NoMessage> {
        loop {
            let seen = self.ring.head.load(Ordering::Acquire);
            if seen & ABORTED != 0 {
                return Err(NoMessage::Aborted);
            }
            let head = position(seen);
            if self.tail < head.saturating_add(max) {
                self.read_tail(head)?;
            }
            let count = max.min(self.tail - head);
            let order = self.ring.order.as_ref();
            self.cells.clear();
            self.cells.extend(
                order
                    .into_iter()
                    .flat_map(|order| (head..head + count).map(|at| order.number(at))),
            );
            if self.ring.take(seen, count) {
                return Ok(());
            }
        }
    }

    /// Passes the messages of the taken cells to `pass`, and returns the cells to the sender, with `drop_oldest`.
    pub(super) fn empty_cells(&mut self, mut pass: impl FnMut(T)) {
        let Some(order) = &self.ring.order else {
            unreachable!("an edge that drops the oldest has an order");
        };
        for number in self.cells.drain(..) {
            // SAFETY: this end has moved the head past the position with this number, so only this end accesses the
            // cell until it returns the cell.
            let message = unsafe { self.slots.copy(u64::from(number)).assume_init() };
            order.give_back(self.returns, number);
            self.returns += 1;
            pass(message);
        }
    }

    /// Counts received messages.
    pub(super) fn count(&self, messages: &[T]) {
        if self.ring.statistics {
            let weight = messages.iter().map(W::weight).sum();
            self.ring.received.weight.add(weight);
        }
    }
}
