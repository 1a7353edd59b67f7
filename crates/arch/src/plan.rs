//! The plan of a run of an architecture: its load, its duration and its recorder.

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

/// The names of the kinds of messages, for [`corsair_observe::Settings::kinds`].
pub const KINDS: &[&str] = Msg::KINDS;

/// The plan of a run: duration, load and recorder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The duration of the load.
    pub duration: Duration,
    /// The time between requests of an entry point without its own load; at least a microsecond.
    pub chat: Duration,
    /// The first part of the load. Entry points do not count requests that arrive in it.
    pub warm_up: Duration,
    /// The time after the end of the load in which requests may still be answered.
    pub drain: Duration,
    /// The interval at which instances poll their registry.
    pub poll: Duration,
    /// The time after which a client gives up a lost request.
    pub patience: Duration,
    /// True if graphs show services instead of their instances.
    pub collapse: bool,
    /// The length of the intervals of the timeline, if one is recorded; see [`Totals::timeline`].
    pub interval: Option<Duration>,
    /// The recorder of the run.
    pub recorder: Recorder,
}

impl Default for Plan {
    /// Returns the default plan: ten seconds with a request every ten milliseconds; registries are polled every second.
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
    /// Returns the configuration without traces if no flows are recorded, because only flows use traces.
    pub fn without_needless_traces(&self, base: &Config) -> Config {
        Config {
            traces: base.traces && self.recorder.wants_flows(),
            ..base.clone()
        }
    }
}

/// The maximum usual travel time. Times are limited to 584 years, and several travel times pass before the load begins.
const LONGEST_TRAVEL: Duration = Duration::from_secs(100 * 24 * 3_600);

/// The reasons why an architecture could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The interval between requests is too short.
    #[error("a request every {0:?} is too often; give at least 1us")]
    Chat(Duration),
    /// Instances would poll registries without a pause.
    #[error("registries are asked every {0:?}, which is too often; give at least 1ms")]
    Poll(Duration),
    /// The timeline would have too many slices.
    #[error(
        "intervals of {0:?} are too short: there would be more than {MOST_SLICES}; give longer ones"
    )]
    Interval(Duration),
    /// A latency is so long that a message could arrive after the maximum time.
    #[error(
        "a latency of {0:?} is too long, because messages must arrive before the load begins; give at most {LONGEST_TRAVEL:?}"
    )]
    Latency(Duration),
    /// The executor failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Returns the number of connections in a run of this topology: pairs of an instance and an instance that it may call.
/// Each connection needs memory once all instances have found each other.
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

/// Estimates the memory in bytes of a run with `instances` instances and `connections` connections (see
/// [`connections`]).
pub fn memory_needed(instances: u32, connections: u64) -> u64 {
    // A measurement gave 370 MB for 6,300 instances that find each other by 2.6 million connections.
    (u64::from(instances) * 4_000).saturating_add(connections.saturating_mul(150))
}

/// Completes a configuration for an architecture. In virtual time the base latency of all messages is the shortest
/// latency, and the remaining travel time of a message is a delay. Workers without actors are removed.
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

/// Returns the default number of workers: one for each core. The number is smaller if a window of virtual time has too
/// little work for all cores, because barriers would then cost more time than the workers save.
pub fn default_workers(topology: &Topology) -> NonZeroUsize {
    corsair::worthwhile_workers(topology.len(), INSTANCES_OF_A_WORKER)
}

/// Returns the totals of all actors that have ended.
pub(crate) fn totals(model: &Model) -> Totals {
    let mut totals = std::mem::take(&mut *model.totals.lock());
    totals.dropped = model.dropped.load(Ordering::Relaxed);
    totals
}

/// Returns the configuration of a run, its model, and the parameters of its root.
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
