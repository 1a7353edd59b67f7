//! The part of a run that one process has, and the parts put together.

use super::{Across, Cargo, Carrier};
use crate::contract::{Config, Kind, Message, Report, RunError, Script};
use crate::sync::lock;
use crate::virtual_time::buffer::Pool;
use crate::virtual_time::conclusion::conclude;
use crate::virtual_time::context::scripts;
use crate::virtual_time::engine::{self, Outcome};
use crate::virtual_time::exchange::Matrix;
use crate::virtual_time::on_threads;
use crate::virtual_time::population::Blueprint;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::travel::{CodecError, Kinds, put, settings};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Which part of a run a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the process, from 0.
    pub process: usize,
    /// How many processes there are.
    pub processes: NonZeroUsize,
    /// How many workers each of them has.
    pub workers: NonZeroUsize,
}

impl Part {
    /// The configuration with the workers of all processes.
    fn configure(&self, config: &Config) -> Config {
        Config {
            workers: self.workers.saturating_mul(self.processes),
            ..config.with_network()
        }
    }
}

/// Runs the part of a run that one process has, from its beginning to its end, and returns what
/// [`conclude_parts`] is to be told of it, in the first process. The root is a script of kind `S`; `config.workers`
/// does not matter.
///
/// Each worker makes its carrier on its own thread, all at once.
///
/// # Errors
/// [`RunError::Config`] if the configuration contradicts itself, [`RunError::Thread`] if the system refuses a
/// thread.
///
/// # Panics
/// If there is not a carrier for each worker.
pub fn run_part<M: Message, S: Kind + Script<M>, C: Carrier>(
    config: &Config,
    part: Part,
    kinds: &Kinds<M>,
    (parameters, local): (S::Parameters, S::Local),
    carriers: Vec<impl FnOnce() -> C + Send>,
) -> Result<Vec<u8>, RunError> {
    let config = &part.configure(config);
    config.check()?;
    let own = part.workers.get();
    assert_eq!(carriers.len(), own, "each worker has a carrier");
    let root: Root<M> = Arc::new(scripts::<M, S>(Some(parameters), local));
    let first = part.process * own;
    let matrix = Matrix::<Cargo<M>>::new(own);
    let carriers: Vec<_> = carriers
        .into_iter()
        .map(|make| Mutex::new(Some(make)))
        .collect();
    let work = |index: usize| {
        let make = lock(&carriers[index]).take();
        let across = Across {
            local: matrix.port(index),
            own: first..first + own,
            me: first + index,
            carrier: make.expect("each worker takes its own carrier")(),
            kinds: kinds.clone(),
            piece: Vec::new(),
            pool: Pool::new(),
            is_lost: false,
        };
        engine::run_shard(config, first + index, across, Arc::clone(&root))
    };
    let outcomes = on_threads(config, own, || matrix.abandon(), work)?;
    let mut told = Vec::new();
    let told_of = |outcome: Outcome| outcome.tell(&mut told);
    outcomes
        .into_iter()
        .try_for_each(told_of)
        .map_err(|error| RunError::Parts {
            what: error.to_string(),
        })?;
    Ok(told)
}

/// All that decides the result of a run, as bytes that all processes of it must have alike. What they have
/// of their own, the [`Kind::Local`] of each kind, is no part of it.
pub fn course<M: Message, S: Kind + Script<M>>(
    config: &Config,
    parameters: &S::Parameters,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be written here cannot be sent either, which is told then.
    let _ = put(&mut bytes, &(S::NAME, settings::<M>(config), config.strict));
    let _ = put(&mut bytes, parameters);
    bytes
}

type Root<M> = Arc<dyn Blueprint<M, Shard<M>>>;

/// The end of a run of which all processes have told their parts, in the order of their numbers; `wall` is how
/// long it took.
///
/// # Errors
/// See [`RunError`]; [`RunError::Parts`] if what was told makes no sense.
pub fn conclude_parts<M: Message>(
    config: &Config,
    part: Part,
    told: &[Vec<u8>],
    wall: Duration,
) -> Result<Report, RunError> {
    let mut outcomes = Vec::new();
    let mut read = |mut from: &[u8]| -> Result<(), CodecError> {
        while !from.is_empty() {
            outcomes.push(Outcome::read(&mut from)?);
        }
        Ok(())
    };
    let read = told.iter().try_for_each(|told| read(told));
    let all = part.processes.get() * part.workers.get();
    match read {
        Ok(()) if outcomes.len() == all => {
            conclude(M::KINDS, &part.configure(config), wall, outcomes)
        }
        Ok(()) => Err(RunError::Parts {
            what: format!("{} of {all} workers have told how it ended", outcomes.len()),
        }),
        Err(error) => Err(RunError::Parts {
            what: error.to_string(),
        }),
    }
}
