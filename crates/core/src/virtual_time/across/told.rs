//! What a worker tells the first process at the end.

use crate::contract::{ActorTotals, Addr, Waiting, WaitingActor};
use crate::virtual_time::engine::{End, Outcome};
use crate::virtual_time::places::NamedRange;
use crate::virtual_time::shard::{Counters, Failure};
use crate::virtual_time::travel::{CodecError, Input, get, put};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Told {
    end: End,
    counters: Counters,
    /// What counters do not write of themselves, because a run that is saved has none.
    failure: Option<Failure>,
    too_many: bool,
    spawned: u64,
    windows: u64,
    next: u64,
    waiting: Vec<ToldWaiting>,
    totals: Vec<ActorTotals>,
    names: Vec<NamedRange>,
}

#[derive(Serialize, Deserialize)]
struct ToldWaiting {
    who: u32,
    name: String,
    waiting: WaitsFor,
    kept: usize,
}

/// [`Waiting`], as far as actors of a kind wait: those wait at no place in the source.
#[derive(Serialize, Deserialize)]
enum WaitsFor {
    Message,
    Answer(u32),
    Sleep,
    Spawn,
    Other,
}

impl ToldWaiting {
    fn new(actor: WaitingActor) -> ToldWaiting {
        ToldWaiting {
            who: actor.who.as_u32(),
            name: actor.name,
            waiting: match actor.waiting {
                Waiting::Message => WaitsFor::Message,
                Waiting::Answer(whose) => WaitsFor::Answer(whose.as_u32()),
                Waiting::Sleep => WaitsFor::Sleep,
                Waiting::Spawn => WaitsFor::Spawn,
                Waiting::Selected(_) | Waiting::Other => WaitsFor::Other,
            },
            kept: actor.kept,
        }
    }

    fn read(self) -> WaitingActor {
        WaitingActor {
            who: Addr(self.who),
            name: self.name,
            waiting: match self.waiting {
                WaitsFor::Message => Waiting::Message,
                WaitsFor::Answer(whose) => Waiting::Answer(Addr(whose)),
                WaitsFor::Sleep => Waiting::Sleep,
                WaitsFor::Spawn => Waiting::Spawn,
                WaitsFor::Other => Waiting::Other,
            },
            whose: None,
            kept: self.kept,
        }
    }
}

impl Outcome {
    /// Writes it for another process.
    pub(super) fn tell(mut self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let failure = self.counters.failure.take();
        let told = Told {
            end: self.end,
            failure,
            too_many: self.counters.too_many,
            counters: self.counters,
            spawned: self.spawned,
            windows: self.windows,
            next: self.next,
            waiting: self.waiting.into_iter().map(ToldWaiting::new).collect(),
            totals: self.totals,
            names: self.names,
        };
        put(to, &told)
    }

    /// Reads what another process has written.
    pub(super) fn read(from: &mut Input<'_>) -> Result<Outcome, CodecError> {
        let mut told: Told = get(from)?;
        told.counters.failure = told.failure;
        told.counters.too_many = told.too_many;
        Ok(Outcome {
            end: told.end,
            counters: told.counters,
            spawned: told.spawned,
            windows: told.windows,
            next: told.next,
            waiting: told.waiting.into_iter().map(ToldWaiting::read).collect(),
            totals: told.totals,
            names: told.names,
        })
    }
}
