//! The package staash, which asks one kind of storage after the other until one has the value.

use super::host::Host;
use super::job::{Job, PendingRequest};
use super::routes::Routes;
use crate::message::{Answer, Key, Msg};
use crate::package::Package;
use corsair::Context;
use serde::{Deserialize, Serialize};

/// The number of kinds of storage.
const KINDS: usize = 5;
/// The index of volumes, which have a separate namespace for each writer.
const VOLUMES: usize = 1;

/// The instances that data access may call, by kind, in the order in which it asks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DataAccess {
    kinds: [Routes; KINDS],
}

impl DataAccess {
    /// Returns the routes to a package: cache, volume, ring, store or data access.
    pub(super) fn routes(&mut self, package: Package) -> &mut Routes {
        let kind = match package {
            Package::Cache => 0,
            Package::Volume => VOLUMES,
            Package::PriamCassandra | Package::Riak => 2,
            Package::Store => 3,
            // All other dependencies are asked last, like another layer of data access.
            _ => 4,
        };
        &mut self.kinds[kind]
    }

    /// Iterates over all instances that data access may call.
    pub(super) fn known(&self) -> impl Iterator<Item = u32> + '_ {
        self.kinds.iter().flat_map(Routes::iter)
    }

    /// Returns the first kind of storage from `stage` on that has instances, and one of these instances.
    fn next(&self, stage: usize, mut bits: impl FnMut() -> u64) -> Option<(usize, u32)> {
        let kinds = self.kinds.iter().enumerate().skip(stage);
        kinds
            .filter_map(|(kind, routes)| Some((kind, routes.pick(bits())?)))
            .next()
    }

    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        if job.operation.is_answered() {
            return self.ask_from(host, job, 0, Answer::Unavailable, cx);
        }
        // One instance of each kind of storage gets the value, and copies it to the others.
        let mut stage = 0;
        let mut answer = Answer::Unavailable;
        while let Some((kind, to)) = self.next(stage, || cx.random()) {
            host.put(&job, to, Msg::Put, key_in(kind, job.key, host.index), cx);
            (stage, answer) = (kind + 1, Answer::Found);
        }
        host.finish(job, answer, cx);
    }

    /// Asks the next kind of storage if the previous kind has no value or has failed.
    pub(super) fn resume<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        request: &PendingRequest,
        answer: Answer,
        cx: &mut C,
    ) {
        if answer == Answer::Found {
            return host.finish(request.job, answer, cx);
        }
        host.on_account_of(&request.job, cx);
        self.ask_from(host, request.job, request.stage as usize + 1, answer, cx);
    }

    /// Asks the next kind of storage; if there is none, `otherwise` is the answer.
    fn ask_from<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        job: Job,
        stage: usize,
        otherwise: Answer,
        cx: &mut C,
    ) {
        match self.next(stage, || cx.random()) {
            Some((kind, to)) => {
                let key = key_in(kind, job.key, host.index);
                host.ask(job, to, key, kind as u64, cx);
            }
            None => host.finish(job, otherwise, cx),
        }
    }
}

/// Returns the key under which a kind of storage stores a value: a volume separates the values of its users.
fn key_in(kind: usize, key: Key, user: u32) -> Key {
    match kind {
        VOLUMES if key != Key::WHY => key.of_instance(user),
        _ => key,
    }
}
