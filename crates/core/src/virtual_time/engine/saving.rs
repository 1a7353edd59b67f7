//! Serializes a shard while it is paused.

use super::Engine;
use crate::contract::{Addr, Message};
use crate::virtual_time::actor_table::{ActorTable, addresses_of};
use crate::virtual_time::event::{Head as EventHead, Kind, ScheduledEvent, TIMER_FROM, TIMER_SEQ};
use crate::virtual_time::header::{HeaderCell, State};
use crate::virtual_time::outbox::RING;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::travel::{
    Codec, CodecError, Common, EncodedList, Extent, Index, Kinds, PageDataBuffers, PartData,
    SavedBatch, SavedGroup, SavedOrigin, SavedPage, SnapshotError, put, put_number, write_spawn,
};

/// The number of living actors, and the number of living actors that have begun.
#[derive(Default)]
struct Census {
    living: u32,
    live: u32,
}

impl<M: Message> Engine<M> {
    /// Returns the state that all shards agree on.
    pub(super) fn common(&mut self) -> Common {
        let (spawned, windows, counted) = (self.spawned, self.windows, self.counted);
        let shard = self.shard();
        Common {
            window: shard.window.number,
            spawns_wait_from: shard.spawns_wait_from,
            spawned,
            windows,
            counted,
            addresses: shard.places.addresses.save(),
        }
    }

    /// Serializes the state of this shard, and the shared state of its process unless another shard does that. The run
    /// does not change.
    pub(super) fn save(
        &mut self,
        kinds: &Kinds<M>,
        with_state: bool,
    ) -> Result<Vec<u8>, SnapshotError> {
        let state = match with_state {
            true => kinds.save_state(),
            false => Ok(Vec::new()),
        };
        let mut to = Vec::new();
        let busy = self.busy;
        let shard = self.shard();
        let data = PartData {
            busy,
            counters: shard.counters.clone(),
            actor_records: shard.actor_records(),
            names: shard.places.forgotten_names().to_vec(),
            closed: shard.places.closed_pages(),
            state: state.map_err(|error| written("what a process has", error))?,
        };
        let mut page_data = PageDataBuffers::new();
        self.save_batches(&mut page_data)?;
        self.save_spawns(&mut page_data)?;
        self.save_events(&kinds.codec(), &mut page_data)
            .map_err(|error| written("a message", error))?;
        let index = Index {
            data,
            groups: self.save_groups(&mut to)?,
            page_data: page_data.write(&mut to),
        };
        let sealed = index.seal(&mut to);
        sealed.map_err(|error| written("the counters of a shard", error))?;
        Ok(to)
    }

    /// Saves the actors with their own pages, page by page.
    fn save_groups(
        &self,
        to: &mut Vec<u8>,
    ) -> Result<Vec<(SavedGroup, Vec<SavedPage>)>, SnapshotError> {
        self.shard
            .read(|shard| self.save_groups_of(&shard.places, to))
    }

    fn save_groups_of(
        &self,
        places: &ActorTable,
        to: &mut Vec<u8>,
    ) -> Result<Vec<(SavedGroup, Vec<SavedPage>)>, SnapshotError> {
        let mut saved_groups = Vec::new();
        for group in places.groups() {
            let (first, count) = (group.first, group.spawn.count());
            let actors = group.pages.iter();
            let actors = actors.flat_map(|&page| addresses_of(page, first, count));
            let origin = self.origin_of(group.population, actors)?;
            let saved = SavedGroup {
                first,
                parent: group.parent,
                spawn: group.spawn.clone(),
                origin,
            };
            let mut pages = Vec::with_capacity(group.pages.len());
            for page in group.pages {
                let begin = to.len();
                let mut census = Census::default();
                for actor in addresses_of(page, first, count) {
                    self.save_actor(group.population, actor, &mut census, to)?;
                }
                pages.push(SavedPage {
                    page,
                    living: census.living as u16,
                    live: census.live as u16,
                    actors: Extent::since(begin, to),
                });
            }
            saved_groups.push((saved, pages));
        }
        Ok(saved_groups)
    }

    /// Saves the actors that share pages, by spawn.
    fn save_batches(&self, page_data: &mut PageDataBuffers) -> Result<(), SnapshotError> {
        self.shard
            .read(|shard| self.save_batches_of(&shard.places, page_data))
    }

    fn save_batches_of(
        &self,
        places: &ActorTable,
        page_data: &mut PageDataBuffers,
    ) -> Result<(), SnapshotError> {
        for batch in places.batches() {
            let actors = batch.first..batch.first + u32::from(batch.count);
            let mut contents = Vec::new();
            let mut census = Census::default();
            for actor in actors.clone() {
                self.save_actor(batch.population, actor, &mut census, &mut contents)?;
            }
            let saved = SavedBatch {
                first: batch.first,
                count: batch.count,
                living: batch.living,
                parent: batch.parent,
                watched: batch.watched,
                names: batch.names,
                origin: self.origin_of(batch.population, actors)?,
            };
            let data = page_data.of(batch.first);
            data.live += census.live;
            let to = next_entry(&mut data.batches);
            put(to, &saved).map_err(|error| written("a spawn", error))?;
            to.append(&mut contents);
        }
        Ok(())
    }

    /// Saves an actor: its header, and its state if it has one.
    fn save_actor(
        &self,
        population: u32,
        actor: u32,
        census: &mut Census,
        to: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        let unknown = || self.no_kind(actor);
        let population = self.populations.get(population).ok_or_else(unknown)?;
        let header = population.header(actor).ok_or_else(unknown)?;
        let header = header.read(|header| *header);
        let (how, seq, drawn) = header.to_numbers();
        to.push(how);
        if header.state == State::Fresh {
            census.living += 1;
            return Ok(());
        }
        put_number(to, seq.into());
        put_number(to, drawn);
        if header.state == State::Live {
            census.living += 1;
            census.live += 1;
            let saved = population.save(actor, to);
            saved.map_err(|error| self.not_written(actor, error))?;
        }
        Ok(())
    }

    /// Returns the kind of actors that were spawned together, and the parameters of those that have not begun.
    fn origin_of(
        &self,
        population: u32,
        actors: impl Iterator<Item = u32>,
    ) -> Result<SavedOrigin, SnapshotError> {
        let mut actors = actors.peekable();
        let first = actors.peek().copied().unwrap_or(Addr::NONE.as_u32());
        let of = self.populations.get(population);
        let portable = of.and_then(|of| Some((of, of.portable()?)));
        let (of, kind) = portable.ok_or_else(|| self.no_kind(first))?;
        let mut origin = SavedOrigin {
            kind: kind.to_owned(),
            birth_time: 0,
            parameters: None,
        };
        let is_fresh = |header: HeaderCell| header.read(|header| header.state == State::Fresh);
        let mut fresh = actors.filter(|&actor| of.header(actor).is_some_and(is_fresh));
        if let Some(actor) = fresh.next() {
            let mut parameters = Vec::new();
            let birth_time = of.origin(actor, &mut parameters);
            origin.birth_time = birth_time.map_err(|error| self.not_written(actor, error))?;
            origin.parameters = Some(parameters);
        }
        Ok(origin)
    }

    fn no_kind(&self, actor: u32) -> SnapshotError {
        let name = self.name_of(actor);
        let who = Addr(actor);
        SnapshotError::NoKind { who, name }
    }

    fn not_written(&self, actor: u32, error: CodecError) -> SnapshotError {
        match error {
            CodecError::NoKind => self.no_kind(actor),
            error => {
                let name = self.name_of(actor);
                written(&format!("the state of {name}"), error)
            }
        }
    }

    fn name_of(&self, actor: u32) -> String {
        self.shard.read(|shard| shard.places.name_of(actor))
    }

    /// Saves the requested spawns that have not been carried out.
    fn save_spawns(&mut self, page_data: &mut PageDataBuffers) -> Result<(), SnapshotError> {
        for asked in &self.shard().spawns {
            let to = next_entry(&mut page_data.of(asked.parent).spawns);
            write_spawn(asked, to).map_err(|error| match error {
                CodecError::NoKind => SnapshotError::NoKind {
                    who: Addr::NONE,
                    name: asked.spawn.name(0),
                },
                error => written("a spawn", error),
            })?;
        }
        Ok(())
    }

    /// Saves all future and stashed events.
    fn save_events(
        &self,
        codec: &Codec<M>,
        page_data: &mut PageDataBuffers,
    ) -> Result<(), CodecError> {
        self.shard.read(|shard| {
            save_waiting(shard, codec, page_data)?;
            self.save_buffers(shard, codec, page_data)?;
            self.save_stashed(shard, codec, page_data)
        })
    }

    /// Saves the events in buffers for later windows.
    fn save_buffers(
        &self,
        shard: &Shard<M>,
        codec: &Codec<M>,
        page_data: &mut PageDataBuffers,
    ) -> Result<(), CodecError> {
        let next = shard.window.number + 1;
        let outs = shard.queues.out().iter();
        let rings = outs.flat_map(|out| out.ring.iter().enumerate());
        let inbound = self.inbound.iter().enumerate();
        let inbound =
            inbound.flat_map(|(place, all)| all.iter().map(move |(_, buffer)| (place, buffer)));
        for (place, buffer) in rings.chain(inbound) {
            let ahead = (place as u64).wrapping_sub(next) % RING;
            let base = (next + ahead) << shard.settings.window_bits;
            buffer.try_for_each(|event, message| {
                let to = next_entry(&mut page_data.of(event.label().to).events);
                codec.write_stored(base, event, message, to)
            })?;
        }
        Ok(())
    }

    fn save_stashed(
        &self,
        shard: &Shard<M>,
        codec: &Codec<M>,
        page_data: &mut PageDataBuffers,
    ) -> Result<(), CodecError> {
        for (actor, population) in shard.places.actors() {
            let population = self.populations.get(population);
            let Some(header) = population.and_then(|population| population.header(actor)) else {
                continue;
            };
            let list = header.read(|header| header.stashed);
            let mut at = shard.stash.first_after(list, 0);
            while let Some(entry) = at {
                if let Some(event) = shard.stash.event(entry) {
                    let to = next_entry(&mut page_data.of(actor).stashed);
                    put_number(to, actor.into());
                    codec.write_event(0, event, to)?;
                }
                at = shard.stash.next(list, entry);
            }
        }
        for (actor, token, event) in shard.own_messages() {
            let to = next_entry(&mut page_data.of(actor).own);
            put_number(to, actor.into());
            put_number(to, token.into());
            codec.write_event(0, event, to)?;
        }
        Ok(())
    }
}

/// Saves the future events of a shard that are in no buffer.
fn save_waiting<M: Message>(
    shard: &Shard<M>,
    codec: &Codec<M>,
    page_data: &mut PageDataBuffers,
) -> Result<(), CodecError> {
    let mut done = Ok(());
    let mut write = |time: u64, event: &ScheduledEvent<M>| {
        let to = next_entry(&mut page_data.of(event.head.to).events);
        if done.is_ok() {
            done = codec.write_event(time, event, to);
        }
    };
    for event in &shard.pending {
        let time = shard.window.base + u64::from(event.head.offset());
        write(time, event);
    }
    let outs = shard.queues.out().iter();
    outs.flat_map(|out| &out.far)
        .for_each(|one| write(one.time, &one.event));
    shard.queues.far.for_each(|one| write(one.time, &one.event));
    shard.queues.timers.for_each(|timer| {
        let mut head = EventHead::new(0, Kind::Timer, timer.actor, TIMER_FROM, TIMER_SEQ, 0);
        head.cause.parent = timer.token.into();
        write(timer.time, &ScheduledEvent::bare(head));
    });
    done
}

/// Counts an entry and returns the buffer for it.
fn next_entry(to: &mut EncodedList) -> &mut Vec<u8> {
    to.count += 1;
    &mut to.bytes
}

/// Returns the error for an entry that could not be serialized.
fn written(what: &str, error: CodecError) -> SnapshotError {
    SnapshotError::Write {
        what: what.to_owned(),
        source: error.into(),
    }
}
