//! The serialized data of single actors that is stored outside the memory of the actors.

use super::waits::{SavedWaits, Waits};
use super::{Counters, Shard};
use crate::contract::{Message, Report};
use crate::virtual_time::addresses::PAGE_BITS;
use serde::{Deserialize, Serialize};

/// Data of single actors; see the [module](self). It is sorted by numbers, so that equal runs are
/// saved as equal bytes.
#[derive(Default, Serialize, Deserialize)]
pub(in super::super) struct ActorRecords {
    waits: SavedWaits,
    /// The number of spawns that each actor has requested.
    pub(super) requests: Vec<(u32, u32)>,
    /// The arrival of the last message of each pair.
    pub(super) last: Vec<((u32, u32), u64)>,
    /// Events after the limit.
    pub(super) deferred: Vec<(u64, u64)>,
    /// The counts of received messages, by page.
    pub(super) received: Vec<(u32, Vec<u64>)>,
}

impl ActorRecords {
    /// Distributes the records to shards; `owner` returns an actor's shard.
    pub(in super::super) fn deal(
        self,
        shards: usize,
        owner: impl Fn(u32) -> usize,
    ) -> Vec<ActorRecords> {
        let own = || ActorRecords {
            waits: self.waits.without_those_of_actors(),
            ..ActorRecords::default()
        };
        let mut records: Vec<ActorRecords> = (0..shards).map(|_| own()).collect();
        for key in self.waits.cancelled {
            records[owner((key >> 32) as u32)].waits.cancelled.push(key);
        }
        for handle in self.waits.handles {
            records[owner(handle.actor)].waits.handles.push(handle);
        }
        for request in self.requests {
            records[owner(request.0)].requests.push(request);
        }
        for last in self.last {
            records[owner(last.0.0)].last.push(last);
        }
        for (time, key) in self.deferred {
            // Only a timer belongs to an actor; other events stay with the first shard.
            let shard = match key {
                u64::MAX => 0,
                key => owner((key >> 32) as u32),
            };
            records[shard].deferred.push((time, key));
        }
        for (page, counts) in self.received {
            records[owner(page << PAGE_BITS)]
                .received
                .push((page, counts));
        }
        records
    }

    /// Adds the records of another part.
    pub(in super::super) fn add(&mut self, mut other: ActorRecords) {
        self.waits.add(other.waits);
        self.requests.append(&mut other.requests);
        self.last.append(&mut other.last);
        self.deferred.append(&mut other.deferred);
        self.received.append(&mut other.received);
    }
}

impl<M: Message> Shard<M> {
    /// Returns the records of this shard.
    pub(in super::super) fn actor_records(&self) -> ActorRecords {
        let mut records = ActorRecords {
            deferred: self.deferred.clone(),
            requests: self.requests.iter().map(|(&who, &n)| (who, n)).collect(),
            last: self.last.iter().map(|(&pair, &at)| (pair, at)).collect(),
            received: (0..)
                .zip(&self.counters.received)
                .filter(|(_, page)| !page.is_empty())
                .map(|(number, page)| (number, page.clone()))
                .collect(),
            waits: self.waits.save(),
        };
        records.deferred.sort_unstable();
        records.requests.sort_unstable();
        records.last.sort_unstable();
        records
    }

    /// Replaces all records by restored ones.
    pub(in super::super) fn take_over(&mut self, records: ActorRecords) {
        let pages = records.received.iter().map(|(page, _)| *page as usize + 1);
        self.counters
            .received
            .resize_with(pages.max().unwrap_or(0), Vec::new);
        for (page, counts) in &records.received {
            self.counters.received[*page as usize].clone_from(counts);
        }
        self.deferred.clone_from(&records.deferred);
        self.requests = records.requests.iter().copied().collect();
        self.last = records.last.iter().copied().collect();
        self.waits = Waits::restore(&records.waits);
    }

    /// Iterates over the messages of actors to themselves that wait for their timers, by actor and
    /// token.
    pub(in super::super) fn own_messages(
        &self,
    ) -> Vec<(u32, u32, &crate::virtual_time::event::ScheduledEvent<M>)> {
        let mut all: Vec<_> = self.own.iter().collect();
        // The messages of one actor stay in their order, because the sort is stable.
        all.sort_by_key(|&(actor, ..)| actor);
        all
    }

    /// Adds a message of an actor to itself.
    pub(in super::super) fn add_own(
        &mut self,
        actor: u32,
        token: u32,
        event: crate::virtual_time::event::ScheduledEvent<M>,
    ) {
        self.own.push(actor, token, event);
    }
}

impl Counters {
    /// Adds the counts of another shard.
    pub(in super::super) fn add(&mut self, other: Counters) {
        let sum = |mine: &mut Vec<u64>, others: Vec<u64>| {
            mine.iter_mut().zip(others).for_each(|(a, b)| *a += b);
        };
        sum(&mut self.messages, other.messages);
        sum(&mut self.dead, other.dead);
        let firsts = self.first_dead.take().into_iter().chain(other.first_dead);
        self.first_dead = firsts.min_by_key(|first| first.order);
        self.fired += other.fired;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.digest = self.digest.wrapping_add(other.digest);
        self.begun += other.begun;
        self.ended += other.ended;
        self.never += other.never;
        self.last = self.last.max(other.last);
        self.others += other.others;
        self.root_end = self.root_end.min(other.root_end);
        self.root_ended = self.root_ended.or(other.root_ended);
        self.panics.extend(other.panics);
        self.panics.sort_by(super::compare_panics);
        self.panics.truncate(2 * Report::MOST_PANICS);
        self.probes.merge(&other.probes);
    }
}
