//! Processor sharing: all work in progress shares the processors of an instance evenly.
//!
//! All pieces of work get the same amount of service per unit of time. So a piece is done when the service per piece
//! has grown, since the piece began, by the work of the piece. A heap, ordered by the service at which each piece is
//! done, returns the next piece to finish.

use crate::saved::RestoreState;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pieces of work, by their slots, that share processors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sharing {
    #[serde(skip)]
    processors: f64,
    /// The work that each piece has received until `at`, in nanoseconds.
    served: f64,
    at: u64,
    /// The busy time in nanoseconds, summed over processors.
    used: f64,
    is_stopped: bool,
    /// The service at which each piece is done, as the bits of a non-negative float, which sort equally.
    done: BinaryHeap<Reverse<(u64, u32)>>,
    /// The due time of the current timer.
    timer: Option<u64>,
}

/// The maximum error of sums of floats, in nanoseconds.
const NOISE: f64 = 0.01;

impl RestoreState for Sharing {
    fn take_over(&mut self, saved: Sharing) {
        let processors = self.processors;
        *self = Sharing {
            processors,
            ..saved
        };
    }
}

impl Sharing {
    pub(super) fn new(processors: f64) -> Sharing {
        Sharing {
            processors,
            served: 0.0,
            at: 0,
            used: 0.0,
            is_stopped: false,
            done: BinaryHeap::new(),
            timer: None,
        }
    }

    /// Returns the fraction of a processor that each piece gets.
    fn speed(&self) -> f64 {
        (self.processors / self.done.len().max(1) as f64).min(1.0)
    }

    fn advance(&mut self, now: u64) {
        if !self.is_stopped && !self.done.is_empty() {
            let served = now.saturating_sub(self.at) as f64 * self.speed();
            self.served += served;
            self.used += served * self.done.len() as f64;
        }
        self.at = now;
    }

    /// Returns the busy time, as if all processors were busy together.
    pub(super) fn used(&mut self, now: u64) -> u64 {
        self.advance(now);
        (self.used / self.processors) as u64
    }

    /// Starts a piece of work, given in nanoseconds on a dedicated processor.
    pub(super) fn begin(&mut self, slot: u32, work: u64, now: u64) {
        self.advance(now);
        if self.done.is_empty() {
            self.served = 0.0;
        }
        let done = self.served + work as f64;
        self.done.push(Reverse((done.to_bits(), slot)));
    }

    /// Takes the next piece that is done at `now`.
    pub(super) fn finish(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        let &Reverse((done, slot)) = self.done.peek()?;
        if self.is_stopped || f64::from_bits(done) > self.served + NOISE {
            return None;
        }
        self.done.pop();
        Some(slot)
    }

    /// Returns the delay of a new timer, if the current timer is wrong.
    pub(super) fn next_timer(&mut self, now: u64) -> Option<u64> {
        self.advance(now);
        let next = self.done.peek().filter(|_| !self.is_stopped);
        let due = next.map(|&Reverse((done, _))| {
            let left = (f64::from_bits(done) - self.served).max(0.0) / self.speed();
            now.saturating_add(libm::ceil(left) as u64)
        });
        if due == self.timer {
            return None;
        }
        self.timer = due;
        due.map(|due| due - now)
    }

    /// True if the timer that has fired is the current one.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let is_due = self.timer.is_some_and(|due| now >= due);
        if is_due {
            self.timer = None;
        }
        is_due
    }

    pub(super) fn pause(&mut self, now: u64) {
        self.advance(now);
        self.is_stopped = true;
        self.timer = None;
    }

    pub(super) fn resume(&mut self, now: u64) {
        self.advance(now);
        self.is_stopped = false;
    }

    /// Removes all work.
    pub(super) fn clear(&mut self) {
        self.done.clear();
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pieces_share_a_processor_and_the_shorter_is_done_first() {
        let mut sharing = Sharing::new(1.0);
        sharing.begin(0, 100, 0);
        assert_eq!(sharing.next_timer(0), Some(100));
        sharing.begin(1, 20, 10);
        // Each piece has half a processor, so 20 ns of work take 40 ns.
        assert_eq!(sharing.next_timer(10), Some(40));
        assert!(sharing.is_due(50));
        assert_eq!((sharing.finish(50), sharing.finish(50)), (Some(1), None));
        // The other piece has received 10 + 20 ns, and 70 ns are left.
        assert_eq!(sharing.next_timer(50), Some(70));
        assert!(!sharing.is_due(100) && sharing.is_due(120));
        assert_eq!(sharing.finish(120), Some(0));
        assert_eq!(sharing.next_timer(120), None);
    }

    #[test]
    fn no_piece_has_more_than_one_processor_and_a_pause_stops_all() {
        let mut sharing = Sharing::new(4.0);
        sharing.begin(0, 100, 0);
        assert_eq!(sharing.next_timer(0), Some(100));
        sharing.pause(30);
        assert_eq!((sharing.finish(500), sharing.next_timer(500)), (None, None));
        sharing.resume(500);
        assert_eq!(sharing.next_timer(500), Some(70));
    }
}
