//! The search for a violated property.

use crate::{FaultPlan, HuntError, Properties, RunResult, Subject};
use corsair::Random;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a search goes.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// Everything that is drawn follows from it: the result does not depend on the number of
    /// threads, unless the time runs out.
    pub seed: u64,
    /// Most runs.
    pub runs: u64,
    /// Longest time.
    pub time: Duration,
    /// Threads; 0 means one for each core.
    pub threads: usize,
    /// Vary the plans of runs that reached new states, instead of drawing each anew.
    pub guided: bool,
}

/// A million runs, a minute, all cores, plain seeds: on the zoo, guiding has not needed fewer runs.
impl Default for Hunt {
    fn default() -> Hunt {
        Hunt {
            seed: 0,
            runs: 1_000_000,
            time: Duration::from_mins(1),
            threads: 0,
            guided: false,
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
    /// Its faults.
    pub plan: FaultPlan,
    /// Messages that the run delivers.
    pub delivered: u64,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunted {
    /// Runs up to the failure, or all.
    pub runs: u64,
    /// The first run that violates a property.
    pub failure: Option<Failure>,
    /// The properties of all runs.
    pub properties: Properties,
    /// States that were covered.
    pub covered: u32,
}

/// Runs of a generation: they are drawn from what was covered before it.
const GENERATION: usize = 32;
/// Most plans that are varied.
const MOST_PARENTS: usize = 512;

/// Runs a program with ever other seeds and faults, until a property is violated or a bound is
/// reached.
///
/// # Errors
/// If a run cannot be done.
pub fn hunt(subject: &dyn Subject, hunt: &Hunt) -> Result<Hunted, HuntError> {
    let deadline = Instant::now().checked_add(hunt.time);
    let mut search = Search {
        subject,
        random: Random::new(hunt.seed),
        parents: Vec::new(),
        covered: Vec::new(),
    };
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
        let candidates: Vec<(u64, FaultPlan)> = (0..left.min(GENERATION))
            .map(|_| search.candidate(hunt.guided))
            .collect();
        let results = run_all(subject, &candidates, threads);
        for ((seed, plan), result) in candidates.into_iter().zip(results) {
            let result = result?;
            hunted.runs += 1;
            hunted.properties.merge(&result.properties);
            if let Some(property) = result.properties.violated().first() {
                hunted.failure = Some(Failure {
                    property: (*property).to_owned(),
                    seed,
                    plan,
                    delivered: result.delivered,
                });
                hunted.covered = search.count();
                return Ok(hunted);
            }
            search.learn(seed, plan, &result);
        }
    }
    hunted.covered = search.count();
    Ok(hunted)
}

struct Search<'a> {
    subject: &'a dyn Subject,
    random: Random,
    /// Runs that reached something new.
    parents: Vec<(u64, FaultPlan)>,
    covered: Vec<u64>,
}

impl Search<'_> {
    fn candidate(&mut self, guided: bool) -> (u64, FaultPlan) {
        let (nodes, random) = (self.subject.nodes(), &mut self.random);
        let seed = random.bits() >> 12;
        let parents = self.parents.len() as u32;
        if !guided || parents == 0 || random.below(4) == 0 {
            let mut own = Random::new(seed);
            return (seed, FaultPlan::draw(&mut own, nodes, self.subject.time()));
        }
        // Half of the time one of the latest.
        let latest = parents.saturating_sub(8);
        let index = match random.below(2) {
            0 => latest + random.below(parents - latest),
            _ => random.below(parents),
        };
        let (parent_seed, parent) = &self.parents[index as usize];
        let plan = parent.mutate(random, nodes);
        let seed = if random.below(2) == 0 {
            *parent_seed
        } else {
            seed
        };
        (seed, plan)
    }

    /// Keeps a run as a parent if it has covered something new.
    fn learn(&mut self, seed: u64, plan: FaultPlan, result: &RunResult) {
        let mut words = result.coverage.clone();
        let bits = words.len() as u64 * 64;
        for property in &result.properties.properties {
            let mut hasher = DefaultHasher::new();
            // How often counts by its order of magnitude.
            (&property.name, property.held.checked_ilog2()).hash(&mut hasher);
            let bit = hasher.finish() % bits.max(1);
            if let Some(word) = words.get_mut((bit / 64) as usize) {
                *word |= 1 << (bit % 64);
            }
        }
        self.covered.resize(words.len(), 0);
        let mut new = false;
        for (covered, word) in self.covered.iter_mut().zip(words) {
            new |= word & !*covered != 0;
            *covered |= word;
        }
        if new {
            if self.parents.len() == MOST_PARENTS {
                self.parents.remove(0);
            }
            self.parents.push((seed, plan));
        }
    }

    fn count(&self) -> u32 {
        self.covered.iter().map(|word| word.count_ones()).sum()
    }
}

/// The results of all candidates, in their order.
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
