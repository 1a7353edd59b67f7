//! What is said to registries, by them, and by those who look after services: it arrives in the order
//! in which it was said, whatever links do to it, and what must arrive is sent again where it is lost.

use crate::model::Model;
use rustc_hash::FxHashMap;

/// Something is sent again at most so often before the load has ended.
const MOST_TRIES: u64 = 10_000;

/// When the last message to each receiver arrives, where links may go wrong.
#[derive(Debug, Default)]
pub(crate) struct Ordered {
    due: FxHashMap<u32, u64>,
}

impl Ordered {
    /// After how long something that is said now arrives, in nanoseconds; none if a link loses it.
    /// `ends` are the numbers of sender and receiver, `travel` how long it takes on a link that is well.
    #[inline]
    pub(crate) fn once(
        &mut self,
        model: &Model,
        ends: (u32, u32),
        (now, travel): (u64, u64),
        bits: impl FnMut() -> u64,
    ) -> Option<u64> {
        if !model.has_links() {
            return Some(travel);
        }
        let fate = model.fate(ends.0, ends.1, now, bits);
        (!fate.is_lost).then(|| self.in_turn(ends.1, now, travel.saturating_add(fate.delay)))
    }

    /// The same of something that is sent again, as often as registries are asked, until it arrives: at
    /// the latest when the load has ended.
    #[inline]
    pub(crate) fn surely(
        &mut self,
        model: &Model,
        ends: (u32, u32),
        (now, travel): (u64, u64),
        mut bits: impl FnMut() -> u64,
    ) -> u64 {
        if !model.has_links() {
            return travel;
        }
        for again in 0..MOST_TRIES {
            let later = again.saturating_mul(model.poll);
            let sent = now.saturating_add(later);
            if sent >= model.load_ends {
                break;
            }
            let fate = model.fate(ends.0, ends.1, sent, &mut bits);
            if !fate.is_lost {
                let travel = later.saturating_add(travel).saturating_add(fate.delay);
                return self.in_turn(ends.1, now, travel);
            }
        }
        let left = model.load_ends.saturating_sub(now);
        self.in_turn(ends.1, now, left.saturating_add(travel))
    }

    /// Not before what was said to the same receiver before.
    fn in_turn(&mut self, to: u32, now: u64, travel: u64) -> u64 {
        let due = self.due.entry(to).or_default();
        *due = now.saturating_add(travel).max(*due);
        *due - now
    }
}
