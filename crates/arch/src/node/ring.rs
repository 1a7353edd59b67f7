//! priamCassandra, riak: a ring of tokens in every zone.
//!
//! Every zone of every region has the whole of the values, each on the instance of the zone's ring
//! that owns its token. Whoever is asked for another's value asks that one and passes its answer
//! on. Whoever is given a value passes it to its owner in each zone of the region, and to one
//! instance in each other region, which does the same there.

use super::role::Role;
use super::store::Values;
use super::{Job, Node, Routes, Want};
use crate::geography::Zone;
use crate::message::{Answer, Call, Key, Msg};
use crate::model::other_zones;
use corsair::Context;

/// An instance on a ring.
#[derive(Debug, Default)]
pub(crate) struct RingNode {
    pub(crate) peers: Routes,
    kept: Values,
}

impl Node {
    pub(super) fn act_ring<C: Context<Msg>>(&mut self, job: Job, delay: u64, cx: &mut C) {
        let at = self.model.place(self.index);
        let owner = self.owner(job.key, at);
        let mine = owner.is_none_or(|owner| owner == self.index);
        let Role::Ring(ring) = &mut self.role else {
            return;
        };
        match (job.want, owner) {
            (Want::Get, Some(owner)) if !mine => {
                return self.ask(job, owner, job.key, 0, delay, cx);
            }
            (Want::Get, _) => {
                let answer = ring.kept.look_up(job.key);
                return self.finish(job, answer, delay, cx);
            }
            (Want::PutOwned, _) => ring.kept.keep(job.key),
            (_, Some(owner)) if !mine => {
                let make = match job.want {
                    Want::Put => Msg::PutOwned,
                    _ => Msg::Replicate,
                };
                self.give(&job, owner, make, job.key, delay, cx);
            }
            _ => ring.kept.keep(job.key),
        }
        if let Want::Put | Want::CopyRegion = job.want {
            for zone in other_zones(at) {
                self.copy_to(&job, zone, Msg::Replicate, delay, cx);
            }
        }
        if job.want == Want::Put {
            for region in 0..self.model.topology.regions as u8 {
                let there = Zone {
                    region: Some(region),
                    zone: at.zone,
                };
                let zones = std::iter::once(there).chain(other_zones(there));
                let mut zones = zones.filter(|_| at.region != Some(region));
                while let Some(zone) = zones.next()
                    && !self.copy_to(&job, zone, Msg::ReplicateRegion, delay, cx)
                {}
            }
        }
        self.finish(job, Answer::Found, delay, cx);
    }

    /// The instance that owns a key in a zone, among this one and those it knows.
    fn owner(&self, key: Key, at: Zone) -> Option<u32> {
        let Role::Ring(ring) = &self.role else {
            return None;
        };
        let there = |node: u32| node == self.index || ring.peers.has(node);
        self.model.ring(self.service, at)?.owner(key, there)
    }

    /// Gives a copy to the owner in another zone. Whether there is one that is known.
    fn copy_to<C: Context<Msg>>(
        &mut self,
        job: &Job,
        at: Zone,
        make: impl FnOnce(Call) -> Msg,
        delay: u64,
        cx: &mut C,
    ) -> bool {
        let owner = self.owner(job.key, at).filter(|&owner| owner != self.index);
        if let Some(owner) = owner {
            self.give(job, owner, make, job.key, delay, cx);
        }
        owner.is_some()
    }
}
