//! A cluster of `corsair-courier serve` with clients, as a subject of a search for faults.

use crate::clients::{self, Group};
use crate::faults::{self, LEAST, SETUP, ms};
use crate::nodes::{self, Leave};
use corsair::Random;
use corsair_check::{Limits, Verdict, check, smallest_violation, timeline};
use corsair_courier_load::histories::{Conversations, History};
use corsair_host::{Sim, simulate};
use corsair_hunt::{Fault, FaultPlan, HuntError, Properties, RunResult, Subject, Trace};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of conversations.
const GROUPS: u64 = 2;
/// A run counts as a proof if it has this number of operations and of virtual seconds, and enough faults.
pub const OPERATIONS: u64 = 200;
pub const SECONDS: u64 = 30;

const LINEARIZABLE: &str = "conversations are linearizable";
const SHOWN: &str = "sockets show each message once and in order";
const DELIVERED: &str = "sockets show every message after the last fault";
const PROGRAMS_RUN: &str = "no program fails";
const RECOVERS: &str = "clients are answered after the last fault";
const REPEATABLE: &str = "a seed has one digest on one and two workers";

/// A cluster of a number of nodes.
#[derive(Default)]
pub struct Cluster {
    pub nodes: u32,
    /// The duration of the faults and of the recovery in milliseconds.
    pub time: u32,
    /// Each run is repeated on two workers, and must have the same digest.
    pub repeats: bool,
    pub totals: Totals,
}

/// The contents of all runs together.
#[derive(Default)]
pub struct Totals {
    /// The runs that count as proofs.
    pub counted: AtomicU64,
    pub operations: AtomicU64,
    /// The messages that sockets have shown.
    pub shown: AtomicU64,
    pub faults: AtomicU64,
}

/// The result of a run, which its process returns as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    pub violation: Option<Violation>,
    /// The number of operations of all clients.
    operations: u64,
    /// The number of messages that all sockets have shown, without repetitions.
    shown: u64,
    /// The number of system calls of all programs.
    calls: u64,
    /// The duration of the run in virtual nanoseconds.
    time: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Violation {
    /// The violated property.
    pub property: String,
    pub explanation: String,
    /// The smallest history that shows the violation, as SVG.
    pub picture: Option<String>,
    /// The log of all programs.
    pub log: String,
}

impl Violation {
    fn of(property: &str, explanation: String) -> Violation {
        Violation {
            property: property.to_owned(),
            explanation,
            ..Violation::default()
        }
    }
}

impl Cluster {
    /// Runs the cluster once, in a separate process. Returns the result, and the digest of the run.
    pub fn simulate(&self, seed: u64, plan: &FaultPlan, workers: usize) -> (Answer, u64) {
        let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        let body = |sim: &mut Sim| -> Result<(), String> {
            let answer = self.body(sim, plan);
            Err(serde_json::to_string(&answer).unwrap_or_default())
        };
        let (text, digest) = match simulate(seed, workers, body) {
            Ok((text, digest)) => (text.unwrap_or_default(), digest),
            Err(error) => (error.to_string(), 0),
        };
        let answer = serde_json::from_str(&text).unwrap_or_else(|_| Answer {
            violation: Some(Violation::of(PROGRAMS_RUN, text)),
            ..Answer::default()
        });
        (answer, digest)
    }

    fn body(&self, sim: &mut Sim, plan: &FaultPlan) -> Answer {
        sim.disk(faults::healthy());
        let is_rare = self.nodes > 2 && plan.faults.contains(&Fault::Buggify);
        let leave = is_rare.then(|| {
            let mut random = Random::new(sim.seed() ^ 0x1ea7e);
            Leave::draw(&mut random, self.nodes, ms(SETUP), plan.faults_until())
        });
        let nodes = nodes::add(sim, self.nodes, leave);
        let hosts: Vec<String> = (0..self.nodes).map(nodes::address).collect();
        let groups = Group::all(GROUPS);
        let end = ms(SETUP + plan.until.unwrap_or(plan.time));
        for group in &groups {
            clients::add(sim, group, &hosts, end);
        }
        faults::schedule(sim, &nodes, plan);
        let outcome = sim.run_until(end);
        let history: History = groups.iter().flat_map(Group::history).collect();
        let mut violation = match outcome {
            Err(error) => Some(Violation::of(PROGRAMS_RUN, error.to_string())),
            Ok(()) => contradiction(&history).or_else(|| {
                let shown = groups.iter().find_map(Group::contradiction)?;
                Some(Violation::of(SHOWN, shown))
            }),
        };
        if violation.is_none() && plan.until.is_none() {
            // Faults stop after two thirds, and recovery may take half of the last third.
            let least = end.saturating_sub(ms(plan.time / 6));
            violation = silence(&groups, least).or_else(|| undelivered(&groups, least));
        }
        if let Some(violation) = &mut violation {
            violation.log = sim.log();
        }
        Answer {
            violation,
            operations: history.len() as u64,
            shown: groups.iter().map(Group::shown).sum(),
            calls: sim.totals().0,
            time: sim.now().as_nanos(),
        }
    }
}

/// Returns the violation if a history is not linearizable.
fn contradiction(history: &History) -> Option<Violation> {
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let Verdict::Violation(violation) = check(&Conversations, history, &limits).verdict else {
        return None;
    };
    let smallest = smallest_violation(&Conversations, history, &violation, &limits);
    let explanation = timeline::explain(&Conversations, &smallest, &limits);
    let text = timeline::text(&Conversations, &smallest, &explanation);
    let svg = timeline::svg(&Conversations, &smallest, &explanation, LINEARIZABLE);
    Some(Violation {
        picture: Some(svg),
        ..Violation::of(LINEARIZABLE, text)
    })
}

/// Returns the violation if the clients of a conversation were not answered after a time.
fn silence(groups: &[Group], least: Duration) -> Option<Violation> {
    let group = groups
        .iter()
        .find(|group| !group.is_answered_after(least))?;
    let text = format!(
        "the clients of conversation {} were not answered after {} ms",
        group.number,
        least.as_millis()
    );
    Some(Violation::of(RECOVERS, text))
}

/// Returns the violation if a socket has not shown a message that was stored before a time.
fn undelivered(groups: &[Group], time: Duration) -> Option<Violation> {
    let (group, number) = groups
        .iter()
        .find_map(|group| Some((group.number, group.missing(time)?)))?;
    let text = format!("a socket has not shown message {number} of conversation {group}");
    Some(Violation::of(DELIVERED, text))
}

impl Subject for Cluster {
    fn name(&self) -> &'static str {
        "courier"
    }

    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn time(&self) -> u32 {
        self.time
    }

    fn loses_disks(&self) -> bool {
        false
    }

    fn draw(&self, random: &mut Random, time: u32) -> FaultPlan {
        faults::draw(random, self.nodes, time)
    }

    fn run(&self, seed: u64, plan: &FaultPlan, workers: usize) -> Result<RunResult, HuntError> {
        plan.check(self.nodes)?;
        let (mut answer, digest) = self.simulate(seed, plan, workers);
        if self.repeats && self.simulate(seed, plan, 2).1 != digest {
            answer.violation = Some(Violation::of(REPEATABLE, String::new()));
        }
        let is_proof = answer.operations >= OPERATIONS
            && plan.faults.len() >= LEAST
            && answer.time >= SECONDS * 1_000_000_000;
        let totals = &self.totals;
        totals.counted.fetch_add(is_proof.into(), Relaxed);
        totals.operations.fetch_add(answer.operations, Relaxed);
        totals.shown.fetch_add(answer.shown, Relaxed);
        totals.faults.fetch_add(plan.faults.len() as u64, Relaxed);
        let violated = answer.violation.map(|violation| violation.property);
        let names = [
            LINEARIZABLE,
            SHOWN,
            DELIVERED,
            PROGRAMS_RUN,
            RECOVERS,
            REPEATABLE,
        ];
        let counters = names.map(|name| match violated.as_deref() == Some(name) {
            true => format!("always violated: {name}"),
            false => format!("always held: {name}"),
        });
        Ok(RunResult {
            properties: Properties::of_counters(counters.iter().map(|name| (&name[..], 1))),
            digest,
            events: answer.calls,
            changes: Vec::new(),
        })
    }

    fn trace(&self, seed: u64, plan: &FaultPlan) -> Result<Trace, HuntError> {
        Ok(Trace::new(self.run(seed, plan, 1)?, Vec::new()))
    }
}
