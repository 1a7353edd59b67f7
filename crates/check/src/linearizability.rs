//! Whether a history is linearizable: Wing and Gong's search with Lowe's table of configurations,
//! one object at a time (P-compositionality: Horn and Kroening, FORTE 2015).
//!
//! Two reductions make it fast. A read that can be linearized now never has to wait, because it
//! changes nothing wherever it stands. Of several operations without a return that call the same, only the
//! earliest can be the next to take effect.

mod configurations;
mod partitions;
mod search;

use crate::{Model, Operation};
use partitions::{Partition, partitions};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) use search::Found;

/// Bounds of a check.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time that the check takes.
    pub time: Duration,
    /// Most memory that the search takes beside the history, in bytes.
    pub memory: usize,
    /// Threads that check independent objects at once; 0 means one for each core.
    pub threads: usize,
}

/// One minute, 2 GiB, all cores.
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
    /// [`Limits::time`].
    Time,
    /// [`Limits::memory`].
    Memory,
    /// More operations of one object than a search can number: 2^25.
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
    /// The operation, as an index of the history, that could not follow that sequence although it
    /// had returned.
    pub blocked: usize,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<K> {
    /// There is an order of the operations that the model allows.
    Linearizable,
    /// There is none.
    Violation(Violation<K>),
    /// A bound was reached first. The objects that were finished are linearizable.
    Unknown(Bound),
}

/// How far a check got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Independent objects.
    pub objects: usize,
    /// Objects that were checked to the end.
    pub finished: usize,
    /// Different configurations that the searches were in.
    pub configurations: u64,
}

/// A verdict, and how much work it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<K> {
    /// The verdict.
    pub verdict: Verdict<K>,
    /// How far the check got.
    pub progress: Progress,
}

/// Checks whether the history is linearizable.
///
/// Objects are checked in the order of their keys, several at once. The violation that is reported
/// is that of the first key that has one, whatever the number of threads.
///
/// The time is exponential in the number of concurrent operations at worst, and near linear in the
/// number of operations otherwise.
pub fn check<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    limits: &Limits,
) -> Report<M::Key> {
    let partitions = partitions(model, history);
    let pool = Pool {
        deadline: Instant::now().checked_add(limits.time),
        memory: limits.memory,
        used: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        violated: AtomicUsize::new(usize::MAX),
        result: Mutex::new((Progress::default(), None, None)),
    };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if limits.threads == 0 {
        cores()
    } else {
        limits.threads
    };
    let threads = threads.min(partitions.len()).max(1);
    if threads == 1 {
        pool.work(model, history, &partitions);
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| pool.work(model, history, &partitions));
            }
        });
    }
    let result = pool.result.into_inner();
    let (mut progress, violation, bound) = result.unwrap_or_else(|poisoned| poisoned.into_inner());
    progress.objects = partitions.len();
    let verdict = match (violation, bound) {
        (Some((_, violation)), _) => Verdict::Violation(violation),
        (None, Some(bound)) => Verdict::Unknown(bound),
        (None, None) => Verdict::Linearizable,
    };
    Report { verdict, progress }
}

type First<K> = Option<(usize, Violation<K>)>;

/// What the threads of a check share.
struct Pool<K> {
    deadline: Option<Instant>,
    memory: usize,
    used: AtomicUsize,
    /// The next partition that no thread has taken.
    next: AtomicUsize,
    /// The first partition that is known to be violated; later ones need no check.
    violated: AtomicUsize,
    result: Mutex<(Progress, First<K>, Option<Bound>)>,
}

impl<K: Clone> Pool<K> {
    fn work<M: Model<Key = K>>(
        &self,
        model: &M,
        history: &[Operation<M::Input, M::Output>],
        partitions: &[Partition<K>],
    ) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(partition) = partitions.get(index) else {
                return;
            };
            if index > self.violated.load(Ordering::Relaxed) {
                return;
            }
            let mut held = 0;
            let mut go_on = |bytes: usize| {
                self.used.fetch_add(bytes, Ordering::Relaxed);
                self.used.fetch_sub(held, Ordering::Relaxed);
                held = bytes;
                self.go_on(index)
            };
            let found = search::search(model, history, &partition.operations, &mut go_on);
            self.used.fetch_sub(held, Ordering::Relaxed);
            self.record(index, partition, found);
        }
    }

    fn go_on(&self, index: usize) -> ControlFlow<Option<Bound>> {
        if index > self.violated.load(Ordering::Relaxed) {
            return ControlFlow::Break(None);
        }
        if self.used.load(Ordering::Relaxed) > self.memory {
            return ControlFlow::Break(Some(Bound::Memory));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => ControlFlow::Break(Some(Bound::Time)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn record(&self, index: usize, partition: &Partition<K>, found: search::Search) {
        let mut result = match self.result.lock() {
            Ok(result) => result,
            Err(poisoned) => poisoned.into_inner(),
        };
        let (progress, first, bound) = &mut *result;
        progress.configurations += found.configurations;
        match found.found {
            Found::Linearizable => progress.finished += 1,
            Found::Stopped(None) => {}
            Found::Stopped(Some(reached)) => *bound = bound.or(Some(reached)),
            Found::Violation { longest, blocked } => {
                progress.finished += 1;
                self.violated.fetch_min(index, Ordering::Relaxed);
                if first.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                    let violation = Violation {
                        key: partition.key.clone(),
                        operations: partition.operations.clone(),
                        longest,
                        blocked,
                    };
                    *first = Some((index, violation));
                }
            }
        }
    }
}

/// Searches the operations with these indices as one object.
pub(crate) fn search_one<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
    operations: &[usize],
    limits: &Limits,
) -> Found {
    let deadline = Instant::now().checked_add(limits.time);
    let mut go_on = |bytes: usize| {
        if bytes > limits.memory {
            return ControlFlow::Break(Some(Bound::Memory));
        }
        match deadline {
            Some(deadline) if Instant::now() >= deadline => ControlFlow::Break(Some(Bound::Time)),
            _ => ControlFlow::Continue(()),
        }
    };
    search::search(model, history, operations, &mut go_on).found
}
