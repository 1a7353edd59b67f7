//! The outcome of a shard as bytes, which the first process reads at the end of a run.

use crate::contract::{ActorTotals, Addr, WaitReason, WaitingActor};
use crate::virtual_time::actor_table::NamedRange;
use crate::virtual_time::engine::{End, Outcome};
use crate::virtual_time::shard::{Counters, Failure};
use crate::virtual_time::travel::{CodecError, Input, get, put};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct ShardReport {
    end: End,
    counters: Counters,
    /// The failure of the shard. The counters do not serialize it, because a saved run has no failure.
    failure: Option<Failure>,
    too_many: bool,
    spawned: u64,
    windows: u64,
    next: u64,
    waiting: Vec<WaitingReport>,
    totals: Vec<ActorTotals>,
    names: Vec<NamedRange>,
}

#[derive(Serialize, Deserialize)]
struct WaitingReport {
    who: u32,
    name: String,
    waiting: WaitsFor,
    stashed: usize,
}

/// [`WaitReason`] without source locations, which waits of kinds never have.
#[derive(Serialize, Deserialize)]
enum WaitsFor {
    Message,
    Answer(u32),
    Sleep,
    Spawn,
    Other,
    Foreign,
}

impl WaitingReport {
    fn new(actor: WaitingActor) -> WaitingReport {
        WaitingReport {
            who: actor.who.as_u32(),
            name: actor.name,
            waiting: match actor.waiting {
                WaitReason::Message => WaitsFor::Message,
                WaitReason::Answer(callee) => WaitsFor::Answer(callee.as_u32()),
                WaitReason::Sleep => WaitsFor::Sleep,
                WaitReason::Spawn => WaitsFor::Spawn,
                WaitReason::Selected(_) | WaitReason::Other => WaitsFor::Other,
                WaitReason::Foreign => WaitsFor::Foreign,
            },
            stashed: actor.stashed,
        }
    }

    fn read(self) -> WaitingActor {
        WaitingActor {
            who: Addr(self.who),
            name: self.name,
            waiting: match self.waiting {
                WaitsFor::Message => WaitReason::Message,
                WaitsFor::Answer(callee) => WaitReason::Answer(Addr(callee)),
                WaitsFor::Sleep => WaitReason::Sleep,
                WaitsFor::Spawn => WaitReason::Spawn,
                WaitsFor::Other => WaitReason::Other,
                WaitsFor::Foreign => WaitReason::Foreign,
            },
            callee: None,
            stashed: self.stashed,
        }
    }
}

impl Outcome {
    /// Serializes the outcome for another process.
    pub(super) fn write(mut self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let failure = self.counters.failure.take();
        let report = ShardReport {
            end: self.end,
            failure,
            too_many: self.counters.too_many,
            counters: self.counters,
            spawned: self.spawned,
            windows: self.windows,
            next: self.next,
            waiting: self.waiting.into_iter().map(WaitingReport::new).collect(),
            totals: self.totals,
            names: self.names,
        };
        put(to, &report)
    }

    /// Reads an outcome that another process has written.
    pub(super) fn read(from: &mut Input<'_>) -> Result<Outcome, CodecError> {
        let mut report: ShardReport = get(from)?;
        report.counters.failure = report.failure;
        report.counters.too_many = report.too_many;
        Ok(Outcome {
            end: report.end,
            counters: report.counters,
            spawned: report.spawned,
            windows: report.windows,
            next: report.next,
            waiting: report
                .waiting
                .into_iter()
                .map(WaitingReport::read)
                .collect(),
            totals: report.totals,
            names: report.names,
        })
    }
}
