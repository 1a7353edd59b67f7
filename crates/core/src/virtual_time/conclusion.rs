//! The report of a run, combined from its shards.

use super::actor_table::Directory;
use super::addresses;
use super::engine::{self, End};
use super::shard::{self, Failure, FailureCause};
use crate::contract::{
    Config, Executor, KindCount, Outcome, PanicReport, Probes, Report, RunError, Time, WaitReason,
    WaitingActor,
};
use crate::memory::peak_memory;
use std::time::Duration;

/// Adds up the counters of all shards. `kinds` are the names of the message kinds. The function is not generic over the
/// message type, so it is compiled only once.
pub(super) fn add_up(
    kinds: &[&'static str],
    config: &Config,
    wall: Duration,
    outcomes: &[engine::Outcome],
    outcome: Outcome,
) -> Report {
    let counted = || outcomes.iter().map(|outcome| &outcome.counters);
    let by_kind = |counts: fn(&shard::Counters) -> &Vec<u64>| {
        let count = |kind: usize| counted().map(|counters| counts(counters)[kind]).sum();
        let kinds = kinds.iter().enumerate();
        kinds
            .map(|(index, &kind)| KindCount {
                kind,
                count: count(index),
            })
            .collect()
    };
    let sum = |count: fn(&shard::Counters) -> u64| counted().map(count).sum::<u64>();
    let root_ended = counted().find_map(|counters| counters.root_ended);
    let last = counted().map(|counters| counters.last).max().unwrap_or(0);
    let totals = outcomes.iter().flat_map(|outcome| &outcome.totals);
    let mut per_actor: Vec<_> = totals.copied().collect();
    per_actor.sort_by_key(|totals| totals.who);
    let mut probes = Probes::default();
    counted().for_each(|counters| probes.merge(&counters.probes));
    Report {
        executor: Executor::Virtual,
        seed: config.seed,
        workers: config.workers.get(),
        outcome,
        messages: by_kind(|counters| &counters.messages),
        timers: sum(|counters| counters.fired),
        spawned: outcomes[0].spawned,
        // The end of the root does not count.
        ended: sum(|counters| counters.ended) - u64::from(root_ended.is_some()),
        dead_letters: by_kind(|counters| &counters.dead),
        dropped: 0,
        lost: sum(|counters| counters.lost),
        duplicated: sum(|counters| counters.duplicated),
        panics: Vec::new(),
        waiting: Vec::new(),
        waiting_total: sum(shard::Counters::live),
        time: Time::from_nanos(root_ended.unwrap_or(last)),
        wall,
        peak_memory: peak_memory(),
        digest: Some(counted().fold(0, |all, counters| all.wrapping_add(counters.digest))),
        windows: outcomes.iter().map(|each| each.windows).max().unwrap_or(0),
        probes,
        per_actor,
    }
}

/// Adds the names of actors that the shard that reported the panic did not know.
fn complete(panic: &mut PanicReport, peer: Option<u32>, directory: &Directory) {
    if panic.name.is_empty() {
        panic.name = directory.name_of(panic.who.as_u32());
    }
    let peer = peer.map(|peer| directory.name_of(peer));
    panic.event.extend(peer);
}

/// Combines the outcomes of the shards into a report or an error.
pub(super) fn conclude(
    kinds: &[&'static str],
    config: &Config,
    wall: Duration,
    mut outcomes: Vec<engine::Outcome>,
) -> Result<Report, RunError> {
    let names = outcomes
        .iter_mut()
        .flat_map(|outcome| outcome.names.drain(..));
    let directory = Directory::new(names.collect());
    let end = outcomes[0].end;
    let outcome = match end {
        End::Halted => Outcome::Cancelled,
        End::Paused => Outcome::Running,
        End::Root | End::Quiet | End::Past => Outcome::Completed,
    };
    let mut report = add_up(kinds, config, wall, &outcomes, outcome);
    let counted = || outcomes.iter().map(|outcome| &outcome.counters);
    let waiting = outcomes.iter().flat_map(|outcome| outcome.waiting.clone());
    report.waiting = waiting.collect();
    report.waiting.sort_by_key(|actor| actor.who);
    let is_foreign = |actor: &&WaitingActor| actor.waiting == WaitReason::Foreign;
    let foreign = report.waiting.iter().find(is_foreign);
    let foreign = foreign.map(|actor| actor.name.clone());
    report.waiting.truncate(Report::MOST_WAITING);
    for actor in &mut report.waiting {
        if let WaitReason::Answer(callee) = actor.waiting {
            actor.callee = Some(directory.name_of(callee.as_u32()));
        }
    }
    let mut failure = counted()
        .filter_map(|counters| counters.failure.clone())
        .min_by(|one, other| one.order().cmp(&other.order()));
    if let Some(Failure {
        cause: FailureCause::Panic { report, peer },
        ..
    }) = &mut failure
    {
        complete(report, *peer, &directory);
    }
    let panics = outcomes
        .iter_mut()
        .flat_map(|each| each.counters.panics.drain(..));
    let mut panics: Vec<_> = panics.collect();
    panics.sort_by(shard::compare_panics);
    panics.truncate(Report::MOST_PANICS);
    let named = panics.into_iter().map(|(mut panic, peer)| {
        complete(&mut panic, peer, &directory);
        panic
    });
    report.panics = named.collect();
    let counted = || outcomes.iter().map(|outcome| &outcome.counters);
    let panic = failure.as_ref().and_then(|failure| match &failure.cause {
        FailureCause::Panic { report, .. } => Some(report.clone()),
        _ => None,
    });
    report.panics.extend(panic);
    let too_many = counted().any(|counters| counters.too_many);
    let dead = report.dead();
    let report = Box::new(report);
    if let Some(Failure {
        time, name, cause, ..
    }) = failure
    {
        let time = Time::from_nanos(time);
        return Err(match cause {
            FailureCause::Panic { report: panic, .. } => {
                let panic = Box::new(panic);
                RunError::Panicked { panic, report }
            }
            FailureCause::Livelock(events) => RunError::Livelock {
                name,
                time,
                events: events.into(),
                report,
            },
            FailureCause::Sends => RunError::TooManySends { name, time, report },
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
        End::Root if let Some(name) = foreign => Err(RunError::ForeignFuture { name, report }),
        End::Root if config.strict && dead > 0 => {
            let first = first_dead(kinds, &outcomes, &directory);
            Err(RunError::DeadLetters {
                count: dead,
                first,
                report,
            })
        }
        End::Root if config.strict && report.waiting_total > 0 => {
            Err(RunError::LeftWaiting { report })
        }
        End::Root | End::Halted | End::Paused => Ok(*report),
    }
}

/// Describes the first dead letter of the run in words.
fn first_dead(kinds: &[&str], outcomes: &[engine::Outcome], directory: &Directory) -> String {
    let name = |addr: u32| directory.name_of(addr);
    let firsts = outcomes
        .iter()
        .filter_map(|outcome| outcome.counters.first_dead.as_ref());
    firsts
        .min_by_key(|first| first.order)
        .map_or_else(String::new, |first| {
            let (time, to, from) = first.order;
            let time = Time::from_nanos(time);
            format!(
                "{} from {} to {} at {time}",
                kinds[first.kind],
                name(from),
                name(to)
            )
        })
}
