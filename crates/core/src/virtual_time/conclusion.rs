//! The end of a run: what its shards have to say, put together.

use super::addresses;
use super::engine::{self, End};
use super::places::Directory;
use super::shard::{self, Failure, Why};
use crate::contract::{
    Config, Executor, KindCount, Message, Outcome, Report, RunError, Time, Waiting,
};
use crate::memory::peak_memory;
use std::time::Duration;

/// What the shards have done, as far as each can tell for itself.
pub(super) fn add_up<M: Message>(
    config: &Config,
    wall: Duration,
    outcomes: &[engine::Outcome],
    outcome: Outcome,
) -> Report {
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
    let totals = outcomes.iter().flat_map(|outcome| &outcome.totals);
    let mut per_actor: Vec<_> = totals.copied().collect();
    per_actor.sort_by_key(|totals| totals.who);
    Report {
        executor: Executor::Virtual,
        seed: config.seed,
        workers: config.workers.get(),
        outcome,
        messages: by_kind(|tally| &tally.messages),
        timers: sum(|tally| tally.fired),
        spawned: outcomes[0].spawned,
        // The root's end is that of the run.
        ended: sum(|tally| tally.ended) - u64::from(root_ended.is_some()),
        dead_letters: by_kind(|tally| &tally.dead),
        dropped: 0,
        lost: sum(|tally| tally.lost),
        duplicated: sum(|tally| tally.duplicated),
        panics: Vec::new(),
        waiting: Vec::new(),
        waiting_total: sum(shard::Tally::live),
        time: Time::from_nanos(root_ended.unwrap_or(last)),
        wall,
        peak_memory: peak_memory(),
        digest: Some(tallies().fold(0, |all, tally| all.wrapping_add(tally.digest))),
        windows: outcomes.iter().map(|each| each.windows).max().unwrap_or(0),
        per_actor,
    }
}

/// Puts the shards' outcomes together, and says how the run went.
pub(super) fn conclude<M: Message>(
    config: &Config,
    wall: Duration,
    mut outcomes: Vec<engine::Outcome>,
) -> Result<Report, RunError> {
    let names = outcomes
        .iter_mut()
        .flat_map(|outcome| outcome.names.drain(..));
    let directory = Directory::new(names.collect());
    let end = outcomes[0].end;
    let outcome = if end == End::Halted {
        Outcome::Cut
    } else {
        Outcome::Completed
    };
    let mut report = add_up::<M>(config, wall, &outcomes, outcome);
    let tallies = || outcomes.iter().map(|outcome| &outcome.tally);
    let waiting = outcomes.iter().flat_map(|outcome| outcome.waiting.clone());
    report.waiting = waiting.collect();
    report.waiting.sort_by_key(|actor| actor.who);
    report.waiting.truncate(Report::MOST_WAITING);
    for actor in &mut report.waiting {
        if let Waiting::Answer(whose) = actor.waiting {
            actor.whose = Some(directory.name_of(whose.as_u32()));
        }
    }
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
    let panics = outcomes
        .iter_mut()
        .flat_map(|each| each.tally.panics.drain(..));
    let named = panics.map(|(mut panic, whose)| {
        let name = whose.map(|whose| directory.name_of(whose));
        panic.event.extend(name);
        panic
    });
    report.panics = named.collect();
    report.panics.sort_by_key(|panic| (panic.time, panic.who));
    report.panics.truncate(Report::MOST_PANICS);
    let tallies = || outcomes.iter().map(|outcome| &outcome.tally);
    let panic = failure.as_ref().and_then(|failure| match &failure.why {
        Why::Panic { report, .. } => Some(report.clone()),
        _ => None,
    });
    report.panics.extend(panic);
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
        End::Root | End::Halted | End::Paused => Ok(*report),
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
