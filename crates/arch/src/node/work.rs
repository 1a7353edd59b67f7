//! The current work of an instance; each piece lasts until its timer fires.

use super::job::Job;
use super::sharing::Sharing;
use crate::topology::Costs;
use corsair::Token;
use serde::{Deserialize, Serialize};

/// The bit that marks timer tokens of work; the lower bits contain a generation and a slot.
const WORK: u32 = 1 << 30;
const SLOT_BITS: u32 = 22;
const GENERATIONS: u32 = 1 << 8;

/// The maximum number of jobs that an instance works on at once.
pub(super) const MOST: usize = 1 << SLOT_BITS;

/// A piece of work.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Piece {
    /// A job, with true if it fails when the work is done.
    Job(Job, bool),
    /// A step of the task with this number.
    Task(u32),
}

/// A piece of work in progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Work {
    piece: Piece,
    /// The end of the work in nanoseconds; during a pause, the remaining work. With shared processors, the end on a
    /// dedicated processor.
    due: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Slot {
    work: Option<Work>,
    /// A number that distinguishes the slot's current timer from timers that were set before a pause.
    generation: u32,
}

/// The jobs that an instance is working on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct InProgress {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The sharing of processors, if there is any.
    pub(super) sharing: Option<Box<Sharing>>,
}

impl InProgress {
    /// Creates an instance without work.
    pub(super) fn new(costs: &Costs) -> InProgress {
        let sharing = |processors| Box::new(Sharing::new(processors, costs.time_slice));
        InProgress {
            sharing: costs.processors.map(sharing),
            ..InProgress::default()
        }
    }

    /// True if another job fits.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < MOST
    }

    /// Returns the number of pieces in progress.
    pub(super) fn len(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Starts `work` in nanoseconds. Returns the delay and token of a new timer, if one is needed.
    pub(super) fn begin(&mut self, piece: Piece, work: u64, now: u64) -> Option<(u64, Token)> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let due = now.saturating_add(work);
        self.slots[slot as usize].work = Some(Work { piece, due });
        match &mut self.sharing {
            None => Some((work, self.arm(slot))),
            Some(sharing) => {
                sharing.begin(slot, work, now);
                sharing
                    .next_timer(now)
                    .map(|after| (after, super::TO_SHARE))
            }
        }
    }

    /// Takes the next piece of work on shared processors that is done at `now`, with the time in nanoseconds that it
    /// lost by sharing.
    pub(super) fn finish_shared(&mut self, now: u64) -> Option<(Piece, u64)> {
        let slot = self.sharing.as_mut()?.finish(now)?;
        let work = self.slots[slot as usize].work.take()?;
        self.free.push(slot);
        Some((work.piece, now.saturating_sub(work.due)))
    }

    fn arm(&mut self, slot: u32) -> Token {
        let generation = &mut self.slots[slot as usize].generation;
        *generation = (*generation + 1) % GENERATIONS;
        Token::new(WORK | *generation << SLOT_BITS | slot)
    }

    /// True if a timer belongs to work.
    pub(super) fn owns(token: Token) -> bool {
        token.number() & WORK != 0
    }

    /// Takes the work whose timer has fired; `None` if the timer is obsolete.
    pub(super) fn finish(&mut self, token: Token) -> Option<Piece> {
        let slot = token.number() & (MOST as u32 - 1);
        let entry = self.slots.get_mut(slot as usize)?;
        if token.number() != (WORK | entry.generation << SLOT_BITS | slot) {
            return None;
        }
        let work = entry.work.take()?;
        self.free.push(slot);
        Some(work.piece)
    }

    /// Returns the busy time of shared processors, as if all were busy together.
    pub(super) fn used(&mut self, now: u64) -> u64 {
        self.sharing.as_mut().map_or(0, |sharing| sharing.used(now))
    }

    /// Stops the clock of all work at `now`.
    pub(super) fn pause(&mut self, now: u64) {
        if let Some(sharing) = &mut self.sharing {
            return sharing.pause(now);
        }
        for work in self.slots.iter_mut().filter_map(|slot| slot.work.as_mut()) {
            work.due = work.due.saturating_sub(now);
        }
    }

    /// Resumes all work at `now`. Calls `set` with the remaining time and the timer's token for each piece of work,
    /// or once for the next timer if the work shares processors.
    pub(super) fn resume(&mut self, now: u64, mut set: impl FnMut(u64, Token)) {
        if let Some(sharing) = &mut self.sharing {
            sharing.resume(now);
            if let Some(after) = sharing.next_timer(now) {
                set(after, super::TO_SHARE);
            }
            return;
        }
        for slot in 0..self.slots.len() as u32 {
            if let Some(work) = &mut self.slots[slot as usize].work {
                let left = work.due;
                work.due = now.saturating_add(left);
                set(left, self.arm(slot));
            }
        }
    }

    /// Removes all work, and returns its jobs.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Job> + '_ {
        if let Some(sharing) = &mut self.sharing {
            sharing.clear();
        }
        let free = &mut self.free;
        (0..).zip(&mut self.slots).filter_map(|(slot, entry)| {
            let work = entry.work.take()?;
            free.push(slot);
            match work.piece {
                Piece::Job(job, _) => Some(job),
                Piece::Task(_) => None,
            }
        })
    }
}
