//! Decides whether a history is linearizable: Wing and Gong's search with Lowe's table of configurations, one object at
//! a time (P-compositionality: Horn and Kroening, FORTE 2015).
//!
//! Two reductions make the search fast. A read that can be linearized now is linearized at once, because it does not
//! change the state. Of several equal calls without a return, only the earliest is tried as the next operation to take
//! effect.

mod configurations;
mod partitions;
mod search;

use crate::{Model, Operation};
use partitions::{Partition, partitions};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use configurations::MOST_OPERATIONS;
pub(crate) use search::SearchResult;
use search::Searcher;

/// Bounds of a check.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time that the check takes.
    pub time: Duration,
    /// The maximum memory of the search in bytes, without the history.
    pub memory: usize,
    /// The number of threads that check independent objects in parallel; 0 means one for each core.
    pub threads: usize,
}

/// By default a check takes at most one minute and 2 GiB, and uses all cores.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_mins(1),
            memory: 2 << 30,
            threads: 0,
        }
    }
}

/// The bound that a check has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The time of [`Limits::time`] has passed.
    Time,
    /// The search reached [`Limits::memory`].
    Memory,
    /// An object has more operations than a search can number: 2^25.
    Operations,
}

/// A history of one object that is not linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation<K> {
    /// The object, or `None` if the history was checked as one.
    pub key: Option<K>,
    /// The operations of the object, as indices of the history, in the order of their calls.
    pub operations: Vec<usize>,
    /// The longest sequence that the search could linearize, as indices of the history.
    pub longest: Vec<usize>,
    /// The operation, as an index of the history, that could not follow that sequence, although it had returned.
    pub blocked: usize,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<K> {
    /// An order of the operations exists that the model allows.
    Linearizable,
    /// No such order exists.
    Violation(Violation<K>),
    /// A bound was reached first. The objects that were finished are linearizable.
    Unknown(Bound),
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of independent objects.
    pub objects: usize,
    /// The number of completely checked objects.
    pub finished: usize,
    /// The number of distinct configurations that the searches have visited.
    pub configurations: u64,
}

/// The verdict of a check, and the work that the check has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<K> {
    /// The result of the check.
    pub verdict: Verdict<K>,
    /// The work that the check has done.
    pub progress: Progress,
}

/// The number of steps of each object's search in the first round; each further round allows four times as many.
const FIRST_ROUND: u64 = 1 << 14;

/// Checks whether the history is linearizable.
///
/// The objects are searched in rounds, so that an object that is hard to check does not delay the violation of another.
/// If a round finds violations, the violation of the first key is reported, regardless of the number of threads.
///
/// In the worst case the time is exponential in the number of concurrent operations; otherwise it is nearly linear in
/// the number of operations.
pub fn check<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    limits: &Limits,
) -> Report<M::Key> {
    let partitions = partitions(model, history);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if limits.threads == 0 {
        cores()
    } else {
        limits.threads
    };
    let progress = Progress {
        objects: partitions.len(),
        ..Progress::default()
    };
    let checker = Checker {
        model,
        history,
        partitions: &partitions,
        deadline: Instant::now().checked_add(limits.time),
        memory: limits.memory,
        used: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        violated: AtomicUsize::new(usize::MAX),
        bound: Mutex::new(None),
    };
    checker.rounds(threads, progress)
}

/// The search of one partition, between rounds.
enum State<'a, M: Model> {
    NotBegun,
    Searching(Box<Searcher<'a, M>>, usize),
    Finished(SearchResult, u64),
}

/// The shared state of a check's threads.
struct Checker<'a, M: Model> {
    model: &'a M,
    history: &'a [Operation<M::Input, M::Output>],
    partitions: &'a [Partition<M::Key>],
    deadline: Option<Instant>,
    memory: usize,
    /// Bytes that all searches use.
    used: AtomicUsize,
    /// The next partition that no thread has taken in this round.
    next: AtomicUsize,
    /// The first partition that is known to be violated; later ones need no check.
    violated: AtomicUsize,
    bound: Mutex<Option<Bound>>,
}

impl<'a, M: Model> Checker<'a, M> {
    fn rounds(&self, threads: usize, mut progress: Progress) -> Report<M::Key> {
        let states: Vec<Mutex<State<'a, M>>> = self
            .partitions
            .iter()
            .map(|_| Mutex::new(State::NotBegun))
            .collect();
        let mut active: Vec<usize> = (0..states.len()).collect();
        let mut steps = FIRST_ROUND;
        let verdict = loop {
            self.next.store(0, Ordering::Relaxed);
            let work = || self.work(&states, &active, steps);
            match threads.min(active.len()) {
                0 | 1 => work(),
                threads => std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(work);
                    }
                }),
            }
            if let Some(violation) = self.violation(&states) {
                break Verdict::Violation(violation);
            }
            if let Some(bound) = *lock(&self.bound) {
                break Verdict::Unknown(bound);
            }
            active.retain(|index| !matches!(*lock(&states[*index]), State::Finished(..)));
            if active.is_empty() {
                break Verdict::Linearizable;
            }
            steps = steps.saturating_mul(4);
        };
        for state in &states {
            match &*lock(state) {
                State::NotBegun => {}
                State::Searching(searcher, _) => {
                    progress.configurations += searcher.configurations();
                }
                State::Finished(found, configurations) => {
                    progress.finished += usize::from(!matches!(found, SearchResult::Stopped(_)));
                    progress.configurations += configurations;
                }
            }
        }
        Report { verdict, progress }
    }

    fn work(&self, states: &[Mutex<State<'a, M>>], active: &[usize], steps: u64) {
        while let Some(&index) = active.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if index > self.violated.load(Ordering::Relaxed) || lock(&self.bound).is_some() {
                return;
            }
            let mut state = lock(&states[index]);
            let (mut searcher, mut held) = match std::mem::replace(&mut *state, State::NotBegun) {
                State::Searching(searcher, held) => (searcher, held),
                _ => {
                    let operations = &self.partitions[index].operations;
                    if operations.len() > MOST_OPERATIONS {
                        *lock(&self.bound) = Some(Bound::Operations);
                        return;
                    }
                    (
                        Box::new(Searcher::new(self.model, self.history, operations)),
                        0,
                    )
                }
            };
            let mut go_on = |bytes: usize| {
                self.used.fetch_add(bytes, Ordering::Relaxed);
                self.used.fetch_sub(held, Ordering::Relaxed);
                held = bytes;
                self.go_on(index)
            };
            *state = match searcher.run(steps, &mut go_on) {
                None => State::Searching(searcher, held),
                Some(found) => {
                    match &found {
                        SearchResult::Violation { .. } => {
                            self.violated.fetch_min(index, Ordering::Relaxed);
                        }
                        SearchResult::Stopped(Some(bound)) => *lock(&self.bound) = Some(*bound),
                        _ => {}
                    }
                    self.used.fetch_sub(held, Ordering::Relaxed);
                    State::Finished(found, searcher.configurations())
                }
            };
        }
    }

    fn go_on(&self, index: usize) -> ControlFlow<Option<Bound>> {
        if index > self.violated.load(Ordering::Relaxed) {
            return ControlFlow::Break(None);
        }
        let used = self.used.load(Ordering::Relaxed);
        match within(self.deadline, used, self.memory) {
            Some(bound) => ControlFlow::Break(Some(bound)),
            None => ControlFlow::Continue(()),
        }
    }

    /// Returns the violation of the first partition that has one.
    fn violation(&self, states: &[Mutex<State<'a, M>>]) -> Option<Violation<M::Key>> {
        let index = self.violated.load(Ordering::Relaxed);
        let partition = self.partitions.get(index)?;
        let state = lock(&states[index]);
        let State::Finished(SearchResult::Violation { longest, blocked }, _) = &*state else {
            return None;
        };
        Some(Violation {
            key: partition.key.clone(),
            operations: partition.operations.clone(),
            longest: longest.clone(),
            blocked: *blocked,
        })
    }
}

/// Locks a mutex. A panic of a model ends the whole check, so no value is used after its lock was poisoned.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the bound that has been reached, if any.
fn within(deadline: Option<Instant>, used: usize, memory: usize) -> Option<Bound> {
    if used > memory {
        return Some(Bound::Memory);
    }
    deadline
        .is_some_and(|deadline| Instant::now() >= deadline)
        .then_some(Bound::Time)
}

/// Searches the operations with these indices as one object.
pub(crate) fn search_one<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    operations: &[usize],
    limits: &Limits,
) -> SearchResult {
    let deadline = Instant::now().checked_add(limits.time);
    let mut go_on = |bytes: usize| match within(deadline, bytes, limits.memory) {
        Some(bound) => ControlFlow::Break(Some(bound)),
        None => ControlFlow::Continue(()),
    };
    let mut searcher = Searcher::new(model, history, operations);
    loop {
        if let Some(found) = searcher.run(u64::MAX, &mut go_on) {
            return found;
        }
    }
}
