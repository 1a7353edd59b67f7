//! The report of a completed run, or its error.

use super::records::Records;
use super::system::{End, System};
use crate::contract::{
    ActorTotals, Addr, Config, Executor, KindCount, Message, Outcome, Report, RunError, Time,
    WaitReason, WaitingActor,
};
use crate::memory::peak_memory;
use crate::sync::lock;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Returns the report of the run, or its error. Every context has been dropped before.
pub(super) fn conclude<M: Message>(
    system: &Arc<System<M>>,
    executor: Executor,
    over: Time,
) -> Result<Report, RunError> {
    system.discard_unread();
    let mut end = lock(&system.end).take().unwrap_or(End::Completed);
    if let (End::Completed, Some(panic)) = (&end, lock(&system.late_panic).take()) {
        end = End::Panicked(panic);
    }
    let mut report = Box::new(report(system, executor, over));
    let Config {
        strict, mailbox, ..
    } = system.config;
    Err(match end {
        End::Completed if strict && report.dead() > 0 => RunError::DeadLetters {
            count: report.dead(),
            first: lock(&system.first_dead).take().unwrap_or_default(),
            report,
        },
        End::Completed if strict && report.waiting_total > 0 => RunError::LeftWaiting { report },
        End::Completed => return Ok(*report),
        End::Cancelled => {
            report.outcome = Outcome::Cancelled;
            return Ok(*report);
        }
        End::Deadlock => RunError::Deadlock { report },
        End::Panicked(panic) => RunError::Panicked { panic, report },
        End::Late { end, next } => RunError::PastEnd { end, next, report },
        End::TooManySends { who, time } => RunError::TooManySends {
            name: system.name(who),
            time,
            report,
        },
        End::Overflow { who } => RunError::Overflow {
            name: system.name(who),
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

fn report<M: Message>(system: &Arc<System<M>>, executor: Executor, over: Time) -> Report {
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
    let Records {
        waiting,
        waiting_total,
        totals,
    } = std::mem::take(&mut *lock(&system.records));
    let waiting = waiting.into_iter().map(|(who, (waiting, stashed))| {
        let callee = match waiting {
            WaitReason::Answer(callee) => Some(system.name(callee)),
            _ => None,
        };
        WaitingActor {
            who,
            name: system.name(who),
            waiting,
            callee,
            stashed,
        }
    });
    let spawned = system.spawned();
    let mut per_actor = Vec::new();
    if system.config.per_actor {
        per_actor.extend((0..spawned).map(|who| ActorTotals {
            who: Addr(who),
            sent: 0,
            received: 0,
            ended: system.cells.get(who).and_then(|cell| cell.reason()),
        }));
        for (who, sent, received) in totals {
            let actor: &mut ActorTotals = &mut per_actor[who.0 as usize];
            (actor.sent, actor.received) = (sent, received);
        }
    }
    Report {
        executor,
        seed: system.config.seed,
        workers: match executor {
            Executor::Threads => system.most_live.load(Relaxed) as usize,
            _ => system.config.workers.get(),
        },
        outcome: Outcome::Completed,
        messages: counts(&|kind| system.counters.delivered(kind)),
        timers: system.counters.timers(),
        spawned: spawned.into(),
        ended: system.ended.load(Acquire),
        dead_letters: counts(&|kind| system.dead[kind].load(Relaxed)),
        dropped: system.dropped.load(Relaxed),
        lost: 0,
        duplicated: 0,
        panics: std::mem::take(&mut *lock(&system.panics)),
        waiting: waiting.collect(),
        waiting_total,
        time: over,
        wall: system.clock.now().elapsed(),
        peak_memory: peak_memory(),
        digest: None,
        windows: 0,
        probes: std::mem::take(&mut *lock(&system.probes)),
        per_actor,
    }
}
