//! The report of a run that is over, and whether it failed.

use super::Runtime;
use super::shared::{End, Shared, lock};
use crate::contract::{
    ActorTotals, Addr, Config, Executor, KindCount, Message, Outcome, Report, RunError, Time,
    Waiting, WaitingActor, peak_memory,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// What actors told of themselves when their contexts were dropped.
#[derive(Default)]
pub(crate) struct Left {
    /// Who still waited, for what, and how many events it kept; the lowest addresses.
    waiting: BTreeMap<Addr, (Waiting, usize)>,
    waiting_total: u64,
    /// Sent and received.
    totals: Vec<(Addr, u64, u64)>,
}

impl Left {
    /// An actor was there at the end.
    pub(super) fn wait(&mut self, who: Addr, waiting: Option<Waiting>, kept: usize) {
        self.waiting_total += 1;
        self.waiting
            .insert(who, (waiting.unwrap_or(Waiting::Other), kept));
        if self.waiting.len() > Report::MOST_WAITING {
            self.waiting.pop_last();
        }
    }

    /// What an actor did.
    pub(super) fn count(&mut self, who: Addr, sent: u64, received: u64) {
        self.totals.push((who, sent, received));
    }
}

/// Reports. Every context has been dropped.
pub(super) fn conclude<M: Message, R: Runtime>(
    shared: &Arc<Shared<M, R>>,
    executor: Executor,
    over: Time,
) -> Result<Report, RunError> {
    let end = lock(&shared.end).take().unwrap_or(End::Completed);
    let mut report = Box::new(report(shared, executor, over));
    let Config {
        strict, mailbox, ..
    } = shared.config;
    Err(match end {
        End::Completed if strict && report.dead() > 0 => RunError::DeadLetters {
            count: report.dead(),
            first: lock(&shared.first_dead).take().unwrap_or_default(),
            report,
        },
        End::Completed if strict && report.waiting_total > 0 => RunError::LeftWaiting { report },
        End::Completed => return Ok(*report),
        End::Cut => {
            report.outcome = Outcome::Cut;
            return Ok(*report);
        }
        End::Deadlock => RunError::Deadlock { report },
        End::Panicked(panic) => RunError::Panicked { panic, report },
        End::Late { end, next } => RunError::PastEnd { end, next, report },
        End::Overflow { who } => RunError::Overflow {
            name: shared.name(who),
            capacity: mailbox.get(),
            report,
        },
        End::TooManyThreads { asked, limit } => RunError::TooManyThreads {
            asked,
            limit,
            report,
        },
        End::TooManyActors => RunError::TooManyActors { page: 1, report },
        End::Thread(source) => RunError::Thread { source, report },
    })
}

fn report<M: Message, R: Runtime>(
    shared: &Arc<Shared<M, R>>,
    executor: Executor,
    over: Time,
) -> Report {
    let counts = |count: &dyn Fn(usize) -> u64| {
        M::KINDS
            .iter()
            .enumerate()
            .map(|(i, kind)| KindCount {
                kind,
                count: count(i),
            })
            .collect()
    };
    let Left {
        waiting,
        waiting_total,
        totals,
    } = std::mem::take(&mut *lock(&shared.left));
    let waiting = waiting.into_iter().map(|(who, (waiting, kept))| {
        let whose = match waiting {
            Waiting::Answer(whose) => Some(shared.name(whose)),
            _ => None,
        };
        WaitingActor {
            who,
            name: shared.name(who),
            waiting,
            whose,
            kept,
        }
    });
    let spawned = shared.spawned();
    let mut per_actor = Vec::new();
    if shared.config.per_actor {
        per_actor.extend((0..spawned).map(|who| ActorTotals {
            who: Addr(who),
            sent: 0,
            received: 0,
            ended: shared.cells.get(who).and_then(|cell| cell.reason()),
        }));
        for (who, sent, received) in totals {
            let actor: &mut ActorTotals = &mut per_actor[who.0 as usize];
            (actor.sent, actor.received) = (sent, received);
        }
    }
    Report {
        executor,
        seed: shared.config.seed,
        workers: match executor {
            Executor::Threads => shared.most_live.load(Relaxed) as usize,
            _ => shared.config.workers.get(),
        },
        outcome: Outcome::Completed,
        messages: counts(&|kind| shared.tally.delivered(kind)),
        timers: shared.tally.timers(),
        spawned: spawned.into(),
        ended: shared.ended.load(Acquire),
        dead_letters: counts(&|kind| shared.dead[kind].load(Relaxed)),
        dropped: shared.dropped.load(Relaxed),
        panics: std::mem::take(&mut *lock(&shared.panics)),
        waiting: waiting.collect(),
        waiting_total,
        time: over,
        wall: shared.clock.now().elapsed(),
        peak_memory: peak_memory(),
        digest: None,
        windows: 0,
        per_actor,
    }
}
