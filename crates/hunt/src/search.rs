//! The search for a violated property.

use crate::node::STATES;
use crate::{Change, FaultPlan, HuntError, Properties, RunResult, Subject};
use corsair::Random;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The seed from which all random choices are drawn. The result does not depend on the number of threads, unless
    /// the time limit is reached.
    pub seed: u64,
    /// The maximum number of runs.
    pub runs: u64,
    /// The maximum duration of the search.
    pub time: Duration,
    /// The number of threads; 0 means one for each core.
    pub threads: usize,
    /// The shard of a hunt on several machines: each shard draws different runs.
    pub shard: u64,
}

/// By default a search makes up to a million runs in a minute, on all cores.
impl Default for Hunt {
    fn default() -> Hunt {
        Hunt {
            seed: 0,
            runs: 1_000_000,
            time: Duration::from_mins(1),
            threads: 0,
            shard: 0,
        }
    }
}

/// A run that violates a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The property that is violated, the first by name.
    pub property: String,
    /// The seed of the run.
    pub seed: u64,
    /// The faults of the run.
    pub plan: FaultPlan,
    /// The number of messages and timers that the nodes have handled.
    pub events: u64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunted {
    /// The number of runs up to the failure, or of all runs.
    pub runs: u64,
    /// The first run that violates a property.
    pub failure: Option<Failure>,
    /// The properties of all runs.
    pub properties: Properties,
    /// The number of covered states.
    pub covered: u32,
}

/// The number of runs between two checks of the bounds, on several threads.
const GENERATION: usize = 32;

/// Runs a program with different seeds and faults, until a property is violated or a bound is
/// reached.
///
/// # Errors
/// If a run cannot be completed.
pub fn hunt(subject: &dyn Subject, hunt: &Hunt) -> Result<Hunted, HuntError> {
    hunt_with(subject, hunt, |_| {})
}

/// Searches like [`hunt()`], but calls `progress` with the results so far, on one thread after each run, on several after every 32.
///
/// # Errors
/// If a run cannot be completed.
pub fn hunt_with(
    subject: &dyn Subject,
    hunt: &Hunt,
    mut progress: impl FnMut(&Hunted),
) -> Result<Hunted, HuntError> {
    let deadline = Instant::now().checked_add(hunt.time);
    // The shard's number is hashed, because a multiple of it would only shift the sequence of
    // random numbers.
    let part = match hunt.shard {
        0 => 0,
        shard => Random::new(shard).bits(),
    };
    let mut random = Random::new(hunt.seed ^ part);
    let mut covered = vec![0; (STATES / 64) as usize];
    let (mut past, mut new) = (Past::new(), Vec::new());
    let mut hunted = Hunted {
        runs: 0,
        failure: None,
        properties: Properties::default(),
        covered: 0,
    };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if hunt.threads == 0 {
        cores()
    } else {
        hunt.threads
    };
    while hunted.runs < hunt.runs && deadline.is_none_or(|end| Instant::now() < end) {
        let left = usize::try_from(hunt.runs - hunted.runs).unwrap_or(usize::MAX);
        let draw = |_| past.draw(subject, &mut random);
        let count = if threads == 1 { 1 } else { GENERATION };
        let candidates: Vec<(u64, FaultPlan)> = (0..left.min(count)).map(draw).collect();
        let results = run_all(subject, &candidates, threads);
        for ((seed, plan), result) in candidates.into_iter().zip(results) {
            let result = result?;
            hunted.runs += 1;
            hunted.properties.merge(&result.properties);
            let before = hunted.covered;
            hunted.covered = cover(&mut covered, &result.coverage);
            if let Some(property) = result.properties.violated().first() {
                hunted.failure = Some(Failure {
                    property: (*property).to_owned(),
                    seed,
                    plan,
                    events: result.events,
                });
                return Ok(hunted);
            }
            let is_kept = hunted.covered > before || hunted.runs.is_multiple_of(OTHERS);
            let changes = result.changes;
            new.push((
                PastRun {
                    seed,
                    plan,
                    changes,
                },
                is_kept,
            ));
            // The choice of runs does not depend on the number of threads.
            if hunted.runs.is_multiple_of(GENERATION as u64) {
                new.drain(..)
                    .for_each(|(run, is_kept)| past.add(run, is_kept));
            }
        }
        progress(&hunted);
    }
    Ok(hunted)
}

/// The maximum number of runs from which others branch.
const MOST_PAST: usize = 64;
/// One of this number of runs is kept even if it reached no new state.
const OTHERS: u64 = 8;
/// A run branches at the rarest of this number of changes.
const LOTS: u32 = 16;

/// The runs from which others branch.
struct Past {
    runs: VecDeque<PastRun>,
    /// The number of changes of each kind in all runs.
    counts: Vec<u64>,
}

struct PastRun {
    seed: u64,
    plan: FaultPlan,
    /// The changes while there may be faults.
    changes: Vec<Change>,
}

impl Past {
    fn new() -> Past {
        Past {
            runs: VecDeque::new(),
            counts: vec![0; STATES as usize],
        }
    }

    fn add(&mut self, mut run: PastRun, is_kept: bool) {
        let until = run.plan.faults_until();
        run.changes.retain(|change| change.at < until);
        for change in &run.changes {
            self.counts[usize::from(change.kind)] += 1;
        }
        if is_kept && !run.changes.is_empty() {
            self.runs.push_back(run);
            if self.runs.len() > MOST_PAST {
                self.runs.pop_front();
            }
        }
    }

    /// Draws a new run, or one that equals an earlier run until a node changes its state. Some bugs need a fault in the
    /// millisecond in which a leader is elected.
    fn draw(&self, subject: &dyn Subject, random: &mut Random) -> (u64, FaultPlan) {
        let seed = random.bits() >> 12;
        let mut random = Random::new(seed);
        if self.runs.is_empty() || random.below(2) == 0 {
            return (seed, subject.draw(&mut random, subject.time()));
        }
        let past = &self.runs[random.below(self.runs.len() as u32) as usize];
        let mut lot = || past.changes[random.below(past.changes.len() as u32) as usize];
        let first = lot();
        let rarest = (1..LOTS).map(|_| lot()).fold(first, |rarest, other| {
            let count = |change: Change| self.counts[usize::from(change.kind)];
            if count(other) < count(rarest) {
                other
            } else {
                rarest
            }
        });
        let (nodes, loses) = (subject.nodes(), subject.loses_disks());
        let plan = past.plan.branch(&mut random, rarest.at, nodes, loses);
        (past.seed, plan)
    }
}

/// Adds the states of a run, and returns the total number of covered states.
fn cover(covered: &mut [u64], more: &[u64]) -> u32 {
    covered
        .iter_mut()
        .zip(more)
        .for_each(|(all, word)| *all |= word);
    covered.iter().map(|word| word.count_ones()).sum()
}

/// Runs all candidates, and returns their results in order.
fn run_all(
    subject: &dyn Subject,
    candidates: &[(u64, FaultPlan)],
    threads: usize,
) -> Vec<Result<RunResult, HuntError>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(candidates.len()));
    let work = || {
        while let Some((index, (seed, plan))) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            candidates.get(index).map(|candidate| (index, candidate))
        } {
            let result = subject.run(*seed, plan, 1);
            lock(&results).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(candidates.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
