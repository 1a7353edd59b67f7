//! Processor sharing: all work in progress shares the processors of an instance, evenly or in turns.

use super::turns::{NOISE, Turns};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pieces of work, by their slots, that share processors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sharing {
    processors: f64,
    pieces: Pieces,
    /// The time until which the pieces have worked, in nanoseconds.
    at: u64,
    /// The busy time in nanoseconds, summed over processors.
    used: f64,
    is_stopped: bool,
    /// The due time of the current timer.
    timer: Option<u64>,
}

/// The pieces of work, by their discipline.
#[derive(Debug, Serialize, Deserialize)]
enum Pieces {
    Even(Even),
    InTurns(Turns),
}

/// Pieces that all get the same amount of service per unit of time. So a piece is done when the service per piece has
/// grown, since the piece began, by the work of the piece.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Even {
    /// The work that each piece has received, in nanoseconds.
    served: f64,
    /// The service at which each piece is done, as the bits of a non-negative float, which sort equally.
    done: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Pieces {
    fn new(processors: f64, slice: Option<u64>) -> Pieces {
        match slice {
            None => Pieces::Even(Even::default()),
            Some(slice) => Pieces::InTurns(Turns::new(processors, slice)),
        }
    }

    fn begin(&mut self, slot: u32, work: f64) {
        match self {
            Pieces::Even(even) => even.begin(slot, work),
            Pieces::InTurns(turns) => turns.begin(slot, work),
        }
    }

    /// Returns all pieces with their remaining work.
    fn left(self) -> Vec<(u32, f64)> {
        match self {
            Pieces::Even(even) => even.left().collect(),
            Pieces::InTurns(turns) => turns.left().collect(),
        }
    }
}

impl Even {
    fn begin(&mut self, slot: u32, work: f64) {
        if self.done.is_empty() {
            self.served = 0.0;
        }
        let done = self.served + work;
        self.done.push(Reverse((done.to_bits(), slot)));
    }

    /// Returns the pieces in the order in which they end, with their remaining work.
    fn left(self) -> impl Iterator<Item = (u32, f64)> {
        let mut done: Vec<(u64, u32)> = self.done.into_iter().map(|Reverse(one)| one).collect();
        done.sort_unstable();
        let left = move |(done, slot)| (slot, (f64::from_bits(done) - self.served).max(0.0));
        done.into_iter().map(left)
    }

    fn finish(&mut self) -> Option<u32> {
        let &Reverse((done, slot)) = self.done.peek()?;
        if f64::from_bits(done) > self.served + NOISE {
            return None;
        }
        self.done.pop();
        Some(slot)
    }

    /// Returns the time at `speed` until a piece is done.
    fn next(&self, speed: f64) -> Option<f64> {
        let next = self.done.peek();
        next.map(|&Reverse((done, _))| (f64::from_bits(done) - self.served).max(0.0) / speed)
    }
}

impl Sharing {
    /// Creates processors without work. With a time slice in nanoseconds, pieces take turns.
    pub(super) fn new(processors: f64, slice: Option<u64>) -> Sharing {
        Sharing {
            processors,
            pieces: Pieces::new(processors, slice),
            at: 0,
            used: 0.0,
            is_stopped: false,
            timer: None,
        }
    }

    /// Continues under other rules: those of [`Sharing::new`].
    pub(super) fn revise(&mut self, processors: f64, slice: Option<u64>, now: u64) {
        self.advance(now);
        match (&mut self.pieces, slice) {
            (Pieces::Even(_), None) => {}
            (Pieces::InTurns(turns), Some(slice)) => turns.revise(processors, slice),
            // The discipline has changed: the pieces begin with the work that remains.
            (pieces, _) => {
                let before = std::mem::replace(pieces, Pieces::new(processors, slice));
                for (slot, work) in before.left() {
                    pieces.begin(slot, work);
                }
            }
        }
        // The busy time of all together stays.
        self.used *= processors / self.processors;
        self.processors = processors;
    }

    /// Returns the number of pieces that work.
    fn working(&self) -> usize {
        match &self.pieces {
            Pieces::Even(even) => even.done.len(),
            Pieces::InTurns(turns) => turns.working(),
        }
    }

    /// Returns the fraction of a processor that each working piece gets.
    fn speed(&self) -> f64 {
        (self.processors / self.working().max(1) as f64).min(1.0)
    }

    fn advance(&mut self, now: u64) {
        let working = self.working();
        if !self.is_stopped && working > 0 {
            let (time, speed) = (now.saturating_sub(self.at) as f64, self.speed());
            self.used += time * speed * working as f64;
            match &mut self.pieces {
                Pieces::Even(even) => even.served += time * speed,
                Pieces::InTurns(turns) => turns.advance(time, speed),
            }
        }
        self.at = now;
    }

    /// Returns the busy time, summed over processors.
    pub(super) fn used_by_all(&mut self, now: u64) -> f64 {
        self.used(now) as f64 * self.processors
    }

    /// Returns the busy time, as if all processors were busy together.
    pub(super) fn used(&mut self, now: u64) -> u64 {
        self.advance(now);
        (self.used / self.processors) as u64
    }

    /// Starts a piece of work, given in nanoseconds on a dedicated processor.
    pub(super) fn begin(&mut self, slot: u32, work: u64, now: u64) {
        self.advance(now);
        self.pieces.begin(slot, work as f64);
    }

    /// Takes the next piece that is done at `now`.
    pub(super) fn finish(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        match &mut self.pieces {
            _ if self.is_stopped => None,
            Pieces::Even(even) => even.finish(),
            Pieces::InTurns(turns) => turns.finish(),
        }
    }

    /// Returns the delay of a new timer, if the current timer is wrong.
    pub(super) fn next_timer(&mut self, now: u64) -> Option<u64> {
        self.advance(now);
        let speed = self.speed();
        let next = match &self.pieces {
            _ if self.is_stopped => None,
            Pieces::Even(even) => even.next(speed),
            Pieces::InTurns(turns) => turns.next(speed),
        };
        let due = next.map(|left| now.saturating_add(libm::ceil(left) as u64));
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
        match &mut self.pieces {
            Pieces::Even(even) => even.done.clear(),
            Pieces::InTurns(turns) => turns.clear(),
        }
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pieces_share_a_processor_and_the_shorter_is_done_first() {
        let mut sharing = Sharing::new(1.0, None);
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
        let mut sharing = Sharing::new(4.0, None);
        sharing.begin(0, 100, 0);
        assert_eq!(sharing.next_timer(0), Some(100));
        sharing.pause(30);
        assert_eq!((sharing.finish(500), sharing.next_timer(500)), (None, None));
        sharing.resume(500);
        assert_eq!(sharing.next_timer(500), Some(70));
    }

    /// Begins these pieces at the given times, and returns the slots in the order in which they are done, with the times.
    fn run(sharing: &mut Sharing, pieces: &[(u64, u64)]) -> Vec<(u32, u64)> {
        let (mut done, mut next, mut now) = (Vec::new(), 0, 0);
        let mut due = None;
        while done.len() < pieces.len() {
            let begins = pieces.get(next).map(|&(at, _)| at);
            now = match (begins, due) {
                (Some(begins), Some(due)) => u64::min(begins, due),
                (begins, due) => begins.or(due).unwrap_or(now),
            };
            if begins == Some(now) {
                sharing.begin(next as u32, pieces[next].1, now);
                next += 1;
            } else if sharing.is_due(now) {
                due = None;
                while let Some(slot) = sharing.finish(now) {
                    done.push((slot, now));
                }
            } else {
                due = None;
            }
            if let Some(after) = sharing.next_timer(now) {
                due = Some(now + after);
            }
        }
        done
    }

    #[test]
    fn pieces_take_turns_of_a_time_slice() {
        let mut sharing = Sharing::new(1.0, Some(10));
        // 0 works from 0 to 10, 1 to 20, 2 to 25, 0 to 35, 1 to 37, and 0 alone until it is done.
        let pieces = [(0, 40), (3, 12), (4, 5)];
        assert_eq!(run(&mut sharing, &pieces), [(2, 25), (1, 37), (0, 57)]);
        assert_eq!(sharing.used(100), 57);
        // A piece alone has one turn after another: the third begins at 120, and ends at 130.
        let mut sharing = Sharing::new(1.0, Some(10));
        let pieces = [(100, 100), (125, 5)];
        assert_eq!(run(&mut sharing, &pieces), [(1, 135), (0, 205)]);
    }

    #[test]
    fn turns_on_several_processors_and_parts_of_one() {
        let mut sharing = Sharing::new(2.0, Some(10));
        let pieces = [(0, 20), (0, 20), (0, 20)];
        assert_eq!(run(&mut sharing, &pieces), [(0, 20), (2, 30), (1, 30)]);
        let mut sharing = Sharing::new(0.5, Some(10));
        assert_eq!(run(&mut sharing, &[(0, 10), (0, 5)]), [(1, 20), (0, 30)]);
    }

    #[test]
    fn shorter_slices_come_closer_to_even_sharing() {
        let pieces: Vec<(u64, u64)> = (0..50).map(|n| (n * 700, 300 + n * n % 977)).collect();
        let mean = |slice| {
            let done = run(&mut Sharing::new(1.0, slice), &pieces);
            let took = done.iter().map(|&(slot, at)| at - pieces[slot as usize].0);
            took.sum::<u64>() as f64 / 50.0
        };
        let (even, one, long) = (mean(None), mean(Some(1)), mean(Some(1_000_000)));
        assert!((one / even - 1.0).abs() < 0.01, "{one} {even}");
        // Slices above every work are a queue.
        let (mut free, mut waited) = (0, 0);
        for &(at, work) in &pieces {
            free = u64::max(free, at) + work;
            waited += free - at;
        }
        assert_eq!(long, waited as f64 / 50.0);
    }

    #[test]
    fn saved_pieces_continue_under_other_rules() {
        let pieces = [(0, 40), (0, 20), (0, 30)];
        let saved = |slice| {
            let mut sharing = Sharing::new(1.0, slice);
            for (slot, &(_, work)) in (0..).zip(&pieces) {
                sharing.begin(slot, work, 0);
            }
            assert_eq!(sharing.finish(15), None);
            assert!(sharing.next_timer(15).is_some());
            let text = serde_json::to_string(&sharing).unwrap();
            serde_json::from_str::<Sharing>(&text).unwrap()
        };
        // 35, 15 and 25 are left, or in turns 25, 20 and 30: the first turn ends at 15.
        for (before, processors, after, ends) in [
            (None, 1.0, None, vec![(1, 60), (2, 80), (0, 90)]),
            (None, 1.0, Some(10), vec![(1, 50), (2, 75), (0, 90)]),
            (None, 2.0, Some(1), vec![(1, 37), (2, 47), (0, 58)]),
            (None, 3.0, None, vec![(1, 30), (2, 40), (0, 50)]),
            (Some(10), 1.0, None, vec![(1, 75), (0, 85), (2, 90)]),
            (Some(10), 1.0, Some(10), vec![(1, 55), (2, 85), (0, 90)]),
            (Some(10), 2.0, Some(1), vec![(1, 44), (0, 50), (2, 55)]),
            (None, 2.0, None, vec![(1, 38), (2, 48), (0, 58)]),
            (None, 0.5, None, vec![(1, 105), (2, 145), (0, 165)]),
            (None, 3.0, Some(10), vec![(1, 30), (2, 40), (0, 50)]),
            (Some(10), 3.0, Some(10), vec![(1, 35), (0, 40), (2, 45)]),
            (Some(10), 3.0, None, vec![(1, 35), (0, 40), (2, 45)]),
            (Some(10), 1.0, Some(1), vec![(1, 73), (0, 85), (2, 90)]),
        ] {
            let mut sharing = saved(before);
            sharing.revise(processors, after, 15);
            let (mut now, mut done) = (15, Vec::new());
            loop {
                sharing.next_timer(now);
                let Some(due) = sharing.timer else { break };
                now = due;
                assert!(sharing.is_due(now));
                while let Some(slot) = sharing.finish(now) {
                    done.push((slot, now));
                }
            }
            assert_eq!(done, ends, "{before:?} {processors} {after:?}");
            // The 15 ns of one processor count as those of all.
            let used = sharing.used - 15.0 * processors;
            // With two processors for all, three ends are rounded up by a third of a nanosecond.
            let rounded = if (processors, after) == (2.0, None) {
                1.0
            } else {
                0.0
            };
            assert!(
                (used - 75.0 - rounded).abs() < 1.0,
                "{before:?} {processors} {after:?}: {used}"
            );
        }
    }
}
