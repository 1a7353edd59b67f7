//! The outcome of a shard: counters, waiting actors and panics.

use super::{End, Engine};
use crate::contract::{ActorTotals, Addr, Config, Message, Report, WaitReason, WaitingActor};
use crate::virtual_time::actor_table::NamedRange;
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::delivery::Upcoming;
use crate::virtual_time::event::ScheduledEvent;
use crate::virtual_time::header::State;
use crate::virtual_time::multicast::Multicast;
use crate::virtual_time::outbox::Outbox;
use crate::virtual_time::population::{Population, SpawnRequest};
use crate::virtual_time::shard::ShardCell;
use crate::virtual_time::shard::{Counters, ROOT, Shard};
use crate::virtual_time::turn_cell::caught;
use crate::virtual_time::waker;
use std::any::Any;

/// The outcome of a shard after the loop has ended.
pub(in super::super) struct Outcome {
    pub(in super::super) end: End,
    pub(in super::super) counters: Counters,
    pub(in super::super) spawned: u64,
    pub(in super::super) windows: u64,
    /// The time of the first event that was not handled.
    pub(in super::super) next: u64,
    pub(in super::super) waiting: Vec<WaitingActor>,
    pub(in super::super) totals: Vec<ActorTotals>,
    /// Names for reports.
    pub(in super::super) names: Vec<NamedRange>,
}

impl<M: Message> Engine<M> {
    /// Finishes the shard after the last window: lists waiting actors, adds up totals, and drops all bodies.
    pub(super) fn finish(&mut self, config: &Config, end: End) -> Outcome {
        // The messages do not arrive, but making them may panic, which must be reported.
        self.send_all();
        let over = self.over;
        self.shard().end_run(over);
        let mut totals = Vec::new();
        let waiting = self.waiting(config.per_actor.then_some(&mut totals));
        // All shards know of a cancellation, but some may not know of a panic.
        if end != End::Halted || config.cancel.is_cancelled() {
            self.finish_actors();
        }
        self.clear();
        let counters = std::mem::replace(&mut self.shard().counters, Counters::new(0));
        let names = self.shard().places.names();
        let (spawned, windows, next) = (self.spawned, self.windows, self.next);
        Outcome {
            end,
            counters,
            spawned,
            windows,
            next,
            waiting,
            totals,
            names,
        }
    }

    /// Lists the actors that wait, at most [`Report::MOST_WAITING`] and those that await foreign futures. Adds the totals
    /// of all actors to `totals`.
    fn waiting(&mut self, mut totals: Option<&mut Vec<ActorTotals>>) -> Vec<WaitingActor> {
        let cell = self.shard;
        // All actors after the listed ones are polled, too, until one of them awaits a foreign future.
        let asks_all = waker::was_ever_taken();
        let (wanted, asked) = cell.read(|shard| {
            let wanted = (shard.counters.live() as usize).min(Report::MOST_WAITING);
            let mut asked = Vec::new();
            for (actor, number) in shard.places.actors() {
                if asked.len() == wanted && totals.is_none() && !asks_all {
                    break;
                }
                let population = self.populations.get(number);
                let header = population.and_then(|population| population.header(actor));
                let (Some(population), Some(header)) = (population, header) else {
                    continue;
                };
                header.read(|head| {
                    if (asked.len() < wanted || asks_all) && head.state == State::Live {
                        asked.push((actor, population, header));
                    }
                    if let Some(totals) = &mut totals {
                        totals.push(shard.totals_of(actor, head));
                    }
                });
            }
            (wanted, asked)
        });
        // Polling an actor to find its reason must not change the report, because not every actor is polled.
        let counters = Counters::new(M::KINDS.len());
        let counters = cell.with(|shard| std::mem::replace(&mut shard.counters, counters));
        let mut waiting = Vec::new();
        let mut has_foreign = false;
        for (index, (actor, population, header)) in asked.into_iter().enumerate() {
            if index >= wanted && has_foreign {
                break;
            }
            let before = header.read(|header| *header);
            let stashed = cell.read(|shard| shard.stash.len(before.stashed));
            if caught(|| population.ask(actor)).is_err() {
                cell.with(|shard| shard.turn.waiting = WaitReason::Other);
            }
            header.with(|header| header.count_like(&before));
            let reason = cell.read(|shard| shard.turn.waiting);
            let is_foreign = reason == WaitReason::Foreign;
            has_foreign |= is_foreign;
            if index < wanted || is_foreign {
                waiting.push(WaitingActor {
                    who: Addr(actor),
                    name: cell.read(|shard| shard.places.name_of(actor)),
                    waiting: reason,
                    callee: None,
                    stashed,
                });
            }
        }
        cell.with(|shard| shard.counters = counters);
        waiting
    }

    /// Returns the totals of all actors, in the order of addresses.
    pub(super) fn totals(&self) -> Vec<ActorTotals> {
        self.shard.read(|shard| {
            let totals = shard.places.actors().filter_map(|(actor, number)| {
                let header = self.populations.get(number)?.header(actor)?;
                Some(header.read(|header| shard.totals_of(actor, header)))
            });
            totals.collect()
        })
    }

    /// Calls `finish` of every living actor, in the order of addresses.
    fn finish_actors(&mut self) {
        let actors: Vec<_> = self.shard().places.actors().collect();
        for (actor, number) in actors {
            if let Some(population) = self.populations.get(number) {
                Shard::at_end(self.shard, actor, || population.finish(actor));
            }
        }
    }

    /// Drops all bodies, and then all other values with foreign destructors, one by one, so that a panic in a
    /// destructor can be attributed to its owner.
    pub(super) fn clear(&mut self) {
        let shard = self.shard;
        shard.with(Shard::leave);
        let spawns: Vec<_> = shard.with(|shard| shard.places.spawns().collect());
        for (first, number) in spawns {
            if let Some(population) = self.populations.get(number) {
                Shard::at_end(shard, first, || {
                    // SAFETY: nothing uses these actors afterwards.
                    unsafe { population.clear(first) };
                });
            }
        }
        for population in self.populations.take_all() {
            Shard::at_end(shard, ROOT, || drop(population));
        }
        self.drop_unread();
    }

    /// Drops all undelivered messages, and the remaining wakers, spawns and multicasts.
    fn drop_unread(&mut self) {
        let shard = self.shard;
        let drop_one = move |event: ScheduledEvent<M>| {
            let to = event.head.to;
            Shard::at_end(shard, to, || drop(event));
        };
        let mut buffers: Vec<Buffer<M>> = Vec::new();
        let inbound = self.inbound.iter_mut().chain([&mut self.events]);
        buffers.extend(inbound.flat_map(|all| all.drain(..).map(|(_, buffer)| buffer)));
        let batches = self.out.iter_mut().chain(&mut self.inbox);
        for mut batch in batches.map(std::mem::take) {
            buffers.extend(batch.windows.drain(..).map(|(_, buffer)| buffer));
            batch.far.drain(..).for_each(|far| drop_one(far.event));
            drop_requests(shard, batch.spawns, batch.multicasts);
        }
        let far: Vec<_> = shard.with(|shard| {
            let take = |outbox: &mut Outbox<M>| {
                let rings = outbox.ring.iter_mut();
                buffers.extend(rings.map(|buffer| std::mem::replace(buffer, Buffer::new())));
                outbox.pending = 0;
                std::mem::take(&mut outbox.far)
            };
            shard.queues.out_mut().iter_mut().flat_map(take).collect()
        });
        far.into_iter().for_each(|far| drop_one(far.event));
        let mut far = shard.with(|shard| shard.queues.take_far());
        far.take_all(|far| drop_one(far.event));
        shard.with(Shard::take_unread).for_each(drop_one);
        for (actor, waker) in shard.with(|shard| shard.waits.take_relays()) {
            Shard::at_end(shard, actor, || drop(waker));
        }
        let take = |shard: &mut Shard<M>| {
            (
                std::mem::take(&mut shard.spawns),
                std::mem::take(&mut shard.multicasts),
            )
        };
        let (spawns, multicasts) = shard.with(take);
        drop_requests(shard, spawns, multicasts);
        if std::mem::needs_drop::<M>() {
            buffers
                .into_iter()
                .for_each(|buffer| buffer.take_all(drop_one));
        }
    }
}

/// Drops the data of spawns and multicasts that were not carried out.
fn drop_requests<M: Message>(
    shard: ShardCell<M>,
    spawns: Vec<SpawnRequest<M, Shard<M>>>,
    multicasts: Vec<Multicast<Shard<M>>>,
) {
    for request in spawns {
        Shard::at_end(shard, request.parent, || drop(request));
    }
    for multicast in multicasts {
        Shard::at_end(shard, multicast.label.from, || drop(multicast));
    }
}

/// Records the panic of an actor, if it is the first in virtual time, and drops the body. `population` has the actor being
/// run. The events behind `current` and `arrival` stay in place until the next event, even if the actor unwinds.
#[cold]
pub(super) fn note_panic<M: Message>(
    cell: ShardCell<M>,
    population: &dyn Population<M>,
    panic: &(dyn Any + Send),
) {
    let (who, arrival) = cell.with(|shard| {
        shard.turn.upcoming = Upcoming::NONE;
        let (event, peer) = shard.describe_current();
        shard.note_panic(event, peer, panic);
        (shard.turn.me, shard.take_arrival())
    });
    // A second panic, in a destructor, belongs to the same actor and is not reported.
    let _ = caught(|| drop(arrival));
    // Each attempt drops more of the actor, so the loop ends.
    while caught(|| population.discard(who)).is_err() {}
}
