//! The search for a violated property.

use crate::node::STATES;
use crate::{FaultPlan, HuntError, Properties, RunResult, Subject};
use corsair::Random;
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
        let draw = |_| {
            let seed = random.bits() >> 12;
            (seed, subject.draw(&mut Random::new(seed)))
        };
        let count = if threads == 1 { 1 } else { GENERATION };
        let candidates: Vec<(u64, FaultPlan)> = (0..left.min(count)).map(draw).collect();
        let results = run_all(subject, &candidates, threads);
        for ((seed, plan), result) in candidates.into_iter().zip(results) {
            let result = result?;
            hunted.runs += 1;
            hunted.properties.merge(&result.properties);
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
        }
        progress(&hunted);
    }
    Ok(hunted)
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
