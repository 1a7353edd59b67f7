//! The cells of messages when the sender also takes messages at the head (`drop_oldest`).
//!
//! Positions hold numbers of cells. An end reads the number at a position before it moves the head past this position,
//! and then owns the cell with this number. The number cannot change before the head moves. The sender reuses cells
//! that it has emptied; the receiver returns the cells that it has emptied on a second ring. There are twice as many
//! cells as the capacity of the edge, so the sender finds a free cell even while the receiver is reading a full batch.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

#[derive(Debug)]
pub(super) struct Order {
    /// The number of the cell at each position. The length is a power of two.
    numbers: Box<[AtomicU32]>,
    /// The cells that the receiver returns; as long as `numbers`.
    returned: Box<[AtomicU32]>,
    /// The number of cells that have been returned.
    returns: CachePadded<AtomicU64>,
}

impl Order {
    /// Creates the order for `cells` cells; `cells` is a power of two.
    pub(super) fn new(cells: usize) -> Order {
        let numbers = || (0..cells).map(|_| AtomicU32::new(0)).collect();
        Order {
            numbers: numbers(),
            returned: numbers(),
            returns: CachePadded::new(AtomicU64::new(0)),
        }
    }

    fn at(list: &[AtomicU32], position: u64) -> &AtomicU32 {
        &list[position as usize & (list.len() - 1)]
    }

    /// Returns the number at this position. It is valid only if the head has not passed the position since.
    pub(super) fn number(&self, position: u64) -> u32 {
        Order::at(&self.numbers, position).load(Ordering::Relaxed)
    }

    /// Records the cell that the sender has filled at the tail. Publishing the tail publishes the number.
    fn put(&self, position: u64, number: u32) {
        Order::at(&self.numbers, position).store(number, Ordering::Relaxed);
    }

    /// Returns a cell that the receiver has emptied to the sender. `count` is the number of earlier returns.
    pub(super) fn give_back(&self, count: u64, number: u32) {
        Order::at(&self.returned, count).store(number, Ordering::Relaxed);
        self.returns.store(count + 1, Ordering::Release);
    }
}

/// The cells that the sender may fill.
#[derive(Debug)]
pub(super) struct Free {
    numbers: Vec<u32>,
    /// The number of the receiver's returns that are in `numbers`.
    fetched: u64,
}

impl Free {
    /// Creates a list of `cells` free cells.
    pub(super) fn all(cells: usize) -> Free {
        Free {
            numbers: (0..cells as u32).collect(),
            fetched: 0,
        }
    }

    /// Puts a free cell at this position.
    pub(super) fn fill(&mut self, order: &Order, at: u64) -> u64 {
        let number = self.take(order);
        order.put(at, number);
        u64::from(number)
    }

    /// Returns a free cell. There is one whenever the edge is not full.
    fn take(&mut self, order: &Order) -> u32 {
        if self.numbers.is_empty() {
            let returns = order.returns.load(Ordering::Acquire);
            self.numbers.extend(
                (self.fetched..returns)
                    .map(|count| Order::at(&order.returned, count).load(Ordering::Relaxed)),
            );
            self.fetched = returns;
        }
        self.numbers
            .pop()
            .expect("twice as many cells as messages leave one free")
    }

    /// Takes back a cell that the sender has emptied.
    pub(super) fn put(&mut self, number: u32) {
        self.numbers.push(number);
    }
}
