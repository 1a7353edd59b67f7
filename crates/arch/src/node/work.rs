//! Jobs that an instance is working on, each until its timer is due.

use super::job::Job;
use corsair::Token;

/// Timer tokens of work have this bit; below it a generation and a slot.
const WORK: u32 = 1 << 30;
const SLOT_BITS: u32 = 22;
const GENERATIONS: u32 = 1 << 8;

/// An instance works on at most this many jobs at once.
pub(super) const MOST: usize = 1 << SLOT_BITS;

/// A job in work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) job: Job,
    /// True if the job fails when the work is done.
    pub(super) fails: bool,
    /// When the work is done, in nanoseconds; while paused, how much of it is left.
    due: u64,
}

#[derive(Debug, Default)]
struct Slot {
    work: Option<Work>,
    /// Tells the timer that counts from those set before a pause.
    generation: u32,
}

/// The jobs that an instance is working on.
#[derive(Debug, Default)]
pub(super) struct InProgress {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl InProgress {
    /// Whether another job fits.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < MOST
    }

    /// Begins work that is done at `due`. Set a timer with the token that this returns.
    pub(super) fn begin(&mut self, job: Job, fails: bool, due: u64) -> Token {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].work = Some(Work { job, fails, due });
        self.arm(slot)
    }

    fn arm(&mut self, slot: u32) -> Token {
        let generation = &mut self.slots[slot as usize].generation;
        *generation = (*generation + 1) % GENERATIONS;
        Token::new(WORK | *generation << SLOT_BITS | slot)
    }

    /// Whether a timer is one of these.
    pub(super) fn owns(token: Token) -> bool {
        token.number() & WORK != 0
    }

    /// The work of which the timer has fired; none if the timer does not count any more.
    pub(super) fn finish(&mut self, token: Token) -> Option<Work> {
        let slot = token.number() & (MOST as u32 - 1);
        let entry = self.slots.get_mut(slot as usize)?;
        if token.number() != (WORK | entry.generation << SLOT_BITS | slot) {
            return None;
        }
        let work = entry.work.take()?;
        self.free.push(slot);
        Some(work)
    }

    /// Stops the clock of all work at `now`.
    pub(super) fn pause(&mut self, now: u64) {
        for work in self.slots.iter_mut().filter_map(|slot| slot.work.as_mut()) {
            work.due = work.due.saturating_sub(now);
        }
    }

    /// Goes on with all work at `now`: `set` is called with what is left of each, and its token.
    pub(super) fn resume(&mut self, now: u64, mut set: impl FnMut(u64, Token)) {
        for slot in 0..self.slots.len() as u32 {
            if let Some(work) = &mut self.slots[slot as usize].work {
                let left = work.due;
                work.due = now.saturating_add(left);
                set(left, self.arm(slot));
            }
        }
    }

    /// Removes all work.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Job> + '_ {
        let free = &mut self.free;
        (0..).zip(&mut self.slots).filter_map(|(slot, entry)| {
            let work = entry.work.take()?;
            free.push(slot);
            Some(work.job)
        })
    }
}
