//! A hierarchical timing wheel of windows.
//!
//! Entries are stored in levels of 128 slots, with one level per 7 bits of the window's number. Each level has a
//! bitmap, so that skipping empty windows costs no time (Varghese and Lauck, "Hashed and hierarchical timing wheels",
//! SOSP 1987). Adding is O(1). An entry moves down once per level: at most nine times, and at most once if it is due in
//! the near future.
//!
//! **Entries of one window leave in the order in which they were added.** An entry is added to a slot of a lower level
//! only while the current window is in the block of that slot. Entries that were in a higher level before were moved
//! down when the block was entered, so they come first.

mod bitmap;

use super::spare::{Piece, Spare};
use bitmap::Bitmap;

/// The entries of one window, or of a block of windows.
struct Slot<T> {
    /// The first added entry, until an entry leaves the slot. A window with one entry needs no further memory.
    first: Option<T>,
    /// The entries added last.
    last: Piece<T>,
    /// The pieces that are full. Their entries were added before the entries of `last`.
    full: Vec<Piece<T>>,
}

impl<T: Due> Slot<T> {
    fn new() -> Slot<T> {
        Slot {
            first: None,
            last: Piece::new(),
            full: Vec::new(),
        }
    }

    #[inline(always)]
    fn push(&mut self, entry: T, spare: &mut Spare<T>) {
        if self.last.len() >= self.last.capacity() {
            if self.last.capacity() == 0 && self.first.is_none() {
                self.first = Some(entry);
                return;
            }
            return self.push_slowly(entry, spare);
        }
        self.last.push(entry);
    }

    /// Adds an entry to a slot whose memory is full.
    #[cold]
    #[inline(never)]
    fn push_slowly(&mut self, entry: T, spare: &mut Spare<T>) {
        self.add_memory(spare);
        self.last.push(entry);
    }

    #[cold]
    #[inline(never)]
    fn add_memory(&mut self, spare: &mut Spare<T>) {
        if self.last.len() < T::PIECE {
            return spare.grow(&mut self.last);
        }
        let piece = spare.take(T::PIECE);
        self.full.push(std::mem::replace(&mut self.last, piece));
    }

    /// Calls `each` with all entries in the order in which they were added.
    #[inline]
    fn drain(&mut self, spare: &mut Spare<T>, mut each: impl FnMut(T)) {
        if let Some(entry) = self.first.take() {
            each(entry);
        }
        if self.last.capacity() > 0 {
            self.drain_more(spare, each);
        }
    }

    #[inline(never)]
    fn drain_more(&mut self, spare: &mut Spare<T>, mut each: impl FnMut(T)) {
        let last = std::mem::take(&mut self.last);
        for mut piece in self.full.drain(..).chain([last]) {
            piece.drain(&mut each);
            spare.push(piece);
        }
        // Frees the list, because it may be long before the slot has as many entries again.
        self.full = Vec::new();
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.full.iter().chain([&self.last]).flat_map(Piece::iter);
        self.first.iter().chain(more)
    }

    /// Removes every entry for which `keep` is false. Returns the number of remaining entries.
    fn retain(&mut self, mut keep: impl FnMut(&T) -> bool, spare: &mut Spare<T>) -> usize {
        self.first.take_if(|entry| !keep(entry));
        self.full
            .iter_mut()
            .for_each(|piece| piece.retain(&mut keep));
        self.last.retain(&mut keep);
        let pieces = self.full.extract_if(.., |piece| piece.is_empty());
        pieces.for_each(|piece| spare.push(piece));
        let left = self.iter().count();
        if left == 0 {
            spare.push(std::mem::take(&mut self.last));
        }
        left
    }
}

/// An entry of a wheel.
pub(super) trait Due {
    /// Returns the due time in nanoseconds.
    fn time(&self) -> u64;

    /// The length of the pieces in which longer lists are stored. Pieces never move and waste no memory. The length is
    /// a power of two, or `usize::MAX` for no pieces.
    const PIECE: usize;
}

const DIGIT: u32 = 7;
const SLOTS: usize = 1 << DIGIT;

struct Level<T> {
    /// The slots with entries.
    occupied: Bitmap,
    slots: Box<[Slot<T>]>,
}

/// Entries ordered by the window in which they are due.
pub(super) struct Wheel<T> {
    levels: Vec<Level<T>>,
    /// The current window: all entries of earlier windows have left.
    now: u64,
    /// The binary logarithm of a window's width in nanoseconds.
    window_bits: u32,
    /// The memory of emptied slots.
    spare: Spare<T>,
}

impl<T: Due> Wheel<T> {
    pub(super) fn new(window_bits: u32) -> Wheel<T> {
        Wheel {
            levels: Vec::new(),
            now: 0,
            window_bits,
            spare: Spare::new(),
        }
    }

    /// Creates an empty wheel with the same parameters.
    pub(super) fn empty(&self) -> Wheel<T> {
        Wheel {
            now: self.now,
            ..Wheel::new(self.window_bits)
        }
    }

    /// Adds an entry that is due after the current window.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: T) {
        let window = entry.time() >> self.window_bits;
        debug_assert!(window > self.now);
        self.place(window, entry);
    }

    #[inline(always)]
    fn place(&mut self, window: u64, entry: T) {
        let differs = window ^ self.now;
        match self.levels.first_mut() {
            Some(Level { occupied, slots }) if differs < SLOTS as u64 => {
                let slot = window as usize % SLOTS;
                occupied.set(slot);
                slots[slot].push(entry, &mut self.spare);
            }
            _ => self.place_in_block(window, entry),
        }
    }

    /// Adds an entry for a window in another block, or if the current block does not exist yet.
    #[inline(never)]
    fn place_in_block(&mut self, window: u64, entry: T) {
        let differs = window ^ self.now;
        let level = differs.checked_ilog2().unwrap_or(0) / DIGIT;
        let Some(Level { occupied, slots }) = self.levels.get_mut(level as usize) else {
            return self.place_higher(level, window, entry);
        };
        let slot = (window >> (DIGIT * level)) as usize % SLOTS;
        occupied.set(slot);
        slots[slot].push(entry, &mut self.spare);
    }

    /// Adds an entry to a level that may not exist yet.
    #[cold]
    #[inline(never)]
    fn place_higher(&mut self, level: u32, window: u64, entry: T) {
        while self.levels.len() <= level as usize {
            self.grow();
        }
        self.place_in_block(window, entry);
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (0..SLOTS).map(|_| Slot::new()).collect();
        self.levels.push(Level {
            occupied: Bitmap::default(),
            slots,
        });
    }

    /// Moves to a window. No entry may be due before it.
    #[inline]
    pub(super) fn advance(&mut self, window: u64) {
        let differs = window ^ self.now;
        self.now = window;
        if differs >= SLOTS as u64 {
            self.cascade(differs, window);
        }
    }

    /// Moves the entries of the blocks that were just entered to lower levels.
    #[cold]
    fn cascade(&mut self, differs: u64, window: u64) {
        for level in (1..self.levels.len()).rev() {
            let shift = DIGIT * level as u32;
            let slot = (window >> shift) as usize % SLOTS;
            let Level { occupied, slots } = &mut self.levels[level];
            if differs >> shift == 0 || !occupied.has(slot) {
                continue;
            }
            occupied.clear(slot);
            let Slot { first, last, full } = std::mem::replace(&mut slots[slot], Slot::new());
            if let Some(entry) = first {
                self.place(entry.time() >> self.window_bits, entry);
            }
            for mut piece in full.into_iter().chain([last]) {
                piece.drain(|entry| self.place(entry.time() >> self.window_bits, entry));
                self.spare.push(piece);
            }
        }
    }

    /// Returns true if an entry is due in the current window.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let now = self.now as usize % SLOTS;
        let nearest = self.levels.first();
        nearest.is_some_and(|level| level.occupied.has(now))
    }

    /// Takes the only entry that is due in the current window; `None` if several are due.
    #[inline(always)]
    pub(super) fn take_only(&mut self) -> Option<T> {
        let slot = self.now as usize % SLOTS;
        let Level { occupied, slots } = self.levels.first_mut()?;
        if slots[slot].last.capacity() > 0 {
            return None;
        }
        occupied.clear(slot);
        slots[slot].first.take()
    }

    /// Returns the number of entries due in the current window, if they are few.
    #[inline]
    pub(super) fn few_due(&self) -> Option<usize> {
        let slot = self
            .levels
            .first()
            .map(|level| &level.slots[self.now as usize % SLOTS]);
        slot.filter(|slot| slot.full.is_empty())
            .map(|slot| usize::from(slot.first.is_some()) + slot.last.len())
    }

    /// Calls `each` with the entries of the current window in the order in which they were added.
    #[inline]
    pub(super) fn drain(&mut self, each: impl FnMut(T)) {
        let Some(Level { occupied, slots }) = self.levels.first_mut() else {
            return;
        };
        let slot = self.now as usize % SLOTS;
        if !occupied.has(slot) {
            return;
        }
        occupied.clear(slot);
        slots[slot].drain(&mut self.spare, each);
    }

    /// Calls `each` with all entries and removes them, in no particular order.
    pub(super) fn take_all(&mut self, mut each: impl FnMut(T)) {
        for level in std::mem::take(&mut self.levels) {
            for mut slot in level.slots {
                slot.drain(&mut self.spare, &mut each);
            }
        }
    }

    /// Removes every entry for which `keep` is false; O(n). Returns the number of remaining entries.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) -> usize {
        let mut left = 0;
        for Level { occupied, slots } in &mut self.levels {
            for (index, slot) in slots.iter_mut().enumerate() {
                if !occupied.has(index) {
                    continue;
                }
                let here = slot.retain(&mut keep, &mut self.spare);
                left += here;
                if here == 0 {
                    occupied.clear(index);
                }
            }
        }
        left
    }

    /// Calls `each` with every entry; entries of one window in the order in which they were added.
    pub(super) fn for_each(&self, each: impl FnMut(&T)) {
        let slots = self.levels.iter().flat_map(|level| &level.slots);
        slots.flat_map(Slot::iter).for_each(each);
    }

    /// Returns the time of the first entry; O(n).
    pub(super) fn earliest(&self) -> Option<u64> {
        let slots = self.levels.iter().flat_map(|level| &level.slots);
        slots.flat_map(Slot::iter).map(Due::time).min()
    }

    /// Returns a window before which no entry is due; `u64::MAX` if there are no entries. The result is exact within
    /// the current block of 128 windows; otherwise it is the start of the next block with entries.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        let Some(Level { occupied, .. }) = self.levels.first() else {
            return u64::MAX;
        };
        let slot = self.now as usize % SLOTS;
        let next = occupied.next_after(slot);
        if next < SLOTS {
            return self.now - slot as u64 + next as u64;
        }
        self.next_block()
    }

    /// Returns the start of the next block with entries, when the current block has no further ones.
    #[inline(never)]
    fn next_block(&self) -> u64 {
        for (level, Level { occupied, .. }) in self.levels.iter().enumerate().skip(1) {
            let block = self.now.checked_shr(DIGIT * level as u32).unwrap_or(0);
            let slot = block as usize % SLOTS;
            let next = occupied.next_after(slot);
            if next < SLOTS {
                return (block + (next - slot) as u64) << (DIGIT * level as u32);
            }
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Random;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Entry(u64, u32);
    impl Due for Entry {
        const PIECE: usize = 32;

        fn time(&self) -> u64 {
            self.0
        }
    }

    /// Adds entries at random distances while time advances, and compares the wheel with a sorted map.
    fn compare_with_a_sorted_map(seed: u64, window_bits: u32, farthest_bits: u32, rounds: u32) {
        let mut random = Random::new(seed);
        let mut wheel = Wheel::new(window_bits);
        let mut map: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
        let mut window = 0u64;
        let mut serial = 0;
        for round in 0..rounds {
            for _ in 0..random.below(4) {
                let distance = 1 + (random.bits() >> (64 - 1 - random.below(farthest_bits)));
                let due = window.saturating_add(distance).min(u64::MAX >> window_bits);
                if due <= window {
                    continue;
                }
                let time = (due << window_bits) + random.below(1 << window_bits) as u64;
                let entry = Entry(time, serial);
                serial += 1;
                wheel.push(entry);
                map.entry(due).or_default().push(entry);
            }
            let bound = wheel.next();
            let exact = map.keys().next().copied().unwrap_or(u64::MAX);
            assert!(bound <= exact, "round {round}");
            let earliest = map
                .first_key_value()
                .and_then(|(_, due)| due.iter().map(Due::time).min());
            assert_eq!(wheel.earliest(), earliest);
            assert_eq!(bound == u64::MAX, exact == u64::MAX);
            if bound == u64::MAX {
                continue;
            }
            window = bound;
            wheel.advance(window);
            assert_eq!(wheel.is_due(), window == exact);
            let mut drained = Vec::new();
            let due = map.get(&window).map_or(0, Vec::len);
            if wheel.is_due() {
                // `few_due` does not count entries in pieces.
                let few = wheel.few_due();
                assert!(few.map_or(due >= Entry::PIECE, |few| few == due));
                let only = wheel.take_only();
                assert!(only.is_none() || due == 1);
                drained.extend(only);
            }
            wheel.drain(|entry| drained.push(entry));
            assert_eq!(drained, map.remove(&window).unwrap_or_default());
        }
    }

    // Guarantee: core-13.
    #[test]
    fn yields_what_a_sorted_map_yields_near_and_far() {
        let (seeds, rounds) = if cfg!(miri) { (1, 3) } else { (4, 5000) };
        for seed in 0..seeds {
            compare_with_a_sorted_map(seed, 0, 3, rounds);
            compare_with_a_sorted_map(seed, 4, 10, rounds);
            compare_with_a_sorted_map(seed, 20, 25, rounds);
            compare_with_a_sorted_map(seed, 10, 53, rounds);
        }
    }

    #[test]
    fn what_is_removed_never_leaves_and_the_rest_does() {
        const COUNT: u32 = if cfg!(miri) { 60 } else { 500 };
        let mut wheel = Wheel::new(4);
        for serial in 0..COUNT {
            wheel.push(Entry(u64::from(serial) * 977 + 16, serial));
        }
        assert_eq!(
            wheel.retain(|entry| entry.1 % 3 == 0),
            COUNT.div_ceil(3) as usize
        );
        let mut left = Vec::new();
        while wheel.next() != u64::MAX {
            wheel.advance(wheel.next());
            wheel.drain(|entry| left.push(entry.1));
        }
        assert_eq!(left, (0..COUNT).step_by(3).collect::<Vec<_>>());
        assert_eq!(wheel.retain(|_| false), 0);
    }

    #[test]
    fn an_entry_at_the_end_of_time_waits_there() {
        let mut wheel = Wheel::new(0);
        wheel.push(Entry(u64::MAX, 1));
        loop {
            let next = wheel.next();
            wheel.advance(next);
            let mut got = None;
            wheel.drain(|entry| got = Some(entry));
            if got.is_some() {
                assert_eq!((next, got), (u64::MAX, Some(Entry(u64::MAX, 1))));
                return;
            }
            assert!(next < u64::MAX);
        }
    }
}
