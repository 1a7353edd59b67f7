//! Where messages lie if the sender, too, takes them out at the head (`drop_oldest`).
//!
//! Positions hold numbers of cells. The end that moves the head past a position owns the cell whose number it
//! has read there before: no other number can have been written there as long as the head had
//! not moved. The sender reuses cells it has emptied itself; those emptied by the receiver come
//! back to it on a second ring. With twice as many cells as the edge holds messages, a receiver may
//! hold a full batch, and the sender still finds a free one.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

#[derive(Debug)]
pub(super) struct Order {
    /// The number of the cell at each position. The length is a power of two.
    numbers: Box<[AtomicU32]>,
    /// Cells that the receiver returns. Has the length of `numbers`.
    returned: Box<[AtomicU32]>,
    /// How many cells have been returned.
    returns: CachePadded<AtomicU64>,
}

impl Order {
    /// Creates the order for this many cells, a power of two.
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

    /// The number at this position. It counts only if the head has not passed the position since.
    pub(super) fn number(&self, position: u64) -> u32 {
        Order::at(&self.numbers, position).load(Ordering::Relaxed)
    }

    /// The sender puts a cell at the tail; publishing the tail publishes the number.
    fn put(&self, position: u64, number: u32) {
        Order::at(&self.numbers, position).store(number, Ordering::Relaxed);
    }

    /// The receiver gives back the cell that it has emptied as its `count`-th, from 0.
    pub(super) fn give_back(&self, count: u64, number: u32) {
        Order::at(&self.returned, count).store(number, Ordering::Relaxed);
        self.returns.store(count + 1, Ordering::Release);
    }
}

/// The cells that the sender may fill.
#[derive(Debug)]
pub(super) struct Free {
    numbers: Vec<u32>,
    /// How many of the receiver's returns are in `numbers`.
    fetched: u64,
}

impl Free {
    /// Returns this many free cells.
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

    /// A free cell. There is one whenever the edge holds less than it can.
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

    /// A cell that the sender has emptied itself.
    pub(super) fn put(&mut self, number: u32) {
        self.numbers.push(number);
    }
}
