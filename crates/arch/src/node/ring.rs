//! The packages priamCassandra and riak: a ring of tokens in every zone.
//!
//! Every zone of every region has all values; each value is on the instance of the zone's ring that owns its token. An
//! instance that is asked for a value it does not own asks the owner and passes the answer on. An instance that
//! receives a value passes it to the owner in each zone of its region, and to one instance in each other region, which
//! does the same there.
//!
//! If an autoscaler adds an instance, the other instances of the zone pass it the values that it owns from then on. An
//! instance that is removed passes its values to the new owners.

use super::host::Host;
use super::job::{Job, Operation};
use super::routes::Routes;
use super::storage::{KeySet, hand_over};
use crate::geography::Zone;
use crate::message::{Answer, Call, Key, Msg};
use corsair::Context;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An instance on a ring.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RingNode {
    pub(super) peers: Routes,
    kept: KeySet,
}

impl RingNode {
    /// Returns the number of values that the instance stores.
    pub(super) fn values(&self) -> u64 {
        self.kept.len()
    }

    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        let at = host.model.place(host.index);
        let owner = self.owner(host, job.key, at);
        let is_owner = owner.is_none_or(|owner| owner == host.index);
        match (job.operation, owner) {
            (Operation::Get, Some(owner)) if !is_owner => {
                return host.ask(job, owner, job.key, 0, cx);
            }
            (Operation::Get, _) => return host.finish(job, self.kept.look_up(job.key), cx),
            (Operation::PutOwned, _) => self.kept.insert(job.key),
            (_, Some(owner)) if !is_owner => {
                let make = match job.operation {
                    Operation::Put => Msg::PutOwned,
                    _ => Msg::Replicate,
                };
                host.put(&job, owner, make, job.key, cx);
            }
            _ => self.kept.insert(job.key),
        }
        if let Operation::Put | Operation::CopyRegion = job.operation {
            for zone in host.model.topology.other_zones(at) {
                self.copy_to(host, &job, zone, Msg::Replicate, cx);
            }
        }
        if job.operation == Operation::Put {
            for region in 0..host.model.topology.regions as u8 {
                let there = Zone {
                    region: Some(region),
                    zone: at.zone,
                };
                let zones = std::iter::once(there).chain(host.model.topology.other_zones(there));
                let mut zones = zones.filter(|_| at.region != Some(region));
                while let Some(zone) = zones.next()
                    && !self.copy_to(host, &job, zone, Msg::ReplicateRegion, cx)
                {}
            }
        }
        host.finish(job, Answer::Found, cx);
    }

    /// Handles a new peer, which gets the values that it owns.
    pub(super) fn peer_has_come<C: Context<Msg>>(&self, host: &mut Host, peer: u32, cx: &mut C) {
        let at = host.model.place(host.index);
        if host.model.place(peer) == at {
            let is_peers = |key: Key| self.owner(host, key, at) == Some(peer);
            let keys = self.kept.sorted(is_peers);
            hand_over(host, keys, |_| Some(peer), cx);
        }
    }

    /// Transfers the instance's values to the other instances of the zone before it leaves.
    pub(super) fn leave<C: Context<Msg>>(&self, host: &mut Host, cx: &mut C) {
        let model = Arc::clone(&host.model);
        let ring = model.ring(host.service, model.place(host.index));
        let owner = |key: Key| ring?.owner(key, |node| self.peers.has(node));
        hand_over(host, self.kept.sorted(|_| true), owner, cx);
    }

    /// Returns the instance that owns a key in a zone, among this instance and the instances that it knows.
    fn owner(&self, host: &Host, key: Key, at: Zone) -> Option<u32> {
        let is_there = |node: u32| node == host.index || self.peers.has(node);
        host.model.ring(host.service, at)?.owner(key, is_there)
    }

    /// Sends a copy to the owner in another zone. False if no owner is known.
    fn copy_to<C: Context<Msg>>(
        &self,
        host: &mut Host,
        job: &Job,
        at: Zone,
        make: impl FnOnce(Call) -> Msg,
        cx: &mut C,
    ) -> bool {
        let owner = self.owner(host, job.key, at);
        let owner = owner.filter(|&owner| owner != host.index);
        if let Some(owner) = owner {
            host.put(job, owner, make, job.key, cx);
        }
        owner.is_some()
    }
}
