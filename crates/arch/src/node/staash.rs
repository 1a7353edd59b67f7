//! Data access: asks one kind of storage after the other, until one has the value.

use super::role::Role;
use super::{Job, Node, Pending, Routes, Want};
use crate::message::{Answer, Key, Msg};
use crate::package::Package;
use corsair::Context;

/// How many kinds of storage there are.
const KINDS: usize = 5;
/// Volumes are the second kind, with a name space for each of their writers.
const VOLUMES: usize = 1;

/// What data access may call, by kind, in the order in which it asks.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    kinds: [Routes; KINDS],
}

impl Layers {
    /// The routes to a package: cache, volume, ring, store, data access.
    pub(super) fn routes(&mut self, package: Package) -> Option<&mut Routes> {
        let kind = match package {
            Package::Cache => 0,
            Package::Volume => VOLUMES,
            Package::PriamCassandra | Package::Riak => 2,
            Package::Store => 3,
            // Whatever else it depends on is asked last, as another layer of data access is.
            _ => 4,
        };
        self.kinds.get_mut(kind)
    }

    /// The first kind from `stage` on of which there is an instance, and one of those.
    fn next(&self, stage: usize, mut bits: impl FnMut() -> u64) -> Option<(usize, u32)> {
        let kinds = self.kinds.iter().enumerate().skip(stage);
        kinds
            .filter_map(|(kind, routes)| Some((kind, routes.pick(bits())?)))
            .next()
    }
}

impl Node {
    pub(super) fn act_staash<C: Context<Msg>>(&mut self, job: Job, delay: u64, cx: &mut C) {
        if job.want == Want::Get {
            return self.ask_from(job, 0, Answer::Nobody, delay, cx);
        }
        // Each kind of storage gets the value; within a kind it spreads by itself.
        let mut stage = 0;
        let mut given = false;
        while let Role::Staash(layers) = &self.role
            && let Some((kind, to)) = layers.next(stage, || cx.random())
        {
            let key = self.key_in(kind, job.key);
            self.give(&job, to, Msg::Put, key, delay, cx);
            (stage, given) = (kind + 1, true);
        }
        let answer = if given { Answer::Found } else { Answer::Nobody };
        self.finish(job, answer, delay, cx);
    }

    /// What one kind of storage does not have, or fails to give, the next may have.
    pub(super) fn resume_staash<C: Context<Msg>>(
        &mut self,
        pending: Pending,
        answer: Answer,
        cx: &mut C,
    ) {
        if answer == Answer::Found {
            return self.finish(pending.job, answer, 0, cx);
        }
        cx.continue_trace(pending.job.trace, pending.job.span);
        self.ask_from(pending.job, pending.stage + 1, answer, 0, cx);
    }

    /// Asks the next kind of storage; if there is none, `otherwise` is the answer.
    fn ask_from<C: Context<Msg>>(
        &mut self,
        job: Job,
        stage: u8,
        otherwise: Answer,
        delay: u64,
        cx: &mut C,
    ) {
        let Role::Staash(layers) = &self.role else {
            return;
        };
        match layers.next(stage.into(), || cx.random()) {
            Some((kind, to)) => {
                let key = self.key_in(kind, job.key);
                self.ask(job, to, key, kind as u8, delay, cx);
            }
            None => self.finish(job, otherwise, delay, cx),
        }
    }

    /// A volume keeps the values of each of its users apart.
    fn key_in(&self, kind: usize, key: Key) -> Key {
        match kind {
            VOLUMES if key != Key::WHY => key.of_instance(self.index),
            _ => key,
        }
    }
}
