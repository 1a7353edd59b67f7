//! Carries out spawns: assigns addresses and memory, and schedules the first events.

use super::Engine;
use crate::contract::{Message, Spawn};
use crate::virtual_time::addresses::{Allocation, PAGE, PAGE_BITS};
use crate::virtual_time::event::Kind;
use crate::virtual_time::population::{Blueprint, Pages, SpawnRequest};
use crate::virtual_time::region::Prefault;
use crate::virtual_time::shard::Shard;
use std::sync::Arc;

impl<M: Message> Engine<M> {
    /// Carries out the requested spawns. Every shard processes the same spawns in the same order, and so assigns the
    /// same addresses.
    pub(super) fn spawn_all(&mut self, mut spawns: Vec<SpawnRequest<M, Shard<M>>>) {
        spawns.sort_by_key(|spawn| (spawn.time, spawn.parent, spawn.request));
        for SpawnRequest {
            time,
            parent,
            request,
            spawn,
            blueprint,
        } in spawns
        {
            let count = spawn.count();
            let on_demand = spawn.on_demand;
            let birth_time = time.saturating_add(self.shard().min_latency());
            if birth_time > self.shard().window.limit {
                // Whether another barrier precedes the limit depends on the width of windows, so the spawn is deferred
                // in any case.
                self.shard().defer_spawn(birth_time);
                continue;
            }
            let Some(first) = self.place(parent, spawn, blueprint, birth_time) else {
                return;
            };
            let shard = self.shard();
            let spawn = (time, parent, request);
            if shard.places.owns(parent) {
                let addresses = (first as u64) << 32 | count as u64;
                shard.announce(Kind::Spawned, parent, spawn, addresses);
            }
            if !on_demand {
                for actor in first..first + count {
                    if shard.places.owns(actor) {
                        shard.announce(Kind::Start, actor, spawn, 0);
                    }
                }
            }
        }
    }

    /// Assigns addresses to actors spawned together, and memory to those of this shard. They exist from
    /// `birth_time` on. Returns the first address.
    pub(super) fn place(
        &mut self,
        parent: u32,
        spawn: Spawn,
        blueprint: Arc<dyn Blueprint<M, Shard<M>>>,
        birth_time: u64,
    ) -> Option<u32> {
        let count = spawn.count();
        let Some(allocated) = self.shard().places.addresses.allocate(count) else {
            self.shard().counters.too_many = true;
            return None;
        };
        self.spawned += u64::from(count);
        match allocated {
            Allocation::Pages(page) => {
                self.place_in_pages(page, parent, spawn, blueprint, birth_time);
                Some(page << PAGE_BITS)
            }
            Allocation::Part { first, closed } => {
                if let Some(page) = closed {
                    self.shard().places.close_page(page);
                }
                if count > 0 && self.shard().places.owns(first) {
                    self.place_among_others(first, parent, spawn, blueprint, birth_time);
                }
                Some(first)
            }
        }
    }

    /// Places actors that have their own pages, from `page` on.
    fn place_in_pages(
        &mut self,
        page: u32,
        parent: u32,
        spawn: Spawn,
        blueprint: Arc<dyn Blueprint<M, Shard<M>>>,
        birth_time: u64,
    ) {
        let count = spawn.count();
        let own = self.shard.read(|shard| {
            (0..count.div_ceil(PAGE))
                .filter(|&number| shard.places.owns((page + number) << PAGE_BITS))
                .map(|number| (number, (count - number * PAGE).min(PAGE)))
                .collect()
        });
        let pages = Pages {
            first: page << PAGE_BITS,
            count,
            birth_time,
            own,
        };
        let mine = pages.own.iter().map(|&(_, actors)| actors).sum();
        if mine > 0 {
            let population = self.populations.insert(blueprint.build(&pages, self.shard));
            if self.out.len() > 1 {
                self.note_growing(population);
            }
            let places = &mut self.shard().places;
            places.add_group(page, parent, spawn, mine, population);
        }
    }

    /// Places actors that share a page of this shard with others.
    pub(super) fn place_among_others(
        &mut self,
        first: u32,
        parent: u32,
        spawn: Spawn,
        blueprint: Arc<dyn Blueprint<M, Shard<M>>>,
        birth_time: u64,
    ) {
        let populations = &mut self.populations;
        let population = *self
            .shared_populations
            .entry(blueprint.kind())
            .or_insert_with(|| {
                let shared = blueprint.shared_population(populations.next(), self.shard);
                populations.insert(shared)
            });
        let slots = blueprint.settle(spawn.count() as usize, birth_time);
        let places = &mut self.shard().places;
        places.add_batch(first, parent, spawn, population, slots);
    }

    /// Removes the spawns whose actors on this shard have all ended, and frees their memory.
    pub(super) fn forget_ended(&mut self) {
        self.shard().places.count_ended();
        // Totals are requested for all actors, so none is removed before the end of the run.
        if self.shard().settings.per_actor {
            self.shard().places.over.clear();
        }
        while let Some(last) = self.shard().places.over.pop() {
            let places = &self.shard().places;
            let Some(number) = places.population(last) else {
                continue;
            };
            if let Some(population) = self.populations.get(number) {
                // SAFETY: the actors have ended, none of their events is being delivered, and later events do not find
                // them.
                unsafe { population.clear(last) };
            }
            if self.shard().places.forget(last) {
                self.growing.retain(|&growing| growing != number);
                drop(self.populations.remove(number));
            }
        }
    }

    /// Adds a population to the list that is pre-faulted while the shard waits, if it has its own memory.
    fn note_growing(&mut self, number: u32) {
        let population = self.populations.get(number);
        let ahead = population.map(|population| population.populate_ahead());
        if ahead.is_some_and(|ahead| ahead != Prefault::Done) {
            self.growing.push(number);
        }
    }
}
