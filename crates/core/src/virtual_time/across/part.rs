//! The part of a run in one process, and the combination of all parts.

use super::saving::{Constant, Saves, Saving};
use super::{Across, Batches, Cargo, Carrier, Failure};
use crate::contract::{Addr, Config, Kind, Message, Report, RunError, Script, Time};
use crate::sync::lock;
use crate::virtual_time::buffer::Pool;
use crate::virtual_time::conclusion::conclude;
use crate::virtual_time::context::scripts;
use crate::virtual_time::engine::{End, Outcome, PausableShard};
use crate::virtual_time::exchange::{Matrix, Reduction};
use crate::virtual_time::on_threads;
use crate::virtual_time::population::Blueprint;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::simulation::restored;
use crate::virtual_time::travel::{CodecError, Kinds, Snapshot, SnapshotError, put, settings};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The part of a distributed run that runs in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessPart {
    /// The number of the process, from 0.
    pub process: usize,
    /// The number of processes.
    pub processes: NonZeroUsize,
    /// The number of workers in each process.
    pub workers: NonZeroUsize,
    /// The time at which the run stops, if that is before its end; equal in all processes.
    pub until: Option<Time>,
}

impl ProcessPart {
    /// Returns the configuration with the workers of all processes.
    fn configure(&self, config: &Config) -> Config {
        Config {
            workers: self.workers.saturating_mul(self.processes),
            ..config.with_network()
        }
    }
}

/// Returns the messages to inject, with their times and receivers.
type Inject<'a, M> = dyn Fn(Addr) -> Vec<(Time, Addr, M)> + 'a;

/// The state from which a part of a run starts.
#[allow(
    missing_debug_implementations,
    reason = "the contents of a kind need not implement it"
)]
pub enum Beginning<'a, M, S: Kind> {
    /// A new run, whose root is a script of kind `S`.
    Root(S::Parameters, S::Local),
    /// A saved run, from any number of workers and processes.
    Saved(&'a Snapshot),
    /// A branch of a saved run, into which messages are [injected](crate::Simulation::inject). The function returns the
    /// messages; its argument is the first address that the root has spawned. It is called in each process that has an
    /// actor of that spawn, and all calls must return the same messages.
    Branch(&'a Snapshot, &'a Inject<'a, M>),
}

/// Runs one process's part of a run, to the end of the run. Returns the serialized outcome, which the first process
/// passes to [`conclude_parts`]. The number of workers comes from `part`, not from `config`.
///
/// The first worker runs on the calling thread and uses the carrier. Either all processes pass a `saving`, or none
/// does.
///
/// # Errors
/// [`SnapshotError::Run`] if the configuration is inconsistent, the system cannot create a thread, a message cannot be
/// sent to another process, or another process has ended; another [`SnapshotError`] if the saved run cannot be
/// restored. The caller must then end the other processes, which wait for this one.
pub fn run_part<M: Message, S: Kind + Script<M>, C: Carrier>(
    config: &Config,
    part: ProcessPart,
    kinds: &Kinds<M>,
    beginning: Beginning<'_, M, S>,
    carrier: C,
    saving: Option<&dyn Saving>,
) -> Result<Vec<u8>, SnapshotError> {
    let config = &part.configure(config);
    config.check_for::<M>().map_err(RunError::from)?;
    let own = part.workers.get();
    let first = part.process * own;
    let mut begun = begin(config, first..first + own, kinds, beginning)?;
    begun
        .shards
        .iter_mut()
        .for_each(PausableShard::share_what_is_portable);
    let matrix = Matrix::<Cargo<M>>::new(own);
    let batches = Batches::new(part.processes.get());
    let workers = begun
        .shards
        .into_iter()
        .zip(std::iter::once(Some(carrier)).chain(std::iter::repeat_with(|| None)));
    let workers: Vec<_> = workers.map(|worker| Mutex::new(Some(worker))).collect();
    let work = |index: usize| {
        let (mut shard, carrier) = lock(&workers[index]).take().expect("each is taken once");
        // The shard that has the root reports its own progress.
        let progress = (index == 0 && first > 0)
            .then(|| (config.progress.clone(), config.lookahead_nanos().ilog2()));
        let mut across = Across {
            local: matrix.port(index),
            batches: &batches,
            carrier,
            own: first..first + own,
            me: first + index,
            kinds: kinds.clone(),
            sections: Vec::new(),
            pool: Pool::new(),
            failure: None,
            agreed: Reduction::NONE,
            progress,
            saves: Saves::new(saving, begun.now),
        };
        let end = across.run(config, begun.head, part.until, &mut shard);
        let outcome = match end {
            End::Paused => shard.so_far(config, end),
            end => shard.finish(config, end),
        };
        (outcome, across.failure)
    };
    let outcomes = on_threads(config, own, || matrix.abandon(), work)?;
    let (outcomes, failures): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
    if let Some(error) = worst(failures) {
        return Err(error.into());
    }
    let mut report = Vec::new();
    for outcome in outcomes {
        outcome.write(&mut report).map_err(parts)?;
    }
    Ok(report)
}

/// Returns the failure that caused all others, because a shard that fails makes the other shards of its process fail.
fn worst(failures: Vec<Option<Failure>>) -> Option<RunError> {
    let mut failures: Vec<_> = failures.into_iter().flatten().collect();
    let here = failures
        .iter()
        .position(|failure| matches!(failure, Failure::Here(_)));
    let what = match failures.swap_remove(here.or((!failures.is_empty()).then_some(0))?) {
        Failure::Here(what) => what,
        Failure::Lost => "another process has ended before the run was over".to_owned(),
    };
    Some(RunError::Parts { what })
}

fn parts(error: CodecError) -> RunError {
    let what = error.to_string();
    RunError::Parts { what }
}

/// The shards of a process, before they run.
struct ReadyShards<M: Message> {
    shards: Vec<PausableShard<M>>,
    now: Time,
    head: Constant,
}

fn begin<M: Message, S: Kind + Script<M>>(
    config: &Config,
    own: Range<usize>,
    kinds: &Kinds<M>,
    beginning: Beginning<'_, M, S>,
) -> Result<ReadyShards<M>, SnapshotError> {
    match beginning {
        Beginning::Root(parameters, local) => {
            let root: Root<M> = Arc::new(scripts::<M, S>(Some(parameters), local));
            let shard = |index| PausableShard::new(config, index, Arc::clone(&root));
            Ok(ReadyShards {
                shards: own.map(shard).collect(),
                now: Time::ZERO,
                head: Constant {
                    stream_seed: config.seed,
                    injected: 0,
                },
            })
        }
        Beginning::Saved(snapshot) => restore_shards(config, own, kinds, snapshot, None),
        Beginning::Branch(snapshot, inject) => {
            restore_shards(config, own, kinds, snapshot, Some(inject))
        }
    }
}

fn restore_shards<M: Message>(
    config: &Config,
    own: Range<usize>,
    kinds: &Kinds<M>,
    snapshot: &Snapshot,
    inject: Option<&Inject<'_, M>>,
) -> Result<ReadyShards<M>, SnapshotError> {
    let head = snapshot.read_head()?;
    let mut shards = restored(config, kinds, snapshot, own.clone())?;
    let mut injected = head.injected;
    let first = shards.iter_mut().find_map(PausableShard::first_spawned);
    for (time, to, body) in first
        .zip(inject)
        .map_or(Vec::new(), |(first, inject)| inject(first))
    {
        injected += 1;
        let owner = shards[0].owner(to.as_u32());
        if let Some(shard) = owner
            .checked_sub(own.start)
            .and_then(|index| shards.get_mut(index))
        {
            shard.inject(time.max(Time::from_nanos(head.now + 1)), to, injected, body);
        }
    }
    Ok(ReadyShards {
        shards,
        now: Time::from_nanos(head.now),
        head: Constant {
            stream_seed: head.stream_seed,
            injected,
        },
    })
}

/// Returns everything that determines the result of a run, as bytes that must be equal in all of its processes. The
/// [`Kind::Local`] of a kind belongs to one process and is not included.
pub fn run_inputs<M: Message, S: Kind + Script<M>>(
    config: &Config,
    parameters: &S::Parameters,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Parameters that cannot be serialized cannot be sent either, and sending them reports it.
    let _ = put(&mut bytes, &(S::NAME, settings::<M>(config), config.strict));
    let _ = put(&mut bytes, parameters);
    bytes
}

type Root<M> = Arc<dyn Blueprint<M, Shard<M>>>;

/// Combines the reports of all processes, in the order of their numbers, into the report of the run. `wall` is the
/// wall-clock time of the run.
///
/// # Errors
/// See [`RunError`]; [`RunError::Parts`] if the reports are incomplete or cannot be read.
pub fn conclude_parts<M: Message>(
    config: &Config,
    part: ProcessPart,
    reports: &[Vec<u8>],
    wall: Duration,
) -> Result<Report, RunError> {
    let mut outcomes = Vec::new();
    for report in reports {
        let mut from = report.as_slice();
        while !from.is_empty() {
            outcomes.push(Outcome::read(&mut from).map_err(parts)?);
        }
    }
    let all = part.processes.get() * part.workers.get();
    if outcomes.len() != all {
        return Err(RunError::Parts {
            what: format!("{} of {all} workers have reported", outcomes.len()),
        });
    }
    conclude(M::KINDS, &part.configure(config), wall, outcomes)
}
