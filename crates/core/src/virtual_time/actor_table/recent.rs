//! A cache of the locations of actors that share pages. It is small, because sparse windows have events for few actors.

use super::{PAGE_BITS, SharedSlot};
use std::cell::Cell;
use std::ptr::NonNull;

/// The number of cached actors.
const RECENT: usize = 8;

/// The cache; see the [module](self).
pub(super) struct RecentSlots {
    slots: [Cell<Recent>; RECENT],
    /// The most recent group of actors with their own pages: first address, count and population.
    group: Cell<(u32, u32, u32)>,
}

/// An actor with its location.
#[derive(Clone, Copy)]
struct Recent {
    addr: u32,
    slot: SharedSlot,
}

impl Recent {
    /// Creates an empty entry, with an address that cannot occur at this index.
    const fn nothing(place: usize) -> Recent {
        Recent {
            addr: place as u32 ^ 1,
            slot: SharedSlot {
                slots: NonNull::dangling(),
                population: 0,
                index: 0,
                count: 0,
            },
        }
    }
}

/// Returns the index of an address in the cache.
#[inline(always)]
const fn place(addr: u32) -> usize {
    scatter(addr) % RECENT
}

/// Hashes an address for small tables. A hash is needed because actors that were spawned one after the other often have
/// the first addresses of pages.
#[inline(always)]
pub(in super::super) const fn scatter(addr: u32) -> usize {
    (addr ^ addr >> PAGE_BITS) as usize
}

impl RecentSlots {
    pub(super) fn new() -> RecentSlots {
        RecentSlots {
            slots: std::array::from_fn(|place| Cell::new(Recent::nothing(place))),
            group: Cell::new((0, 0, 0)),
        }
    }

    /// Returns the cached location of this actor.
    #[inline(always)]
    pub(super) fn get(&self, addr: u32) -> Option<SharedSlot> {
        let recent = self.slots[place(addr)].get();
        (recent.addr == addr).then_some(recent.slot)
    }

    /// Returns the population of this actor, if it is cached.
    #[inline(always)]
    pub(super) fn population(&self, addr: u32) -> Option<u32> {
        let (first, count, population) = self.group.get();
        if addr.wrapping_sub(first) < count {
            return Some(population);
        }
        self.get(addr).map(|slot| slot.population)
    }

    /// Returns the group of an actor, as its first address and its size, if it is cached.
    pub(super) fn group(&self, addr: u32) -> Option<(u32, u32)> {
        let (first, count, _) = self.group.get();
        (addr.wrapping_sub(first) < count).then_some((first, count))
    }

    /// Caches the population of a group.
    #[inline]
    pub(super) fn set_group(&self, first: u32, count: u32, population: u32) {
        self.group.set((first, count, population));
    }

    /// Clears the cached group.
    pub(super) fn forget_group(&self) {
        self.group.set((0, 0, 0));
    }

    /// Caches the location of an actor.
    #[inline]
    pub(super) fn set(&self, addr: u32, slot: SharedSlot) {
        self.slots[place(addr)].set(Recent { addr, slot });
    }

    /// Removes the cached locations of `count` actors from `first` on.
    pub(super) fn forget(&self, first: u32, count: u8) {
        for addr in first..first + u32::from(count) {
            if self.get(addr).is_some() {
                self.slots[place(addr)].set(Recent::nothing(place(addr)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_looked_for_last_is_remembered_until_it_is_forgotten() {
        let recent = RecentSlots::new();
        // An empty cache returns no location for any address.
        assert!((0..1 << 12).all(|addr| recent.get(addr).is_none()));
        assert!(recent.get(u32::MAX).is_none());
        let slot = |index| SharedSlot {
            slots: NonNull::dangling(),
            population: 3,
            index,
            count: 2,
        };
        for addr in [256, 257, 512] {
            recent.set(addr, slot(addr));
        }
        let index = |addr| recent.get(addr).map(|slot| slot.index);
        assert_eq!(
            [256, 257, 512].map(index),
            [Some(256), Some(257), Some(512)]
        );
        // An address with the same index replaces the cached one.
        recent.set(256 + RECENT as u32, slot(9));
        assert_eq!(index(256), None);
        recent.forget(257, 2);
        assert_eq!([257, 258, 512].map(index), [None, None, Some(512)]);
        recent.set_group(1024, 1000, 7);
        let population = |addr| recent.population(addr);
        assert_eq!(
            [512, 1023, 1024, 2023, 2024].map(population),
            [Some(3), None, Some(7), Some(7), None]
        );
        recent.forget_group();
        assert_eq!([0, 512, 1024].map(population), [None, Some(3), None]);
    }
}
