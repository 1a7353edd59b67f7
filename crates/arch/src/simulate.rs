//! One call from a topology to what a run of it has done.

use crate::message::Msg;
use crate::model::{LEAST_TRAVEL, Model, Terms};
use crate::node::Common;
use crate::scenario::Simulation;
use crate::topology::Topology;
use crate::totals::Totals;
use corsair::{Config, Executor, Latency, Message, Report, RunError};
use corsair_observe::Recorder;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The names of the kinds of messages, as [`corsair_observe::Settings::kinds`] wants them.
pub const KINDS: &[&str] = Msg::KINDS;

/// How long an architecture runs, how much load there is, and who listens.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long the load lasts.
    pub duration: Duration,
    /// Every entry point makes a request once in so long; at least a microsecond.
    pub chat: Duration,
    /// How often instances ask their registry.
    pub poll: Duration,
    /// After how long a client gives up on a request that was lost.
    pub patience: Duration,
    /// Show services instead of their instances in graphs.
    pub collapse: bool,
    /// Who is told what happens.
    pub recorder: Recorder,
}

impl Default for Plan {
    /// Ten seconds with a request every ten milliseconds, and registries asked every second.
    fn default() -> Self {
        Plan {
            duration: Duration::from_secs(10),
            chat: Duration::from_millis(10),
            poll: Duration::from_secs(1),
            patience: Duration::from_secs(1),
            collapse: false,
            recorder: Recorder::off(),
        }
    }
}

/// Why an architecture did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// Nobody makes requests.
    #[error(
        "architecture {0} has no denominator: nothing drives load to it; add a service of that package"
    )]
    NoLoad(String),
    /// More load than there is time for.
    #[error("a request every {0:?} is too often; give at least 1us")]
    Chat(Duration),
    /// Registries asked without a pause.
    #[error("registries asked every {0:?} answer nothing else; give at least 1ms")]
    Poll(Duration),
    /// The executor failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// How many connections a run of this topology will have: pairs of an instance and one that it may
/// call. Each needs memory from the moment in which all instances find each other.
pub fn connections(topology: &Topology) -> u64 {
    let terms = Terms {
        seed: 0,
        base: LEAST_TRAVEL,
        poll: 0,
        patience: 0,
        duration: 0,
        recorder: Recorder::off(),
    };
    match &topology.edges {
        Some(edges) => edges.len() as u64,
        None => Model::new(topology.clone(), terms).connections(),
    }
}

/// Actors are dealt to workers in pages of this many addresses.
const PAGE: u32 = 256;

/// The configuration with what an architecture needs: in virtual time every message travels the
/// shortest time of all, and what its way takes beyond that comes on top. Workers that would have
/// no actors are left out: they would only be waited for.
pub fn config(topology: &Topology, base: Config) -> Config {
    let least = topology.least_latency(LEAST_TRAVEL);
    let pages = (topology.len() + topology.registries() + 1).div_ceil(PAGE);
    let most = NonZeroUsize::new(pages as usize).unwrap_or(NonZeroUsize::MIN);
    Config {
        workers: base.workers.min(most),
        latency: Latency::constant(Duration::from_nanos(least)),
        ..base
    }
}

/// Runs an architecture.
///
/// # Errors
/// See [`SimulateError`].
pub fn simulate(
    executor: Executor,
    base: &Config,
    topology: Topology,
    plan: &Plan,
) -> Result<(Report, Totals), SimulateError> {
    let drives = |service: &crate::Service| service.package == crate::Package::Denominator;
    if !topology.services.iter().any(drives) {
        return Err(SimulateError::NoLoad(topology.arch));
    }
    if plan.chat < Duration::from_micros(1) {
        return Err(SimulateError::Chat(plan.chat));
    }
    if plan.poll < Duration::from_millis(1) {
        return Err(SimulateError::Poll(plan.poll));
    }
    let config = match executor {
        Executor::Virtual => config(&topology, base.clone()),
        _ => base.clone(),
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let terms = Terms {
        seed: config.seed,
        base: match executor {
            Executor::Virtual => nanos(config.latency.min()),
            _ => 0,
        },
        poll: nanos(plan.poll),
        patience: nanos(plan.patience),
        duration: nanos(plan.duration),
        recorder: plan.recorder.clone(),
    };
    let totals = Arc::new(Mutex::new(Totals::default()));
    let model = Arc::new(Model::new(topology, terms));
    let simulation = Simulation {
        common: Common {
            model: Arc::clone(&model),
            totals: Arc::clone(&totals),
        },
        duration: plan.duration,
        chat: plan.chat,
        collapse: plan.collapse,
    };
    let report = corsair::run(executor, &config, simulation)?;
    let mut totals = totals
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    totals.dropped = model.dropped.load(Ordering::Relaxed);
    Ok((report, totals))
}
