//! How an architecture runs: its load, its duration and what records it.

use crate::message::Msg;
use crate::model::{self, LEAST_TRAVEL, Model, Settings};
use crate::scenario::SceneParameters;
use crate::timeline::MOST_SLICES;
use crate::topology::Topology;
use crate::totals::Totals;
use corsair::{Config, Executor, Latency, Message, RunError};
use corsair_observe::Recorder;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The names of the kinds of messages, as [`corsair_observe::Settings::kinds`] wants them.
pub const KINDS: &[&str] = Msg::KINDS;

/// The plan of a run: duration, load and recorder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long the load lasts.
    pub duration: Duration,
    /// The time between requests of an entry point; at least a microsecond.
    pub chat: Duration,
    /// Requests of this first part of the load are not counted at entry points.
    pub warm_up: Duration,
    /// How long after the load has ended requests may still be answered.
    pub drain: Duration,
    /// How often instances ask their registry.
    pub poll: Duration,
    /// The time after which a client gives up a lost request.
    pub patience: Duration,
    /// Show services instead of their instances in graphs.
    pub collapse: bool,
    /// Keep what happens in each interval of this length, see [`Totals::timeline`].
    pub interval: Option<Duration>,
    /// The recorder of the run.
    pub recorder: Recorder,
}

impl Default for Plan {
    /// Ten seconds with a request every ten milliseconds, and registries asked every second.
    fn default() -> Self {
        Plan {
            duration: Duration::from_secs(10),
            chat: Duration::from_millis(10),
            warm_up: Duration::ZERO,
            drain: Duration::from_millis(500),
            poll: Duration::from_secs(1),
            patience: Duration::from_secs(1),
            collapse: false,
            interval: None,
            recorder: Recorder::off(),
        }
    }
}

impl Plan {
    /// The configuration without traces, unless flows are recorded: nothing else shows what messages were sent for.
    pub fn without_needless_traces(&self, base: &Config) -> Config {
        Config {
            traces: base.traces && self.recorder.wants_flows(),
            ..base.clone()
        }
    }
}

/// The maximum usual travel time. Several travel times pass before the load begins, and all times are below
/// 584 years.
const LONGEST_TRAVEL: Duration = Duration::from_secs(100 * 24 * 3_600);

/// Why an architecture could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The interval between requests is too short.
    #[error("a request every {0:?} is too often; give at least 1us")]
    Chat(Duration),
    /// Registries asked without a pause.
    #[error("registries asked every {0:?} answer nothing else; give at least 1ms")]
    Poll(Duration),
    /// The timeline would have too many slices.
    #[error("intervals of {0:?} are more than {MOST_SLICES}; give longer ones")]
    Interval(Duration),
    /// Messages that would arrive beyond the end of time.
    #[error(
        "messages that travel {0:?} are not there when the load begins; give at most {LONGEST_TRAVEL:?}"
    )]
    Latency(Duration),
    /// The executor failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Returns how many connections a run of this topology will have: pairs of an instance and another that
/// it may call. Each needs memory from the moment at which all instances have found each other.
///
/// O(instances + services² · zones²).
///
/// ```
/// use corsair_arch::{Scale, Topology, connections, memory_needed, read};
///
/// let topology = Topology::new(&read("netflixoss", ".".as_ref())?, Scale::default())?;
/// let connections = connections(&topology);
/// assert!(connections > u64::from(topology.len()));
/// assert!(memory_needed(topology.len(), connections) < 10_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn connections(topology: &Topology) -> u64 {
    model::connections(topology, &model::zones_with_instances(topology))
}

/// About how many bytes a run of `instances` with `connections` ([`connections`]) takes.
pub fn memory_needed(instances: u32, connections: u64) -> u64 {
    // Measured: 370 MB for 6,300 instances that find each other by 2.6 million connections.
    (u64::from(instances) * 4_000).saturating_add(connections.saturating_mul(150))
}

/// Completes a configuration for an architecture: in virtual time every message has the shortest latency as
/// its base, and the rest of its travel time is a delay. Workers without actors are removed.
pub fn config(topology: &Topology, base: Config) -> Config {
    let least = topology.least_latency(LEAST_TRAVEL);
    let actors =
        topology.len() + topology.registries() + 1 + topology.looked_after().count() as u32;
    Config {
        workers: base.workers.min(corsair::most_workers(actors)),
        latency: Latency::constant(Duration::from_nanos(least)),
        ..base
    }
}

/// The minimum number of instances for each default worker.
const INSTANCES_OF_A_WORKER: NonZeroU32 = NonZeroU32::new(4_096).expect("not 0");

/// Returns the default number of workers: one for each core, but fewer if a window of virtual time has too
/// little work for all, because the barriers would cost more than the workers save.
pub fn default_workers(topology: &Topology) -> NonZeroUsize {
    corsair::worthwhile_workers(topology.len(), INSTANCES_OF_A_WORKER)
}

/// Returns the totals of actors that have ended.
pub(crate) fn totals(model: &Model) -> Totals {
    let mut totals = std::mem::take(&mut *model.totals.lock());
    totals.dropped = model.dropped.load(Ordering::Relaxed);
    totals
}

/// The configuration of a run, its model, and what its root is made from.
pub(crate) fn prepare(
    executor: Executor,
    base: &Config,
    topology: Topology,
    plan: &Plan,
) -> Result<(Config, Arc<Model>, SceneParameters), SimulateError> {
    if plan.chat < Duration::from_micros(1) {
        return Err(SimulateError::Chat(plan.chat));
    }
    if plan.poll < Duration::from_millis(1) {
        return Err(SimulateError::Poll(plan.poll));
    }
    if let Some(interval) = plan.interval
        && plan.duration.as_nanos() > interval.as_nanos().saturating_mul(MOST_SLICES.into())
    {
        return Err(SimulateError::Interval(interval));
    }
    let longest = Duration::from_nanos(topology.geography.longest(topology.regions));
    if longest > LONGEST_TRAVEL {
        return Err(SimulateError::Latency(longest));
    }
    let config = match executor {
        Executor::Virtual => config(&topology, base.clone()),
        _ => base.clone(),
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let settings = Settings {
        seed: config.seed,
        poll: nanos(plan.poll),
        patience: nanos(plan.patience),
        duration: nanos(plan.duration),
        warm_up: nanos(plan.warm_up),
        interval: plan.interval.map(nanos),
        traces: config.traces,
        recorder: plan.recorder.clone(),
    };
    let model = Arc::new(Model::new(topology, settings));
    let parameters = SceneParameters {
        duration: plan.duration,
        drain: plan.drain,
        chat: plan.chat,
        collapse: plan.collapse,
    };
    Ok((config, model, parameters))
}
