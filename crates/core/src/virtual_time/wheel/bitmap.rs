//! A bitmap of the slots of a level that have entries.

use super::SLOTS;

/// A bit for each slot, in machine words, because shifting 128-bit numbers takes a dozen instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bitmap([u64; SLOTS / WORD]);

const WORD: usize = u64::BITS as usize;

impl Bitmap {
    #[inline(always)]
    pub(super) fn has(&self, slot: usize) -> bool {
        self.0[slot / WORD % 2] >> (slot % WORD) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn set(&mut self, slot: usize) {
        self.0[slot / WORD % 2] |= 1 << (slot % WORD);
    }

    #[inline(always)]
    pub(super) fn clear(&mut self, slot: usize) {
        self.0[slot / WORD % 2] &= !(1 << (slot % WORD));
    }

    /// Returns the first slot after `slot` that has entries; [`SLOTS`] or more if there is none.
    #[inline(always)]
    pub(super) fn next_after(&self, slot: usize) -> usize {
        // Shifts twice, because a single shift by the word's width is not allowed.
        let word = self.0[slot / WORD % 2] >> (slot % WORD) >> 1;
        if word != 0 {
            return slot + 1 + word.trailing_zeros() as usize;
        }
        match slot < WORD {
            true => WORD + self.0[1].trailing_zeros() as usize,
            false => SLOTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_one_after_the_other() {
        let mut occupied = Bitmap::default();
        assert!((0..SLOTS).all(|slot| occupied.next_after(slot) >= SLOTS && !occupied.has(slot)));
        let slots = [0, 1, 5, 62, 63, 64, 65, 100, 127];
        slots.iter().for_each(|&slot| occupied.set(slot));
        for slot in 0..SLOTS {
            assert_eq!(occupied.has(slot), slots.contains(&slot));
            let next = slots.iter().copied().find(|&next| next > slot);
            assert_eq!(occupied.next_after(slot).min(SLOTS), next.unwrap_or(SLOTS));
        }
        slots.iter().for_each(|&slot| occupied.clear(slot));
        assert!((0..SLOTS).all(|slot| occupied.next_after(slot) >= SLOTS && !occupied.has(slot)));
    }
}
