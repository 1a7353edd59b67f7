//! Restoring a shard from a saved run with any number of shards.

use super::{Engine, PausableShard};
use crate::contract::random::{Streams, key};
use crate::contract::{Config, Message};
use crate::virtual_time::actor_table::{NamedRange, addresses_of};
use crate::virtual_time::addresses::{Addresses, PAGE, PAGE_BITS};
use crate::virtual_time::event::{Kind, ScheduledEvent};
use crate::virtual_time::header::{Header, State};
use crate::virtual_time::population::{Blueprint, Pages};
use crate::virtual_time::shard::{NETWORK, Shard, Timer};
use crate::virtual_time::travel::{
    CodecError, GroupShare, Head, Input, Kinds, SavedBatch, SavedOrigin, Share, SnapshotError,
    expect_end, get, read_spawn,
};
use std::sync::Arc;

impl<M: Message> PausableShard<M> {
    /// Creates a shard from the saved state of any number of shards.
    pub(in super::super) fn restored(
        config: &Config,
        index: usize,
        head: &Head,
        kinds: &Kinds<M>,
        share: Share,
    ) -> Result<PausableShard<M>, SnapshotError> {
        // If restoring fails, the state restored so far is dropped like a paused shard.
        let mut paused = PausableShard::empty(config, index);
        paused.as_running(|engine| engine.restore(head, kinds, share))?;
        Ok(paused)
    }
}

impl<M: Message> Engine<M> {
    fn restore(
        &mut self,
        head: &Head,
        kinds: &Kinds<M>,
        share: Share,
    ) -> Result<(), SnapshotError> {
        let corrupt = |error| SnapshotError::corrupt(0, error);
        self.spawned = head.common.spawned;
        self.windows = head.common.windows;
        self.counted = head.common.counted;
        self.busy = share.busy;
        let shard = self.shard();
        shard.settings.streams = Streams::new(head.stream_seed);
        shard.settings.network_key = key(head.stream_seed, NETWORK);
        shard.go_to(head.common.window);
        shard.spawns_wait_from = head.common.spawns_wait_from;
        let addresses = Addresses::restore(&head.common.addresses);
        shard.places.addresses =
            addresses.ok_or_else(|| corrupt(CodecError::Number(0, "address")))?;
        shard.places.add_forgotten_names(share.names);
        shard.take_over(share.actor_records);
        for state in share.states {
            kinds.add_state(&state).map_err(corrupt)?;
        }
        let mut buffer = Vec::new();
        for group in share.groups.into_values() {
            self.restore_group(group, kinds, &mut buffer)?;
        }
        for data in share.page_data {
            data.read(&mut buffer)?;
            let mut from = buffer.as_slice();
            self.restore_rest(&mut from, kinds)
                .and_then(|()| expect_end(from, "end of the data of pages"))
                .map_err(|error| data.corrupt(error))?;
        }
        for page in share.closed {
            self.shard().places.close_page(page);
        }
        let shard = self.shard();
        let received = std::mem::take(&mut shard.counters.received);
        if let Some(counters) = share.counters {
            shard.counters = counters;
        } else {
            (shard.counters.begun, shard.counters.never) = (share.live, 0);
        }
        shard.counters.received = received;
        Ok(())
    }

    /// Restores all saved state of some pages except the actors of groups.
    fn restore_rest(&mut self, from: &mut Input<'_>, kinds: &Kinds<M>) -> Result<(), CodecError> {
        let codec = kinds.codec();
        for _ in 0..get::<u64>(from)? {
            let batch: SavedBatch = get(from)?;
            self.restore_batch(batch, from, kinds)?;
        }
        for _ in 0..get::<u64>(from)? {
            let spawn = read_spawn(kinds, from)?;
            self.shard().spawns.push(spawn);
        }
        for _ in 0..get::<u64>(from)? {
            let (time, event) = codec.read_event(from)?;
            self.check_owns(event.head.to)?;
            self.restore_event(time, event)?;
        }
        for _ in 0..get::<u64>(from)? {
            let actor: u32 = get(from)?;
            let (_, event) = codec.read_event(from)?;
            self.stash_for(actor, event)?;
        }
        for _ in 0..get::<u64>(from)? {
            let (actor, token): (u32, u32) = get(from)?;
            let (_, event) = codec.read_event(from)?;
            self.check_owns(actor)?;
            self.shard().add_own(actor, token, event);
        }
        Ok(())
    }

    /// Checks that an actor belongs to this shard.
    fn check_owns(&mut self, actor: u32) -> Result<(), CodecError> {
        match self.shard().places.owns(actor) {
            true => Ok(()),
            false => Err(CodecError::Number(actor.into(), "actor of this page")),
        }
    }

    fn blueprint(
        kinds: &Kinds<M>,
        origin: &SavedOrigin,
    ) -> Result<Arc<dyn Blueprint<M, Shard<M>>>, CodecError> {
        // The default is an empty option in serialized form: no parameters.
        let parameters = origin.parameters.as_deref().unwrap_or(&[0]);
        kinds.blueprint(&origin.kind, &mut &*parameters)
    }

    fn restore_group(
        &mut self,
        share: GroupShare,
        kinds: &Kinds<M>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        let GroupShare { group, pages } = share;
        // A share has at least one page.
        let part = pages.values().next().map(|(_, part)| part.clone());
        let corrupt = |error| match &part {
            Some(part) => part.corrupt(error),
            None => SnapshotError::corrupt(0, error),
        };
        let (first, count) = (group.first, group.spawn.count());
        let page = first >> PAGE_BITS;
        if first.checked_add(count).is_none() {
            return Err(corrupt(CodecError::Number(
                count.into(),
                "number of actors",
            )));
        }
        let living: u32 = pages.values().map(|(page, _)| u32::from(page.living)).sum();
        let places = &mut self.shard().places;
        let numbers = page..page.saturating_add(count.div_ceil(PAGE));
        if first % PAGE != 0 || pages.keys().any(|number| !numbers.contains(number)) {
            return Err(corrupt(CodecError::Number(first.into(), "spawn")));
        }
        let own: Vec<_> = numbers
            .filter(|number| places.owns(number << PAGE_BITS))
            .collect();
        if living == 0 && !self.shard().settings.per_actor {
            // Other actors of this group were alive on another shard; this one needs only their names.
            let names = group.spawn.names.clone();
            let range = NamedRange {
                first,
                count,
                names,
            };
            self.shard().places.add_forgotten_names(vec![range]);
            return Ok(());
        }
        let in_page = |number: u32| addresses_of(number, first, count).len() as u32;
        let blueprint = Self::blueprint(kinds, &group.origin).map_err(corrupt)?;
        let own_pages = own.iter();
        let own_pages = own_pages.map(|&number| (number - page, in_page(number)));
        let pages_of_group = Pages {
            first,
            count,
            birth_time: group.origin.birth_time,
            own: own_pages.collect(),
        };
        let population = blueprint.build(&pages_of_group, self.shard);
        let population = self.populations.insert(population);
        let places = &mut self.shard().places;
        places.add_group(page, group.parent, group.spawn.clone(), living, population);
        for number in own {
            let mut actors = addresses_of(number, first, count);
            let Some((_, place)) = pages.get(&number) else {
                // All actors of this page had ended.
                actors
                    .try_for_each(|actor| self.restore_actor(population, actor, None))
                    .map_err(corrupt)?;
                continue;
            };
            place.read(buffer)?;
            let mut from = buffer.as_slice();
            actors
                .try_for_each(|actor| self.restore_actor(population, actor, Some(&mut from)))
                .and_then(|()| expect_end(from, "end of a page"))
                .map_err(|error| place.corrupt(error))?;
        }
        Ok(())
    }

    fn restore_batch(
        &mut self,
        batch: SavedBatch,
        from: &mut Input<'_>,
        kinds: &Kinds<M>,
    ) -> Result<(), CodecError> {
        let (first, count) = (batch.first, batch.count);
        let last = first.checked_add(u32::from(count).saturating_sub(1));
        let within = last.is_some_and(|last| last >> PAGE_BITS == first >> PAGE_BITS);
        self.check_owns(first)?;
        if count == 0 || !within || self.shard().places.population(first).is_some() {
            return Err(CodecError::Number(first.into(), "spawn"));
        }
        let blueprint = Self::blueprint(kinds, &batch.origin)?;
        let mut spawn = crate::contract::Spawn::one("");
        spawn.count = count.into();
        spawn.names = batch.names;
        spawn.watched = batch.watched;
        self.place_among_others(
            first,
            batch.parent,
            spawn,
            blueprint,
            batch.origin.birth_time,
        );
        let places = &mut self.shard().places;
        let population = places.population(first).unwrap_or(u32::MAX);
        places.set_living(first, batch.living);
        let mut actors = first..first + u32::from(count);
        actors.try_for_each(|actor| self.restore_actor(population, actor, Some(from)))
    }

    /// Restores an actor. An actor that was not saved had ended.
    fn restore_actor(
        &mut self,
        population: u32,
        actor: u32,
        contents: Option<&mut Input<'_>>,
    ) -> Result<(), CodecError> {
        let known = self.populations.get(population);
        let population = known.ok_or(CodecError::Number(actor.into(), "actor"))?;
        let Some(from) = contents else {
            population.end_unborn(actor, crate::contract::Reason::Returned);
            return Ok(());
        };
        let how: u8 = get(from)?;
        let state = Header::state_of(how);
        let (state, reason) = state.ok_or(CodecError::Number(how.into(), "actor's state"))?;
        if state == State::Fresh {
            return Ok(());
        }
        let (seq, drawn): (u32, u64) = get(from)?;
        match state {
            State::Live => population.load(actor, from)?,
            _ => population.end_unborn(actor, reason),
        }
        if let Some(header) = population.header(actor) {
            header.with(|header| header.set_numbers((how, seq, drawn)));
        }
        Ok(())
    }

    /// Restores a future event.
    fn restore_event(&mut self, time: u64, mut event: ScheduledEvent<M>) -> Result<(), CodecError> {
        let shard = self.shard();
        let (number, bits) = (shard.window.number, shard.settings.window_bits);
        let window = time >> bits;
        if window < number || time == u64::MAX {
            return Err(CodecError::Number(time, "time to come"));
        }
        if window == number {
            let offset = shard.offset(time);
            event.head.label.set_offset(offset);
            shard.pending.push(event);
        } else if event.head.kind() == Kind::Timer {
            shard.queues.timers.push(Timer {
                time,
                actor: event.head.to,
                token: event.head.cause.parent as u32,
            });
        } else {
            shard.schedule(time, event);
        }
        Ok(())
    }

    /// Restores a stashed event of an actor.
    fn stash_for(&mut self, actor: u32, event: ScheduledEvent<M>) -> Result<(), CodecError> {
        let unknown = CodecError::Number(actor.into(), "actor");
        let number = self.shard().places.population(actor);
        let population = number.and_then(|number| self.populations.get(number));
        let header = population.and_then(|population| population.header(actor));
        let header = header.ok_or(unknown)?;
        self.shard.with(|shard| {
            header.with(|header| shard.stash.push(&mut header.stashed, event));
        });
        Ok(())
    }
}
