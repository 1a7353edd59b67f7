//! The virtual executor: deterministic discrete-event execution in virtual time.
//!
//! **The result is the same, to the last bit, for any number of workers.** Every event has a time,
//! a receiver, a sender and a sequence number; a receiver handles its events in the order of (time,
//! sender, sequence), and nothing that an actor can observe depends on anything else.
//!
//! # How
//! Actors live on shards, one per worker thread, which share nothing. Time is cut into windows no
//! wider than the smallest latency of a message, so that nothing sent in a window arrives in it:
//! all shards run a window at once, and meet only between two windows ([`exchange`]); windows in
//! which nothing happens are skipped.
//!
//! An event is written once, by the sender's shard, into the buffer of its receiver's shard and its
//! window ([`parcel`]), and read once, there. Between shards whole buffers change hands, and no message
//! costs an allocation, a lock or an atomic operation. Within a window the events are grouped by
//! receiver and each group is ordered by itself ([`order`]). Timers wait in a hierarchical wheel
//! ([`wheel`]), the actors of one spawn side by side in memory ([`residents`], [`region`]).
//!
//! Actors are spawned when the shards meet, in an order that all of them agree on; so addresses do
//! not depend on the number of shards either, and with them random numbers and latencies.
//!
//! The executor does no I/O, and reads the clock of the wall once before and once after a run.

mod addresses;
mod context;
mod engine;
mod exchange;
mod form;
mod header;
mod kept;
mod near;
mod order;
mod parcel;
mod places;
mod population;
mod region;
mod residents;
mod scheduled;
mod shard;
mod slab;
mod spare;
mod waker;
mod wheel;

use crate::contract::{
    Config, Executor, KindCount, Message, Outcome, Report, RunError, Scenario, Time, Waiting,
    peak_memory,
};
use engine::End;
use exchange::{Alone, Matrix};
use places::Directory;
use population::Blueprint;
use shard::{Failure, Shard, Why};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// The most workers of which each has some of so many actors, if those are spawned at once: actors
/// are dealt to workers in pages of 256.
pub fn most_workers(actors: u32) -> NonZeroUsize {
    let pages = actors.div_ceil(addresses::PAGE);
    NonZeroUsize::new(pages as usize).unwrap_or(NonZeroUsize::MIN)
}

/// Runs a scenario in virtual time.
pub(crate) fn run<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let started = Instant::now();
    let root: Arc<dyn Blueprint<M, Shard<M>>> =
        Arc::new(context::root_form(move |context| scenario.root(context)));
    let outcomes = run_shards(config, root)?;
    conclude::<M>(config, started, outcomes)
}

/// Runs all shards, the first one on this thread.
fn run_shards<M: Message>(
    config: &Config,
    root: Arc<dyn Blueprint<M, Shard<M>>>,
) -> Result<Vec<engine::Outcome>, RunError> {
    let shards = config.workers.get();
    if shards == 1 {
        return Ok(vec![engine::run_shard(config, 0, Alone, root)]);
    }
    let matrix = &Matrix::new(shards);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for index in 1..shards {
            let root = Arc::clone(&root);
            let work = move || engine::run_shard(config, index, matrix.port(index), root);
            let name = format!("shard {index}");
            match std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)
            {
                Ok(thread) => others.push(thread),
                Err(source) => {
                    // Those that have begun wait for this one, and stop.
                    matrix.abandon();
                    let report = Box::new(Report {
                        executor: Executor::Virtual,
                        seed: config.seed,
                        workers: index,
                        ..Report::default()
                    });
                    return Err(RunError::Thread { source, report });
                }
            }
        }
        let first = engine::run_shard(config, 0, matrix.port(0), root);
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(std::iter::once(first).chain(others).collect())
    })
}

/// Puts the shards' outcomes together, and says how the run went.
fn conclude<M: Message>(
    config: &Config,
    started: Instant,
    mut outcomes: Vec<engine::Outcome>,
) -> Result<Report, RunError> {
    let names = outcomes
        .iter_mut()
        .flat_map(|outcome| outcome.names.drain(..));
    let directory = Directory::new(names.collect());
    let tallies = || outcomes.iter().map(|outcome| &outcome.tally);
    let by_kind = |counts: fn(&shard::Tally) -> &Vec<u64>| {
        let count = |kind: usize| tallies().map(|tally| counts(tally)[kind]).sum();
        let kinds = M::KINDS.iter().enumerate();
        kinds
            .map(|(index, &kind)| KindCount {
                kind,
                count: count(index),
            })
            .collect()
    };
    let sum = |count: fn(&shard::Tally) -> u64| tallies().map(count).sum::<u64>();
    let root_ended = tallies().find_map(|tally| tally.root_ended);
    let last = tallies().map(|tally| tally.last).max().unwrap_or(0);
    let mut waiting: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| outcome.waiting.clone())
        .collect();
    waiting.sort_by_key(|actor| actor.who);
    waiting.truncate(Report::MOST_WAITING);
    for actor in &mut waiting {
        if let Waiting::Answer(whose) = actor.waiting {
            actor.whose = Some(directory.name_of(whose.as_u32()));
        }
    }
    let mut per_actor: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| outcome.totals.iter().copied())
        .collect();
    per_actor.sort_by_key(|totals| totals.who);
    let mut failure = tallies()
        .filter_map(|tally| tally.failure.clone())
        .min_by_key(Failure::order);
    if let Some(Failure {
        why: Why::Panic { report, whose },
        ..
    }) = &mut failure
    {
        let name = whose.map(|whose| directory.name_of(whose));
        report.event.extend(name);
    }
    let end = outcomes[0].end;
    let panic = failure.as_ref().and_then(|failure| match &failure.why {
        Why::Panic { report, .. } => Some(report.clone()),
        _ => None,
    });
    let report = Report {
        executor: Executor::Virtual,
        seed: config.seed,
        workers: config.workers.get(),
        outcome: if end == End::Halted {
            Outcome::Cut
        } else {
            Outcome::Completed
        },
        messages: by_kind(|tally| &tally.messages),
        timers: sum(|tally| tally.fired),
        spawned: outcomes[0].spawned,
        // The root's end is that of the run.
        ended: sum(|tally| tally.ended) - u64::from(root_ended.is_some()),
        dead_letters: by_kind(|tally| &tally.dead),
        dropped: 0,
        panics: panic.into_iter().collect(),
        waiting,
        waiting_total: sum(shard::Tally::live),
        time: Time::from_nanos(root_ended.unwrap_or(last)),
        wall: started.elapsed(),
        peak_memory: peak_memory(),
        digest: Some(tallies().fold(0, |all, tally| all.wrapping_add(tally.digest))),
        windows: outcomes[0].windows,
        per_actor,
    };
    let too_many = tallies().any(|tally| tally.too_many);
    let dead = report.dead();
    let report = Box::new(report);
    if let Some(Failure {
        time, name, why, ..
    }) = failure
    {
        let time = Time::from_nanos(time);
        return Err(match why {
            Why::Panic { report: panic, .. } => {
                let panic = Box::new(panic);
                RunError::Panicked { panic, report }
            }
            Why::Livelock(events) => RunError::Livelock {
                name,
                time,
                events: events.into(),
                report,
            },
            Why::Sends => RunError::TooManySends { name, time, report },
        });
    }
    match end {
        End::Halted if too_many => Err(RunError::TooManyActors {
            page: addresses::PAGE,
            report,
        }),
        End::Quiet => Err(RunError::Deadlock { report }),
        End::Past => {
            let next = outcomes
                .iter()
                .map(|outcome| outcome.next)
                .min()
                .unwrap_or(u64::MAX);
            let end = config.end.unwrap_or(Time::MAX);
            Err(RunError::PastEnd {
                end,
                next: Time::from_nanos(next),
                report,
            })
        }
        End::Root if config.strict && dead > 0 => {
            let first = first_dead::<M>(&outcomes, &directory);
            Err(RunError::DeadLetters {
                count: dead,
                first,
                report,
            })
        }
        End::Root if config.strict && report.waiting_total > 0 => {
            Err(RunError::LeftWaiting { report })
        }
        End::Root | End::Halted => Ok(*report),
    }
}

/// The first dead letter of the run, in words.
fn first_dead<M: Message>(outcomes: &[engine::Outcome], directory: &Directory) -> String {
    let name = |addr: u32| directory.name_of(addr);
    let firsts = outcomes
        .iter()
        .filter_map(|outcome| outcome.tally.first_dead.as_ref());
    firsts
        .min_by_key(|first| first.order)
        .map_or_else(String::new, |first| {
            let (time, to, from) = first.order;
            let time = Time::from_nanos(time);
            format!(
                "{} from {} to {} at {time}",
                M::KINDS[first.kind],
                name(from),
                name(to)
            )
        })
}
