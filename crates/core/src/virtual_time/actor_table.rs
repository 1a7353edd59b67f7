//! One shard's table of actors: the shard of each address, the actors' lineage, and the location of the shard's own
//! actors in memory.
//!
//! The number of a page alone determines its shard, whether actors were spawned there or not, so an event finds the
//! same shard before and after a spawn. A shard stores only its own actors, and removes actors that were spawned
//! together when all of them have ended.

mod directory;
#[cfg(feature = "serde")]
mod export;
mod recent;

use super::addresses::{Addresses, PAGE, PAGE_BITS};
use super::slab::Slab;
use crate::contract::{Addr, Spawn};
use directory::BatchName;
pub(super) use directory::{Directory, NamedRange};
#[cfg(feature = "serde")]
pub(super) use export::addresses_of;
use recent::RecentSlots;
pub(super) use recent::scatter;
use std::cell::Cell;
use std::ptr::NonNull;

/// Actors that were spawned together and occupy one or more whole pages.
struct Group {
    first: u32,
    parent: u32,
    population: u32,
    spawn: Spawn,
    /// The number of the group's actors on this shard that have not ended.
    living: u32,
}

/// A few actors that were spawned together and share a page with others, all on this shard. The struct takes 40 bytes;
/// its size matters because there may be one for each actor.
struct Batch {
    first: u32,
    parent: u32,
    population: u32,
    count: u8,
    living: u8,
    watched: bool,
    /// The first actor's slot.
    slots: NonNull<u8>,
    name: BatchName,
}

/// A page of this shard.
#[derive(Clone, Copy)]
enum Page {
    /// A page of another shard, an unused page, or a removed one.
    None,
    /// All actors belong to one group.
    Whole { group: u32 },
    /// The actors of several batches.
    Shared { page: u32 },
}

/// A page that several batches share.
struct SharedPage {
    /// For each address, the number of its batch plus one; 0 if it has no actor.
    batches: [u32; PAGE as usize],
    living: u16,
    /// True if no further actors will be added.
    closed: bool,
}

/// The number of pages in a leaf of the directory, as a power of two.
const LEAF_BITS: u32 = if cfg!(miri) { 4 } else { 10 };

/// The number of consecutive pages after which the assignment of pages to shards repeats.
pub(super) const ROUND: u32 = if cfg!(miri) { 16 } else { 1024 };

/// Returns the page of an address modulo [`ROUND`]. Pages with equal results belong to one shard, however many shards
/// there are.
#[inline(always)]
pub(super) fn residue(address: u32) -> usize {
    ((address >> PAGE_BITS) % ROUND) as usize
}

/// The maximum number of addresses for which the table stores the names of ended actors, so that long runs need bounded
/// memory.
const NAMED: u32 = 64 * PAGE;

/// The location of an actor that shares a page.
#[derive(Clone, Copy)]
pub(super) struct SharedSlot {
    /// The slots of all actors of the same spawn.
    pub(super) slots: NonNull<u8>,
    pub(super) population: u32,
    /// The actor's index in `slots`.
    pub(super) index: u32,
    /// The number of slots in `slots`.
    pub(super) count: usize,
}

/// The parent of an actor, and its spawn.
#[derive(Clone, Copy)]
pub(super) struct Lineage {
    pub(super) parent: u32,
    /// True if the parent is notified of every end.
    pub(super) watched: bool,
}

/// Ended actors of one page that have not been counted yet, because the actors of a page often end one after the other.
struct Ending {
    /// The page; an invalid number if `count` is 0.
    page: u32,
    group: u32,
    count: u32,
    last: u32,
    lineage: Lineage,
}

impl Ending {
    const NONE: Ending = Ending {
        page: u32::MAX,
        group: 0,
        count: 0,
        last: 0,
        lineage: Lineage {
            parent: 0,
            watched: false,
        },
    };
}

/// The actors of a shard and their locations.
pub(super) struct ActorTable {
    index: usize,
    shards: usize,
    /// The shard of each page, by its number modulo [`ROUND`].
    owners: Box<[u16]>,
    /// The page that was looked up last, modulo [`ROUND`], and its shard.
    last_owner: Cell<(u32, u32)>,
    pub(super) addresses: Addresses,
    directory: Vec<Option<Box<[Page; 1 << LEAF_BITS]>>>,
    groups: Slab<Group>,
    batches: Slab<Batch>,
    shared: Slab<Box<SharedPage>>,
    ending: Ending,
    /// For each finished spawn, its last actor on this shard.
    pub(super) over: Vec<u32>,
    /// Removed spawns whose names are still stored.
    ended: Vec<NamedRange>,
    /// A cache of the locations of actors that share pages, by address.
    recent: RecentSlots,
}

// SAFETY: the pointers lead to memory of the shard's populations, which only the shard's thread uses. This table does
// not dereference them.
unsafe impl Send for ActorTable {}

impl ActorTable {
    pub(super) fn new(index: usize, shards: usize) -> ActorTable {
        ActorTable {
            index,
            shards,
            // The root and the first actor that it spawns are on the same shard: without other actors, they exchange
            // messages with each other.
            owners: (0..ROUND as usize)
                .map(|page| (page.saturating_sub(1) % shards) as u16)
                .collect(),
            last_owner: Cell::new((0, 0)),
            addresses: Addresses::new(),
            directory: Vec::new(),
            groups: Slab::new(),
            batches: Slab::new(),
            shared: Slab::new(),
            ending: Ending::NONE,
            over: Vec::new(),
            ended: Vec::new(),
            recent: RecentSlots::new(),
        }
    }

    /// Returns the shard of an address, whether an actor has it or not.
    #[inline(always)]
    pub(super) fn owner(&self, to: u32) -> usize {
        if self.shards == 1 {
            return 0;
        }
        // The page is often the same as before. The processor predicts this, and continues before the loads are
        // complete.
        let (residue, last) = (residue(to), self.last_owner.get());
        if last.0 == residue as u32 {
            return last.1 as usize;
        }
        let owner = self.owners[residue];
        self.last_owner.set((residue as u32, owner.into()));
        owner.into()
    }

    /// True if the address belongs to this shard.
    #[inline]
    pub(super) fn owns(&self, addr: u32) -> bool {
        self.owner(addr) == self.index
    }

    #[inline(always)]
    fn page(&self, number: u32) -> Page {
        match self.directory.get((number >> LEAF_BITS) as usize) {
            Some(Some(leaf)) => leaf[number as usize % (1 << LEAF_BITS)],
            _ => Page::None,
        }
    }

    fn set_page(&mut self, number: u32, page: Page) {
        let leaf = (number >> LEAF_BITS) as usize;
        if self.directory.len() <= leaf {
            self.directory.resize_with(leaf + 1, || None);
        }
        let leaf =
            self.directory[leaf].get_or_insert_with(|| Box::new([Page::None; 1 << LEAF_BITS]));
        leaf[number as usize % (1 << LEAF_BITS)] = page;
    }

    /// Removes a page, and the page's leaf if the leaf becomes empty.
    fn clear_page(&mut self, number: u32) {
        let Some(place) = self.directory.get_mut((number >> LEAF_BITS) as usize) else {
            return;
        };
        if let Some(leaf) = place {
            leaf[number as usize % (1 << LEAF_BITS)] = Page::None;
            if leaf.iter().all(|page| matches!(page, Page::None)) {
                *place = None;
            }
        }
    }

    /// Returns the population of the actor with this address, if the actor is on this shard.
    #[inline]
    pub(super) fn population(&self, addr: u32) -> Option<u32> {
        let recent = self.recent.population(addr);
        recent.or_else(|| self.find_population(addr))
    }

    #[inline(never)]
    fn find_population(&self, addr: u32) -> Option<u32> {
        match self.page(addr >> PAGE_BITS) {
            Page::None => None,
            Page::Whole { group } => {
                let group = self.groups.get(group)?;
                let (first, count) = (group.first, group.spawn.count());
                if addr.wrapping_sub(first) >= count {
                    return None;
                }
                self.recent.set_group(first, count, group.population);
                Some(group.population)
            }
            Page::Shared { .. } => self.batch(addr).map(|batch| batch.population),
        }
    }

    /// Returns the group of an actor, as its first address and its size, if the population of that group was looked up
    /// last.
    pub(super) fn group(&self, addr: u32) -> Option<(u32, u32)> {
        self.recent.group(addr)
    }

    #[inline(always)]
    fn batch_number(&self, addr: u32) -> Option<u32> {
        let Page::Shared { page } = self.page(addr >> PAGE_BITS) else {
            return None;
        };
        self.shared.get(page)?.batches[(addr % PAGE) as usize].checked_sub(1)
    }

    #[inline(always)]
    fn batch(&self, addr: u32) -> Option<&Batch> {
        self.batches.get(self.batch_number(addr)?)
    }

    /// Returns the location of an actor that shares a page.
    #[inline(always)]
    pub(super) fn shared_slot(&self, addr: u32) -> Option<SharedSlot> {
        let recent = self.recent.get(addr);
        recent.or_else(|| self.find_shared_slot(addr))
    }

    #[inline]
    fn find_shared_slot(&self, addr: u32) -> Option<SharedSlot> {
        let batch = self.batch(addr)?;
        let slot = SharedSlot {
            slots: batch.slots,
            population: batch.population,
            index: addr - batch.first,
            count: batch.count.into(),
        };
        self.recent.set(addr, slot);
        Some(slot)
    }

    /// Returns the lineage of an actor of this shard.
    fn lineage(&self, addr: u32) -> Option<Lineage> {
        match self.page(addr >> PAGE_BITS) {
            Page::None => None,
            Page::Whole { group } => self.groups.get(group).map(|group| Lineage {
                parent: group.parent,
                watched: group.spawn.watched,
            }),
            Page::Shared { .. } => self.batch(addr).map(|batch| Lineage {
                parent: batch.parent,
                watched: batch.watched,
            }),
        }
    }

    /// Returns the parent of an actor of this shard.
    pub(super) fn parent_of(&self, addr: u32) -> u32 {
        self.lineage(addr)
            .map_or(u32::MAX, |lineage| lineage.parent)
    }

    /// Returns an actor's name, which is built when it is needed; the address if the actor is on another shard.
    pub(super) fn name_of(&self, addr: u32) -> String {
        let name = match self.page(addr >> PAGE_BITS) {
            Page::None => None,
            Page::Whole { group } => {
                let group = self.groups.get(group);
                group.map(|group| group.spawn.name(addr - group.first))
            }
            Page::Shared { .. } => {
                let batch = self.batch(addr);
                batch.map(|batch| batch.name.to_names().get(addr - batch.first))
            }
        };
        name.unwrap_or_else(|| Addr(addr).to_string())
    }

    /// Adds actors that have their own pages from `page` on. `mine` of the actors are on this shard.
    pub(super) fn add_group(
        &mut self,
        page: u32,
        parent: u32,
        spawn: Spawn,
        mine: u32,
        population: u32,
    ) {
        let pages = page..page + spawn.count().div_ceil(PAGE);
        let group = self.groups.insert(Group {
            first: page << PAGE_BITS,
            parent,
            population,
            spawn,
            living: mine,
        });
        for number in pages {
            if self.owns(number << PAGE_BITS) {
                self.set_page(number, Page::Whole { group });
            }
        }
    }

    /// Adds actors of this shard that share a page, with their location.
    pub(super) fn add_batch(
        &mut self,
        first: u32,
        parent: u32,
        spawn: Spawn,
        population: u32,
        slots: NonNull<u8>,
    ) {
        let count = u8::try_from(spawn.count()).expect("fewer than half a page");
        let number = self.batches.insert(Batch {
            first,
            parent,
            population,
            count,
            living: count,
            watched: spawn.watched,
            slots,
            name: BatchName::new(spawn.names),
        });
        let page = match self.page(first >> PAGE_BITS) {
            Page::Shared { page } => page,
            _ => {
                let page = self.shared.insert(Box::new(SharedPage {
                    batches: [0; PAGE as usize],
                    living: 0,
                    closed: false,
                }));
                self.set_page(first >> PAGE_BITS, Page::Shared { page });
                page
            }
        };
        let shared = self.shared.get_mut(page).expect("just seen or made");
        let place = (first % PAGE) as usize;
        shared.batches[place..place + usize::from(count)].fill(number + 1);
        shared.living += 1;
        // The page's last address has been assigned.
        shared.closed |= place + usize::from(count) == PAGE as usize;
    }

    /// Marks a page that gets no more actors.
    pub(super) fn close_page(&mut self, number: u32) {
        if let Page::Shared { page } = self.page(number)
            && let Some(shared) = self.shared.get_mut(page)
        {
            shared.closed = true;
            self.forget_page(number, page);
        }
    }

    /// Removes a shared page if all of its actors have ended and no more will be added.
    fn forget_page(&mut self, number: u32, page: u32) {
        let shared = self.shared.get(page);
        if shared.is_some_and(|shared| shared.closed && shared.living == 0) {
            self.shared.remove(page);
            self.clear_page(number);
        }
    }

    /// Records the end of an actor of this shard. Returns its lineage.
    #[inline(always)]
    pub(super) fn ended(&mut self, addr: u32) -> Option<Lineage> {
        if addr >> PAGE_BITS == self.ending.page {
            self.ending.count += 1;
            self.ending.last = addr;
            return Some(self.ending.lineage);
        }
        self.first_ended(addr)
    }

    /// Records the end of an actor whose page differs from the page of the actor that ended before.
    #[inline(never)]
    fn first_ended(&mut self, addr: u32) -> Option<Lineage> {
        self.count_ended();
        let page = addr >> PAGE_BITS;
        match self.page(page) {
            Page::None => None,
            Page::Whole { group } => {
                let known = self.groups.get(group)?;
                let (parent, watched) = (known.parent, known.spawn.watched);
                let lineage = Lineage { parent, watched };
                self.ending = Ending {
                    page,
                    group,
                    count: 1,
                    last: addr,
                    lineage,
                };
                Some(lineage)
            }
            Page::Shared { .. } => {
                let number = self.batch_number(addr)?;
                let batch = self.batches.get_mut(number)?;
                batch.living -= 1;
                let (parent, watched) = (batch.parent, batch.watched);
                if batch.living == 0 {
                    self.over.push(addr);
                }
                Some(Lineage { parent, watched })
            }
        }
    }

    /// True if actors have ended since ended actors were last removed.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.ending.page != Ending::NONE.page || !self.over.is_empty()
    }

    /// Counts the ended actors that have not been counted yet, which completes `over`.
    pub(super) fn count_ended(&mut self) {
        let Ending {
            page,
            group,
            count,
            last,
            ..
        } = std::mem::replace(&mut self.ending, Ending::NONE);
        if page != Ending::NONE.page
            && let Some(group) = self.groups.get_mut(group)
        {
            group.living -= count;
            if group.living == 0 {
                self.over.push(last);
            }
        }
    }

    /// Removes all actors of a spawn, given the last of them on this shard. Returns true if they had their own
    /// population.
    pub(super) fn forget(&mut self, last: u32) -> bool {
        let number = last >> PAGE_BITS;
        let named = match self.page(number) {
            Page::None => return false,
            Page::Whole { group } => {
                let Some(group) = self.groups.remove(group) else {
                    return false;
                };
                let (first, count) = (group.first, group.spawn.count());
                self.recent.forget_group();
                let page = first >> PAGE_BITS;
                for number in page..page + count.div_ceil(PAGE) {
                    if self.owns(number << PAGE_BITS) {
                        self.clear_page(number);
                    }
                }
                let names = group.spawn.names;
                self.remember(NamedRange {
                    first,
                    count,
                    names,
                });
                return true;
            }
            Page::Shared { page } => {
                let batch = self.batch_number(last);
                let Some(batch) = batch.and_then(|number| self.batches.remove(number)) else {
                    return false;
                };
                self.recent.forget(batch.first, batch.count);
                let shared = self.shared.get_mut(page).expect("its batch was there");
                let place = (batch.first % PAGE) as usize;
                shared.batches[place..place + usize::from(batch.count)].fill(0);
                shared.living -= 1;
                self.forget_page(number, page);
                NamedRange {
                    first: batch.first,
                    count: batch.count.into(),
                    names: batch.name.into_names(),
                }
            }
        };
        self.remember(named);
        false
    }

    /// Keeps the names of removed actors.
    fn remember(&mut self, named: NamedRange) {
        if named.first < NAMED {
            self.ended.push(named);
        }
    }

    /// Returns the names of all actors that this shard knows.
    pub(super) fn names(&mut self) -> Vec<NamedRange> {
        let mut names = std::mem::take(&mut self.ended);
        names.extend(self.groups.iter().map(|group| NamedRange {
            first: group.first,
            count: group.spawn.count(),
            names: group.spawn.names.clone(),
        }));
        names.extend(self.batches.iter().map(|batch| NamedRange {
            first: batch.first,
            count: batch.count.into(),
            names: batch.name.to_names(),
        }));
        names
    }

    /// Iterates over the spawns with actors on this shard: the first address and the population.
    pub(super) fn spawns(&self) -> impl Iterator<Item = (u32, u32)> {
        let groups = self.groups.iter();
        let groups = groups.map(|group| (group.first, group.population));
        let batches = self
            .batches
            .iter()
            .map(|batch| (batch.first, batch.population));
        groups.chain(batches)
    }

    /// Returns the first address that an actor has spawned, among spawns with actors on this shard.
    #[cfg(feature = "serde")]
    pub(super) fn first_spawned_by(&self, parent: u32) -> Option<u32> {
        let groups = self.groups.iter().map(|group| (group.parent, group.first));
        let batches = self.batches.iter().map(|batch| (batch.parent, batch.first));
        let all = groups.chain(batches);
        all.filter_map(|(by, first)| (by == parent).then_some(first))
            .min()
    }

    /// Iterates over all actors of this shard in the order of addresses, with their populations.
    pub(super) fn actors(&self) -> impl Iterator<Item = (u32, u32)> {
        let leaves = self.directory.iter().enumerate();
        let pages = leaves.filter_map(|(leaf, pages)| Some((leaf as u32, pages.as_ref()?)));
        let numbers = pages.flat_map(|(leaf, pages)| {
            let number = move |page: usize| leaf << LEAF_BITS | page as u32;
            (0..pages.len())
                .filter(|&page| !matches!(pages[page], Page::None))
                .map(number)
        });
        let addresses =
            numbers.flat_map(|number| (0..PAGE).map(move |at| number << PAGE_BITS | at));
        addresses.filter_map(|addr| Some((addr, self.population(addr)?)))
    }
}
