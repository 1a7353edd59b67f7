//! The search for a violated property.

use crate::node::KINDS;
use crate::{Change, FaultPlan, HuntError, Properties, RunResult, Subject};
use corsair::Random;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
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
    /// True if runs branch from earlier runs that reached rare states; false if the faults of each run are drawn
    /// independently.
    pub guided: bool,
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
            guided: true,
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
    /// The number of different changes of the states of nodes and of pairs of nodes.
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
    let (mut past, mut new) = (Past::new(), Vec::new());
    let whole = FaultPlan::calm(subject.time());
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
    'search: while hunted.runs < hunt.runs && deadline.is_none_or(|end| Instant::now() < end) {
        let left = usize::try_from(hunt.runs - hunted.runs).unwrap_or(usize::MAX);
        let draw = |_| past.draw(subject, &whole, hunt.guided, &mut random);
        let count = if threads == 1 { 1 } else { GENERATION };
        let candidates: Vec<(u64, FaultPlan)> = (0..left.min(count)).map(draw).collect();
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
                    events: result.events,
                });
                break 'search;
            }
            new.push((seed, plan, result.changes));
            // The choice of runs does not depend on the number of threads.
            if hunted.runs.is_multiple_of(GENERATION as u64) {
                past.add_all(&mut new);
                hunted.covered = past.known.len() as u32;
            }
        }
        progress(&hunted);
    }
    past.add_all(&mut new);
    hunted.covered = past.known.len() as u32;
    Ok(hunted)
}

/// The maximum number of runs that are kept for a kind of change.
const MOST_PAST: usize = 4;
/// A run branches at the rarest of this number of kinds of changes.
const LOTS: u32 = 16;

/// The runs from which others branch.
pub(crate) struct Past {
    /// For each kind of change, the runs in which it happened.
    kinds: Vec<Kind>,
    /// The kinds that have happened.
    known: Vec<u16>,
}

/// A kind of change.
#[derive(Clone, Default)]
struct Kind {
    /// The number of runs in which it happened.
    count: u64,
    /// Some of these runs, with a time at which it happened.
    runs: Vec<(Arc<PastRun>, u32)>,
}

struct PastRun {
    seed: u64,
    plan: FaultPlan,
}

impl Past {
    pub(crate) fn new() -> Past {
        Past {
            kinds: vec![Kind::default(); KINDS],
            known: Vec::new(),
        }
    }

    fn add_all(&mut self, runs: &mut Vec<(u64, FaultPlan, Vec<Change>)>) {
        runs.drain(..)
            .for_each(|(seed, plan, changes)| self.add(seed, plan, &changes));
    }

    /// Adds a run with its changes. Only those matter after which there may be faults.
    pub(crate) fn add(&mut self, seed: u64, plan: FaultPlan, changes: &[Change]) {
        let until = plan.last_fault();
        let mut changes: Vec<Change> = (changes.iter().copied())
            .filter(|change| change.at < until)
            .collect();
        changes.sort_unstable_by_key(|change| (change.kind, change.at));
        let run = Arc::new(PastRun { seed, plan });
        for same in changes.chunk_by(|one, other| one.kind == other.kind) {
            let kind = &mut self.kinds[usize::from(same[0].kind)];
            if kind.count == 0 {
                self.known.push(same[0].kind);
            }
            // Of a run in which the kind happened more than once, any time.
            let entry = (Arc::clone(&run), same[kind.count as usize % same.len()].at);
            match kind.runs.get_mut(kind.count as usize % MOST_PAST) {
                Some(oldest) => *oldest = entry,
                None => kind.runs.push(entry),
            }
            kind.count += 1;
        }
    }

    /// Draws a new run, or one that equals an earlier run until nodes reach rare states. Some bugs need a fault in the
    /// millisecond in which a leader is elected, and others a sequence of such faults. Because the new run reaches the same
    /// states, they become less rare each time. `calm` is the plan without faults.
    pub(crate) fn draw(
        &self,
        subject: &dyn Subject,
        calm: &FaultPlan,
        guided: bool,
        random: &mut Random,
    ) -> (u64, FaultPlan) {
        let seed = random.bits() >> 12;
        let mut random = Random::new(seed);
        if self.known.is_empty() || !guided || random.below(2) == 0 {
            // Faults stop after two thirds of the length that they are drawn for.
            let length = calm.until.map_or(calm.time, |until| until + until / 2);
            let mut plan = subject.draw(&mut random, length);
            if let Some(until) = calm.until {
                plan.time = calm.time;
                plan.shorten(until);
            }
            return (seed, plan);
        }
        let mut lot = || {
            let known = self.known[random.below(self.known.len() as u32) as usize];
            &self.kinds[usize::from(known)]
        };
        let first = lot();
        let rarest = (1..LOTS).map(|_| lot()).fold(first, |rarest, other| {
            match other.count < rarest.count {
                true => other,
                false => rarest,
            }
        });
        let (run, at) = &rarest.runs[random.below(rarest.runs.len() as u32) as usize];
        let (nodes, loses) = (subject.nodes(), subject.loses_disks());
        let plan = run.plan.branch(&mut random, *at, nodes, loses);
        (run.seed, plan)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;

    struct Drawn;

    impl Subject for Drawn {
        fn name(&self) -> &'static str {
            "drawn"
        }

        fn nodes(&self) -> u32 {
            3
        }

        fn time(&self) -> u32 {
            1_000
        }

        fn loses_disks(&self) -> bool {
            false
        }

        fn run(&self, _: u64, _: &FaultPlan, _: usize) -> Result<RunResult, HuntError> {
            unreachable!("runs are only drawn")
        }

        fn trace(&self, _: u64, _: &FaultPlan) -> Result<Trace, HuntError> {
            unreachable!("runs are only drawn")
        }
    }

    #[test]
    fn runs_branch_at_rare_changes_unless_the_search_is_not_guided() {
        let mut past = Past::new();
        for seed in 0..100 {
            let plan = FaultPlan::calm(1_000);
            let change = |at, kind| Change { at, kind };
            let mut changes = vec![change(10, 1), change(20, 2)];
            if seed == 50 {
                // The second change is too late: no fault can follow it.
                changes.extend([change(300, 3), change(900, 4)]);
            }
            past.add(seed, plan, &changes);
        }
        assert_eq!(past.known, [1, 2, 3]);
        let mut random = Random::new(1);
        let mut draws = |guided| -> Vec<(u64, FaultPlan)> {
            (0..1_000)
                .map(|_| past.draw(&Drawn, &FaultPlan::calm(1_000), guided, &mut random))
                .collect()
        };
        let branches = |draws: &[(u64, FaultPlan)]| -> Vec<FaultPlan> {
            let rare = draws.iter().filter(|(seed, _)| *seed == 50);
            rare.map(|(_, plan)| plan.clone()).collect()
        };
        let guided = branches(&draws(true));
        assert!((400..600).contains(&guided.len()), "{}", guided.len());
        for fault in guided.iter().flat_map(|plan| &plan.faults) {
            let start = fault.span().map(|span| span.start);
            assert!(start.is_none_or(|start| start >= 300), "{fault}");
        }
        assert!(branches(&draws(false)).is_empty());
    }
}
