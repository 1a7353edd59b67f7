//! A cache of the locations of actors with recent events. It is small, because sparse windows have events for few
//! actors.

use super::AnyPopulation;
use crate::contract::Message;
use crate::virtual_time::header::HeaderCell;
use crate::virtual_time::population::Population;
use crate::virtual_time::shard::ShardCell;
use crate::virtual_time::slab::Slab;
use std::ptr::NonNull;

/// The number of cached actors outside the group.
const MOST: usize = 8;

/// A population of the shard. It does not move until the shard removes actors.
type PopulationPointer<M> = NonNull<dyn Population<M>>;

/// The population of an actor, and the actor's header if it is cached.
type CachedPlace<M> = (PopulationPointer<M>, Option<HeaderCell>);

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
    header: Option<HeaderCell>,
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

    /// Returns the population of a cached actor, and its header, if that is cached.
    #[inline(always)]
    pub(super) fn get(&self, addr: u32) -> Option<CachedPlace<M>> {
        let (first, count) = self.group;
        if addr.wrapping_sub(first) < count {
            return Some((self.population?, None));
        }
        let place = self.actors[place(addr)].as_ref()?;
        (place.addr == addr).then_some((place.population, place.header))
    }

    /// Looks up an actor that is not cached, and caches it. Returns `None` if the shard has no such actor. `populations`
    /// are those of the shard.
    #[inline(never)]
    pub(super) fn find(
        &mut self,
        shard: ShardCell<M>,
        populations: &Slab<AnyPopulation<M>>,
        addr: u32,
    ) -> Option<CachedPlace<M>> {
        let number = shard.read(|shard| shard.places.population(addr))?;
        let population = populations.get(number)?;
        let its = PopulationPointer::from(&**population);
        if let Some(group) = shard.read(|shard| shard.places.group(addr)) {
            (self.group, self.population) = (group, Some(its));
            return Some((its, None));
        }
        let header = population.header(addr);
        self.actors[place(addr)] = Some(CachedActor {
            addr,
            header,
            population: its,
        });
        Some((its, header))
    }
}

/// Returns the index of an address in the cache.
#[inline(always)]
const fn place(addr: u32) -> usize {
    crate::virtual_time::actor_table::scatter(addr) % MOST
}
