//! The packages store, cache and volume, which store values, and copies of the values of peers.
//!
//! If an autoscaler adds an instance, the instance gets all values from the first of the peers that it replicates.

use super::host::Host;
use super::job::{Job, Operation};
use super::routes::Routes;
use crate::message::{Answer, Key, Msg};
use corsair::Context;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// A store, and the peers that keep copies of its values.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Storage {
    pub(super) peers: Routes,
    kept: KeySet,
}

/// The keys of the stored values. The values themselves are not stored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeySet(FxHashSet<Key>);

impl KeySet {
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn insert(&mut self, key: Key) {
        self.0.insert(key);
    }

    /// Returns the matching keys in a deterministic order.
    pub(super) fn sorted(&self, wanted: impl Fn(Key) -> bool) -> Vec<Key> {
        let wanted = self.0.iter().copied().filter(|&key| wanted(key));
        let mut keys: Vec<Key> = wanted.collect();
        keys.sort_unstable_by_key(|key| key.as_u64());
        keys
    }

    /// Looks up a value. Every storage has one value from the start.
    pub(super) fn look_up(&self, key: Key) -> Answer {
        if key == Key::WHY || self.0.contains(&key) {
            Answer::Found
        } else {
            Answer::Missing
        }
    }
}

impl Storage {
    /// Returns the number of stored values.
    pub(super) fn values(&self) -> u64 {
        self.kept.len()
    }

    /// Handles a new peer, which may have missed values. If this instance is the first of the new peer's peers, it
    /// sends all values to the new peer.
    pub(super) fn peer_has_come<C: Context<Msg>>(&self, host: &mut Host, peer: u32, cx: &mut C) {
        let package = host.model.package(host.index);
        let others = self.peers.iter().filter(|&other| other != peer);
        let mut others = others.filter(|&other| host.model.package(other) == package);
        if others.all(|other| host.index < other) {
            hand_over(host, self.kept.sorted(|_| true), |_| Some(peer), cx);
        }
    }

    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        if job.operation.is_answered() {
            return host.finish(job, self.kept.look_up(job.key), cx);
        }
        self.kept.insert(job.key);
        if job.operation == Operation::Put {
            let package = host.model.package(host.index);
            for peer in self.peers.iter() {
                if host.model.package(peer) == package {
                    host.put(&job, peer, Msg::Replicate, job.key, cx);
                }
            }
        }
        host.finish(job, Answer::Found, cx);
    }
}

/// Sends values to their new owners.
pub(super) fn hand_over<C: Context<Msg>>(
    host: &mut Host,
    keys: Vec<Key>,
    to: impl Fn(Key) -> Option<u32>,
    cx: &mut C,
) {
    for key in keys {
        let job = Job::of_own_accord(Operation::Copy, key, cx.now().as_nanos());
        if let Some(to) = to(key) {
            host.put(&job, to, Msg::Replicate, key, cx);
        }
    }
}
