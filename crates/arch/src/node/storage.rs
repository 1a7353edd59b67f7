//! store, cache, volume: keep values, and copies of those of their peers.

use super::host::Host;
use super::job::{Job, Operation};
use super::routes::Routes;
use crate::message::{Answer, Key, Msg};
use corsair::Context;
use rustc_hash::FxHashSet;

/// A store, and the peers that keep copies of its values.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(super) peers: Routes,
    kept: KeySet,
}

/// The keys of the values that are kept. The values themselves do not matter.
#[derive(Debug, Default)]
pub(super) struct KeySet(FxHashSet<u64>);

impl KeySet {
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn insert(&mut self, key: Key) {
        self.0.insert(key.as_u64());
    }

    /// Whether there is a value: every storage knows one from the beginning.
    pub(super) fn look_up(&self, key: Key) -> Answer {
        if key == Key::WHY || self.0.contains(&key.as_u64()) {
            Answer::Found
        } else {
            Answer::Missing
        }
    }
}

impl Storage {
    /// How many values it keeps.
    pub(super) fn values(&self) -> u64 {
        self.kept.len()
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
