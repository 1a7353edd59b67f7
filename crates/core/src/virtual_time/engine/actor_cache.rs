//! A cache of the locations of actors with recent events. It is small, because sparse windows have events for few
//! actors.

use super::AnyPopulation;
use crate::contract::Message;
use crate::virtual_time::header::Header;
use crate::virtual_time::population::Population;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::slab::Slab;
use std::ptr::{NonNull, null_mut};

/// The number of cached actors outside the group.
const MOST: usize = 8;

/// A population of the shard.
type PopulationPointer<M> = NonNull<dyn Population<M, Shard<M>>>;

/// A cache of actors of one shard, valid until the shard removes actors.
pub(super) struct ActorCache<M: Message> {
    /// Actors that share pages with others.
    actors: [Option<CachedActor<M>>; MOST],
    /// The group that was looked up last: its first actor and its size.
    group: (u32, u32),
    population: Option<PopulationPointer<M>>,
}

/// The location of an actor.
struct CachedActor<M: Message> {
    addr: u32,
    slot: *mut Header,
    population: PopulationPointer<M>,
}

impl<M: Message> ActorCache<M> {
    pub(super) const fn new() -> ActorCache<M> {
        ActorCache {
            actors: [const { None }; MOST],
            group: (0, 0),
            population: None,
        }
    }

    /// Returns the population of a cached actor, and its slot, or null if the slot is not cached.
    #[inline(always)]
    pub(super) fn get(&self, addr: u32) -> Option<(PopulationPointer<M>, *mut Header)> {
        let (first, count) = self.group;
        if addr.wrapping_sub(first) < count {
            return Some((self.population?, null_mut()));
        }
        let place = self.actors[place(addr)].as_ref()?;
        (place.addr == addr).then_some((place.population, place.slot))
    }

    /// Looks up an actor that is not cached, and caches it. Returns `None` if the shard has no such actor.
    ///
    /// # Safety
    /// `populations` are those of the shard. The shard is valid, and no reference to it is held.
    #[inline(never)]
    pub(super) unsafe fn find(
        &mut self,
        shard: *mut Shard<M>,
        populations: &Slab<AnyPopulation<M>>,
        addr: u32,
    ) -> Option<(PopulationPointer<M>, *mut Header)> {
        // SAFETY: the shard is valid and no reference to it is held. A population does not move until the shard removes
        // actors, which clears the cache.
        unsafe {
            let population = populations.get((*shard).places.population(addr)?)?;
            let its = PopulationPointer::from(&**population);
            if let Some(group) = (*shard).places.group(addr) {
                (self.group, self.population) = (group, Some(its));
                return Some((its, null_mut()));
            }
            let slot = population.header(shard, addr);
            self.actors[place(addr)] = Some(CachedActor {
                addr,
                slot,
                population: its,
            });
            Some((its, slot))
        }
    }
}

/// Returns the index of an address in the cache.
#[inline(always)]
const fn place(addr: u32) -> usize {
    crate::virtual_time::actor_table::scatter(addr) % MOST
}
