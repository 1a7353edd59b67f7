//! store, cache, volume: keep values, and copies of those of their peers.

use super::role::Role;
use super::{Job, Node, Routes, Want};
use crate::message::{Answer, Key, Msg};
use corsair::Context;
use rustc_hash::FxHashSet;

/// Values that are kept, and who keeps copies of them.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) peers: Routes,
    kept: Values,
}

/// The keys of values that are kept. The value itself does not matter to anybody.
#[derive(Debug, Default)]
pub(crate) struct Values(FxHashSet<u64>);

impl Values {
    pub(crate) fn keep(&mut self, key: Key) {
        self.0.insert(key.as_u64());
    }

    /// Whether there is a value: every storage knows one from the beginning.
    pub(crate) fn look_up(&self, key: Key) -> Answer {
        match key == Key::WHY || self.0.contains(&key.as_u64()) {
            true => Answer::Found,
            false => Answer::Missing,
        }
    }
}

impl Node {
    pub(super) fn act_store<C: Context<Msg>>(&mut self, job: Job, delay: u64, cx: &mut C) {
        let Role::Store(shelf) = &mut self.role else {
            return;
        };
        if job.want == Want::Get {
            let answer = shelf.kept.look_up(job.key);
            return self.finish(job, answer, delay, cx);
        }
        shelf.kept.keep(job.key);
        if job.want == Want::Put {
            let package = self.model.package(self.index);
            let peers: Vec<u32> = shelf.peers.iter().collect();
            for peer in peers {
                if self.model.package(peer) == package {
                    self.give(&job, peer, Msg::Replicate, job.key, delay, cx);
                }
            }
        }
        self.finish(job, Answer::Found, delay, cx);
    }
}
