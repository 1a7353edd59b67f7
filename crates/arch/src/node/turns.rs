//! Round robin: pieces of work take turns on the processors of an instance.
//!
//! A piece works for at most one time slice. Then it waits behind the pieces that are ready, if there are any.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The maximum error of sums of floats, in nanoseconds.
pub(super) const NOISE: f64 = 0.01;

/// Pieces of work, by their slots, that take turns. Times are in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Turns {
    /// The maximum number of pieces that work at once.
    most: usize,
    slice: f64,
    working: Vec<Turn>,
    /// The pieces that wait for a turn, with their remaining work.
    ready: VecDeque<(u32, f64)>,
}

/// A piece that works.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Turn {
    slot: u32,
    /// The remaining work.
    work: f64,
    /// The remaining time of the turn.
    time: f64,
}

impl Turns {
    pub(super) fn new(processors: f64, slice: u64) -> Turns {
        Turns {
            most: libm::ceil(processors) as usize,
            slice: slice as f64,
            working: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// Continues under other rules: those of [`Turns::new`].
    pub(super) fn revise(&mut self, processors: f64, slice: u64) {
        let before = std::mem::replace(self, Turns::new(processors, slice));
        (self.working, self.ready) = (before.working, before.ready);
        for turn in &mut self.working {
            turn.time = turn.time.min(self.slice);
        }
        while self.working.len() > self.most
            && let Some(last) = self.working.pop()
        {
            self.ready.push_front((last.slot, last.work));
        }
        self.fill();
    }

    /// Returns all pieces with their remaining work: first those that work, then those that wait.
    pub(super) fn left(self) -> impl Iterator<Item = (u32, f64)> {
        let working = self.working.into_iter().map(|turn| (turn.slot, turn.work));
        working.chain(self.ready)
    }

    /// Returns the number of pieces that work.
    pub(super) fn working(&self) -> usize {
        self.working.len()
    }

    /// Lets the working pieces work for `time` at `speed`.
    pub(super) fn advance(&mut self, time: f64, speed: f64) {
        for turn in &mut self.working {
            turn.work -= time * speed;
            turn.time -= time;
            if turn.time < 0.0 && self.ready.is_empty() {
                // Without other pieces, a turn follows another.
                turn.time = self.slice - libm::fmod(-turn.time, self.slice);
            }
        }
    }

    pub(super) fn begin(&mut self, slot: u32, work: f64) {
        self.ready.push_back((slot, work));
        self.fill();
    }

    /// Takes a piece that is done, and otherwise ends the turns whose time is over.
    pub(super) fn finish(&mut self) -> Option<u32> {
        if let Some(place) = self.working.iter().position(|turn| turn.work <= NOISE) {
            let done = self.working.remove(place).slot;
            self.fill();
            return Some(done);
        }
        for _ in 0..self.working.len() {
            let over = self.working.iter().position(|turn| turn.time <= NOISE);
            let Some(place) = over.filter(|_| !self.ready.is_empty()) else {
                break;
            };
            let over = self.working.remove(place);
            self.ready.push_back((over.slot, over.work));
            self.fill();
        }
        None
    }

    /// Returns the time at `speed` until a piece is done, or until a turn ends for another piece.
    pub(super) fn next(&self, speed: f64) -> Option<f64> {
        let has_others = !self.ready.is_empty();
        let ends = self.working.iter().map(|turn| {
            let done = turn.work / speed;
            let time = if has_others { turn.time } else { f64::INFINITY };
            done.min(time).max(0.0)
        });
        ends.reduce(f64::min)
    }

    pub(super) fn clear(&mut self) {
        self.working.clear();
        self.ready.clear();
    }

    /// Gives free processors to ready pieces.
    fn fill(&mut self) {
        while self.working.len() < self.most
            && let Some((slot, work)) = self.ready.pop_front()
        {
            self.working.push(Turn {
                slot,
                work,
                time: self.slice,
            });
        }
    }
}
