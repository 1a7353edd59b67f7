//! Assignment of addresses to new actors, which depends only on the order of spawns.
//!
//! Every shard assigns the same addresses in the same order, and no address twice. Addresses are assigned in pages of
//! 256, each of which belongs to one shard. A spawn of half a page or more gets its own pages. Smaller spawns share 64
//! open pages, which are filled in turn. So actors that are spawned one by one are spread over the shards, and a
//! billion successive spawns use no more than a billion addresses. At most half of the addresses are lost at the ends
//! of pages.

/// The binary logarithm of [`PAGE`].
pub(super) const PAGE_BITS: u32 = 8;
/// The number of addresses in a page.
pub(super) const PAGE: u32 = 1 << PAGE_BITS;
/// The maximum number of pages: the next one would contain [`Addr::NONE`](crate::Addr::NONE).
const MAX_PAGES: u32 = (1 << (32 - PAGE_BITS)) - 1;
/// The number of pages that are filled in turn.
const OPEN: usize = 64;
/// The smallest spawn that gets its own pages.
const WHOLE: u32 = PAGE / 2;

/// The consecutive addresses of actors that are spawned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Allocation {
    /// All addresses of some pages, from this page on.
    Pages(u32),
    /// Addresses within one page, from this one on.
    Part {
        first: u32,
        /// The page that this spawn has filled, if there is one; it gets no more actors.
        closed: Option<u32>,
    },
}

/// The addresses that have not been assigned.
pub(super) struct Addresses {
    next_page: u32,
    /// The next address of each open page; pages that have not been opened are empty.
    open: [u32; OPEN],
    /// The index of the next open page.
    turn: usize,
}

/// The serialized form of [`Addresses`].
#[cfg(feature = "serde")]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct AddressesCheckpoint {
    next_page: u32,
    open: Vec<u32>,
    turn: u32,
}

#[cfg(feature = "serde")]
impl Addresses {
    pub(super) fn save(&self) -> AddressesCheckpoint {
        AddressesCheckpoint {
            next_page: self.next_page,
            open: self.open.to_vec(),
            turn: self.turn as u32,
        }
    }

    /// Restores the state; `None` if the addresses are invalid.
    pub(super) fn restore(saved: &AddressesCheckpoint) -> Option<Addresses> {
        let turn = saved.turn as usize;
        let known = saved.next_page <= MAX_PAGES && turn < OPEN;
        let open = saved.open.as_slice().try_into().ok()?;
        known.then_some(Addresses {
            next_page: saved.next_page,
            open,
            turn,
        })
    }
}

impl Addresses {
    pub(super) fn new() -> Addresses {
        Addresses {
            next_page: 0,
            open: [0; OPEN],
            turn: 0,
        }
    }

    /// Assigns addresses to `count` actors; `None` if there are not enough left.
    pub(super) fn allocate(&mut self, count: u32) -> Option<Allocation> {
        if count >= WHOLE {
            return self.pages(count.div_ceil(PAGE)).map(Allocation::Pages);
        }
        let open = self.open[self.turn];
        // The number of addresses left in the open page; 0 if it is full, because then `open` is the start of the next
        // page.
        let left = open.wrapping_neg() % PAGE;
        let (first, closed) = if left >= count.max(1) {
            (open, None)
        } else {
            let closed = (left > 0).then_some(open >> PAGE_BITS);
            (self.pages(1)? << PAGE_BITS, closed)
        };
        self.open[self.turn] = first + count;
        self.turn = (self.turn + 1) % OPEN;
        Some(Allocation::Part { first, closed })
    }

    fn pages(&mut self, count: u32) -> Option<u32> {
        let first = self.next_page;
        if count > MAX_PAGES - first {
            return None;
        }
        self.next_page += count;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Random;

    /// Returns the first address of each spawn; `counts` are the sizes of the spawns.
    fn first_of(addresses: &mut Addresses, counts: &[u32]) -> Vec<u32> {
        let first = |count: &u32| match addresses.allocate(*count).unwrap() {
            Allocation::Pages(page) => page * PAGE,
            Allocation::Part { first, .. } => first,
        };
        counts.iter().map(first).collect()
    }

    // Guarantee: core-23.
    #[test]
    fn no_address_is_dealt_out_twice_and_less_than_half_are_lost() {
        let mut random = Random::new(5);
        let spawned: &[u32] = if cfg!(miri) {
            &[7, 127]
        } else {
            &[1, 2, 7, 100, 127, 300, 1000]
        };
        for &most in spawned {
            let mut addresses = Addresses::new();
            let mut taken = std::collections::HashSet::new();
            let spawns = if cfg!(miri) { 3 } else { 3000 };
            for _ in 0..spawns {
                let count = 1 + random.below(most);
                let first = first_of(&mut addresses, &[count])[0];
                for address in first..first + count {
                    assert!(taken.insert(address), "{address} twice");
                }
                if count < WHOLE {
                    assert_eq!(first / PAGE, (first + count - 1) / PAGE, "within a page");
                }
            }
            let used = (addresses.next_page as usize).saturating_sub(OPEN) * PAGE as usize;
            assert!(used <= 2 * taken.len(), "{used} for {}", taken.len());
        }
    }

    #[test]
    fn single_actors_use_no_more_addresses_than_there_are_actors() {
        let mut addresses = Addresses::new();
        let spawns = if cfg!(miri) { 300 } else { 1 << 20 };
        (0..spawns).for_each(|_| assert!(addresses.allocate(1).is_some()));
        assert!(addresses.next_page <= spawns / PAGE + OPEN as u32);
    }

    #[test]
    fn the_root_is_first_and_a_page_that_is_full_is_not_closed_again() {
        let mut addresses = Addresses::new();
        assert_eq!(
            first_of(&mut addresses, &[1, 1, 600, 1]),
            [0, 256, 512, 1280]
        );
        // After 64 spawns the first page is used again.
        (3..OPEN).for_each(|_| assert!(addresses.allocate(1).is_some()));
        assert_eq!(first_of(&mut addresses, &[127]), [1]);
        (1..OPEN).for_each(|_| assert!(addresses.allocate(1).is_some()));
        assert_eq!(first_of(&mut addresses, &[127]), [128]);
        (1..OPEN).for_each(|_| assert!(addresses.allocate(1).is_some()));
        // One address is left in page 0, so two do not fit.
        let closed = addresses.allocate(2).unwrap();
        assert!(
            matches!(closed, Allocation::Part { closed: Some(0), first } if first > PAGE),
            "{closed:?}"
        );
    }

    #[test]
    fn nobody_gets_the_address_of_nobody() {
        let mut addresses = Addresses::new();
        assert_eq!(
            addresses.allocate(u32::MAX),
            None,
            "the last page is left out"
        );
        assert_eq!(
            addresses.allocate(MAX_PAGES * PAGE),
            Some(Allocation::Pages(0)),
            "all the others are there"
        );
        assert_eq!(
            (addresses.allocate(1), addresses.allocate(1000)),
            (None, None)
        );
        // A spawn without actors needs no address.
        let mut addresses = Addresses::new();
        assert_eq!(first_of(&mut addresses, &[0]), [0]);
    }
}
