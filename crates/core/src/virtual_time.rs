//! The virtual executor: deterministic discrete-event execution in virtual time.
//!
//! **The result is the same, to the last bit, for any number of workers.** Every event has a time, a receiver, a sender
//! and a sequence number. A receiver handles its events in the order of (time, sender, sequence), and an actor can
//! observe no other order.
//!
//! # How
//! Actors are distributed over shards, one per worker thread, which share nothing. Time is divided into windows that
//! are no wider than the smallest latency of a message, so no message arrives in the window in which it is sent. All
//! shards run a window at the same time and synchronise only between two windows ([`exchange`]); windows without events
//! are skipped.
//!
//! An event is written once, by the sender's shard, into the buffer for its receiver's shard and its window
//! ([`batch`]), and read once, by the receiver's shard. Shards exchange whole buffers, and no message costs an
//! allocation, a lock or an atomic operation. Within a window the events are grouped by receiver, and each group is
//! sorted separately ([`order`]). Timers wait in a hierarchical wheel ([`wheel`]); the actors of one spawn are adjacent
//! in memory ([`actors`], [`region`]).
//!
//! Actors are spawned between two windows, in an order on which all shards agree. So addresses do not depend on the
//! number of shards, and neither do random numbers and latencies.
//!
//! The executor does no I/O, and reads the wall clock once before and once after a run.

#[cfg(feature = "serde")]
mod across;
mod actor_table;
mod actors;
mod addresses;
mod blocks;
mod buffer;
mod conclusion;
mod context;
mod delivery;
mod engine;
mod event;
mod exchange;
mod form;
mod header;
mod loans;
mod multicast;
mod order;
mod outbox;
mod pause;
mod population;
mod region;
mod shard;
mod simulation;
mod slab;
mod slot;
mod spare;
mod stash;
mod stored_event;
mod table;
#[cfg(feature = "serde")]
mod travel;
mod turn_cell;
mod waker;
mod wheel;
mod window_timers;
mod writer_cell;

use crate::contract::{Config, Executor, Message, Report, RunError, Scenario, Script};
use crate::sync::{Stopwatch, lock};
#[cfg(feature = "serde")]
pub use across::{
    Beginning, Carrier, ProcessLost, ProcessPart, SavedPart, Saving, ThreadCarrier, conclude_parts,
    run_inputs, run_part, thread_carriers,
};
use conclusion::conclude;
#[cfg(feature = "tracing")]
pub(crate) use context::running;
use engine::PausableShard;
use exchange::{Alone, Matrix};
use population::Blueprint;
use shard::Shard;
pub(crate) use shard::{LoggedEvent, LoggedKind};
pub use simulation::{InjectError, InspectError, Simulation};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
#[cfg(feature = "serde")]
pub use travel::{Kinds, Snapshot, SnapshotError, StoredPart};

/// Returns the maximum number of workers among which `actors` actors of one spawn can be divided. The number is limited
/// because each worker gets complete pages of 256 actors.
pub fn most_workers(actors: u32) -> NonZeroUsize {
    let pages = actors.div_ceil(addresses::PAGE);
    NonZeroUsize::new(pages as usize).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the largest number of workers for which each worker has at least `each` actors: at least one worker, and at
/// most one per core. With fewer actors per worker, barriers cost more than parallelism gains.
pub fn worthwhile_workers(actors: u32, each: NonZeroU32) -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let busy = NonZeroUsize::new((actors / each) as usize);
    busy.map_or(NonZeroUsize::MIN, |busy| busy.min(cores))
}

/// Runs a scenario in virtual time.
pub(crate) fn run<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let root = context::root_form(move |context| scenario.root(context));
    run_root(config, Arc::new(root))
}

/// Runs a scenario in virtual time whose root is a script instead of an async body.
pub(crate) fn run_script<M: Message>(
    config: &Config,
    script: impl Script<M>,
) -> Result<Report, RunError> {
    run_root(config, Arc::new(context::root_script(script)))
}

fn run_root<M: Message>(
    config: &Config,
    root: Arc<dyn Blueprint<M, Shard<M>>>,
) -> Result<Report, RunError> {
    config.check_for::<M>()?;
    check_memory::<M>(config)?;
    let config = &config.with_network();
    let started = Stopwatch::start();
    let outcomes = run_shards(config, root)?;
    conclude(M::KINDS, config, started.elapsed(), outcomes)
}

/// Runs all shards: on this thread until windows are dense enough, and then each shard except the first on its own
/// thread.
fn run_shards<M: Message>(
    config: &Config,
    root: Arc<dyn Blueprint<M, Shard<M>>>,
) -> Result<Vec<engine::Outcome>, RunError> {
    let shards = config.workers.get();
    let begun = |index| PausableShard::begun(config, index, Arc::clone(&root));
    let mut all: Vec<_> = (0..shards).map(begun).collect();
    if let [only] = &mut *all {
        let end = only.run(config, &mut Alone);
        return Ok(vec![only.finish(config, end)]);
    }
    if let Some(end) = engine::run_together(&mut all, config) {
        let all = all.iter_mut();
        return Ok(all.map(|shard| shard.finish(config, end)).collect());
    }
    let matrix = Matrix::new(shards);
    let all: Vec<_> = all.into_iter().map(|one| Mutex::new(Some(one))).collect();
    let work = |index: usize| {
        let mut shard = lock(&all[index]).take().expect("each is taken once");
        let end = shard.run(config, &mut matrix.port(index));
        shard.finish(config, end)
    };
    on_threads(config, shards, || matrix.abandon(), work)
}

/// Returns the memory in bytes that each pair of shards needs for the events between them.
const fn pair_bytes<M: Message>() -> usize {
    let batches = size_of::<outbox::ShardBatch<M, Shard<M>>>()
        + size_of::<writer_cell::Cell<outbox::ShardBatch<M, Shard<M>>>>();
    size_of::<outbox::Outbox<M>>() + 2 * batches
}

/// The size of a thread's stack, with an allowance for the system library.
const THREAD_BYTES: usize = (2 << 20) + (256 << 10);

/// Returns an error if there are more workers than memory allows. It is called before the workers are created, because
/// a failed allocation later would end the process.
fn check_memory<M: Message>(config: &Config) -> Result<(), RunError> {
    let shards = config.workers.get();
    let pairs = shards
        .saturating_mul(shards)
        .saturating_mul(pair_bytes::<M>());
    let bytes = pairs.saturating_add((shards - 1).saturating_mul(THREAD_BYTES));
    if shards == 1 || Vec::<u8>::new().try_reserve_exact(bytes).is_ok() {
        return Ok(());
    }
    let text = format!(
        "{shards} workers need {} MiB of memory, which the system refuses",
        bytes >> 20
    );
    let source = std::io::Error::new(std::io::ErrorKind::OutOfMemory, text);
    Err(refused(config, source, 0))
}

/// Returns the error of a run for which the system cannot create a thread, or does not have enough memory.
fn refused(config: &Config, source: std::io::Error, workers: usize) -> RunError {
    let report = Box::new(Report {
        executor: Executor::Virtual,
        seed: config.seed,
        workers,
        ..Report::default()
    });
    RunError::Thread { source, report }
}

/// Does the work of each shard on a separate thread, and the work of the first shard on this thread. If a thread cannot
/// be created, the started ones stop.
fn on_threads<T: Send>(
    config: &Config,
    shards: usize,
    abandon: impl Fn(),
    work: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, RunError> {
    let work = &work;
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for index in 1..shards {
            let work = move || work(index);
            let name = format!("shard {index}");
            match std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)
            {
                Ok(thread) => others.push(thread),
                Err(source) => {
                    // The started shards wait for this one, and stop.
                    abandon();
                    return Err(refused(config, source, index));
                }
            }
        }
        let first = work(0);
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(std::iter::once(first).chain(others).collect())
    })
}
