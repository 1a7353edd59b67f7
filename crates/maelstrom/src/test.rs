//! A test: its parameters, and its run with nodes that are actors.

use crate::client::{Client, Collected, FINAL, RECOVERY, Shared, lock};
use crate::cluster::Role;
use crate::network::{Links, partitions};
use crate::service::Service;
use crate::workload::{Start, Workload};
use crate::workloads::WORKLOADS;
use crate::{Cluster, LatencyShape, LineError, Packet, Report, Topology};
use corsair::network::NetworkError;
use corsair::{
    Actor, AsyncContext, CancelToken, Config, Context, Event, Flow, Random, RunError, Scenario,
    Simulation, Spawn, Time,
};
use corsair_hunt::{Fault, FaultPlan, PlanError, PlanLinks};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use thiserror::Error;

/// The parameters of a test, with Maelstrom's names and defaults.
///
/// ```
/// use corsair_maelstrom::{Test, nodes};
///
/// let test = Test { node_count: 3, rate: 100.0, ..Test::new("lin-kv") };
/// let report = nodes::run(&test)?;
/// assert!(report.is_valid(), "{report}");
/// # Ok::<(), corsair_maelstrom::TestError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Test {
    /// The name of the workload.
    pub workload: String,
    /// The number of nodes, from 1 to 63.
    pub node_count: u32,
    /// The number of clients.
    pub concurrency: u32,
    /// The number of operations per second of all clients together.
    pub rate: f64,
    /// The duration of the load.
    pub time_limit: Duration,
    /// The mean latency between nodes.
    pub latency: Duration,
    /// The distribution of latencies.
    pub latency_shape: LatencyShape,
    /// The neighbours that `broadcast` offers.
    pub topology: Topology,
    /// The mean time between the beginnings and ends of partitions; `None` if there are no partitions.
    pub partitions: Option<Duration>,
    /// Further faults. Times are in milliseconds; loss, duplicates and late messages end with the load.
    pub faults: FaultPlan,
    /// The share of operations that must succeed, from 0 to 1.
    pub availability: Option<f64>,
    /// The number of keys that `kafka` uses at a time.
    pub key_count: u32,
    /// The approximate number of messages that `kafka` sends to a key.
    pub max_writes_per_key: u32,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of threads if nodes are actors.
    pub workers: NonZeroUsize,
    /// Ends the run early.
    pub cancel: CancelToken,
}

impl Test {
    /// Returns a test of this workload with one node, one client, 5 operations per second, and a duration of 60
    /// seconds.
    pub fn new(workload: impl Into<String>) -> Test {
        Test {
            workload: workload.into(),
            node_count: 1,
            concurrency: 1,
            rate: 5.0,
            time_limit: Duration::from_mins(1),
            latency: Duration::ZERO,
            latency_shape: LatencyShape::default(),
            topology: Topology::default(),
            partitions: None,
            faults: FaultPlan::default(),
            availability: None,
            key_count: 10,
            max_writes_per_key: 16,
            seed: 0,
            workers: NonZeroUsize::MIN,
            cancel: CancelToken::default(),
        }
    }
}

/// The reasons why a test could not be run, or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TestError {
    /// No workload has this name.
    #[error("'{0}' is not a workload; expected {list}", list = crate::workloads().join(", "))]
    Workload(String),
    /// A parameter is out of its range.
    #[error("{name} is {value}; expected {expected}")]
    Parameter {
        /// The name of the parameter.
        name: &'static str,
        /// The value of the parameter.
        value: String,
        /// The valid range of the parameter.
        expected: &'static str,
    },
    /// The fault plan does not fit the test.
    #[error("the fault plan does not fit: {0}")]
    Plan(#[from] PlanError),
    /// The fault plan has a fault of nodes, which tests do not support.
    #[error(
        "the fault plan has the fault {0}; a test supports loss, duplicates, late, partition and delay"
    )]
    Fault(&'static str),
    /// The network has invalid parameters.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A node violated the protocol.
    #[error("{0}")]
    Node(String),
    /// A process wrote a line that is not a message.
    #[error("node {node} wrote {problem}")]
    Line {
        /// The name of the node.
        node: String,
        /// The reason why the line is not a message.
        problem: LineError,
    },
    /// A process could not be started.
    #[error("cannot start {program}: {problem}")]
    Start {
        /// The path of the program.
        program: String,
        /// The error of the operating system.
        problem: std::io::Error,
    },
}

/// The maximum duration of a load in seconds. Faults stop with the load, after two thirds of the longest time of a
/// fault plan.
const MOST_SECONDS: u64 = 2_400;

/// A test whose parameters were checked.
pub(crate) struct Prepared {
    pub(crate) cluster: Cluster,
    pub(crate) workload: &'static dyn Workload,
    pub(crate) config: Config,
    shared: Arc<Shared>,
}

impl Test {
    fn check(&self) -> Result<&'static dyn Workload, TestError> {
        let named = WORKLOADS
            .iter()
            .find(|workload| workload.name() == self.workload);
        let workload = *named.ok_or_else(|| TestError::Workload(self.workload.clone()))?;
        let within = |name, is_right: bool, value: String, expected| match is_right {
            true => Ok(()),
            false => Err(TestError::Parameter {
                name,
                value,
                expected,
            }),
        };
        let count = self.node_count;
        within(
            "node-count",
            (1..64).contains(&count),
            count.to_string(),
            "1 to 63",
        )?;
        let count = self.concurrency;
        within(
            "concurrency",
            (1..=100_000).contains(&count),
            count.to_string(),
            "1 to 100000",
        )?;
        let rate = self.rate;
        let is_rate = rate > 0.0 && rate <= 1e9;
        within(
            "rate",
            is_rate,
            rate.to_string(),
            "more than 0, and at most 1000000000",
        )?;
        let is_time = (1..=MOST_SECONDS * 1_000).contains(&(self.time_limit.as_millis() as u64));
        within(
            "time-limit",
            is_time,
            format!("{:?}", self.time_limit),
            "1ms to 2400s",
        )?;
        let is_latency = self.latency <= Duration::from_mins(1);
        within(
            "latency",
            is_latency,
            format!("{:?}", self.latency),
            "at most 60s",
        )?;
        let part = self.availability.unwrap_or(1.0);
        within(
            "availability",
            (0.0..=1.0).contains(&part),
            part.to_string(),
            "0 to 1",
        )?;
        let count = self.key_count;
        within(
            "key-count",
            (1..=10_000).contains(&count),
            count.to_string(),
            "1 to 10000",
        )?;
        let count = self.max_writes_per_key;
        let is_right = (1..=1_000_000).contains(&count);
        within(
            "max-writes-per-key",
            is_right,
            count.to_string(),
            "1 to 1000000",
        )?;
        Ok(workload)
    }

    /// Returns the faults of the run: those of the test, and partitions.
    fn plan(&self) -> Result<FaultPlan, TestError> {
        let mut plan = self.faults.clone();
        let limit = self.time_limit.as_millis() as u32;
        plan.time = limit + limit / 2;
        let concerns_nodes = |fault: &&Fault| {
            !matches!(
                fault,
                Fault::Loss { .. }
                    | Fault::Duplicates { .. }
                    | Fault::Late { .. }
                    | Fault::Partition { .. }
                    | Fault::Delay { .. }
            )
        };
        if let Some(fault) = plan.faults.iter().find(concerns_nodes) {
            return Err(TestError::Fault(fault.kind()));
        }
        if !plan.absent.is_empty() {
            return Err(TestError::Fault("absence"));
        }
        if let Some(interval) = self.partitions {
            let mut random = Random::new(self.seed ^ 0x9a27);
            let all = partitions(&mut random, self.node_count, interval, limit);
            plan.faults.extend(all);
        }
        plan.check(self.node_count)?;
        Ok(plan)
    }

    pub(crate) fn prepare(&self) -> Result<Prepared, TestError> {
        let workload = self.check()?;
        let cluster = Cluster::new(self.node_count, self.concurrency);
        let links = Links::new(cluster, self.latency, self.latency_shape);
        let links = links.map_err(NetworkError::from)?;
        let network: PlanLinks<Links> = self.plan()?.links(links, self.node_count)?;
        let config = Config {
            seed: self.seed,
            workers: self.workers,
            network: Some(Arc::new(network)),
            cancel: self.cancel.clone(),
            ..Config::default()
        };
        let shared = Shared {
            workload,
            clients: self.concurrency,
            gap: Duration::from_secs_f64(f64::from(self.concurrency) / self.rate),
            limit: Time::ZERO.after(self.time_limit),
            patience: workload.patience(self.latency),
            collected: Default::default(),
            values: AtomicUsize::new(0),
        };
        Ok(Prepared {
            cluster,
            workload,
            config,
            shared: Arc::new(shared),
        })
    }

    /// Runs the test with nodes that are actors, as fast as possible. `make` creates a node by its
    /// index.
    ///
    /// # Errors
    /// Returns a [`TestError`] if the test cannot be run or fails. A violation is not an error; it is a part of the
    /// report.
    pub fn run<A, F>(&self, make: F) -> Result<Report, TestError>
    where
        A: Actor<Packet>,
        F: Fn(u32, Cluster) -> A + Clone + Send + Sync + 'static,
    {
        let prepared = self.prepare()?;
        let simulation = prepared.simulation(self, make)?;
        let report = simulation.finish()?;
        prepared.conclude(self, &report, 0)
    }
}

impl Prepared {
    pub(crate) fn simulation<A, F>(
        &self,
        test: &Test,
        make: F,
    ) -> Result<Simulation<Packet>, TestError>
    where
        A: Actor<Packet>,
        F: Fn(u32, Cluster) -> A + Clone + Send + Sync + 'static,
    {
        let (cluster, shared) = (self.cluster, Arc::clone(&self.shared));
        let (topology, key_count) = (test.topology, test.key_count);
        let writes_per_key = test.max_writes_per_key;
        let member = move |index| match cluster.role(index) {
            Role::Node(index) => Member::Node(make(index, cluster)),
            Role::Service(index) => Member::Service(Service::new(index)),
            Role::Client(index) => {
                let start = Start {
                    client: index,
                    clients: shared.clients,
                    nodes: cluster.node_count(),
                    topology,
                    key_count,
                    writes_per_key,
                };
                let session = shared.workload.session(&start);
                let node = cluster.node(index % cluster.node_count());
                let node = (node, cluster.name(node));
                Member::Client(Client::new(Arc::clone(&shared), index, session, node))
            }
        };
        let root = Root {
            cluster: self.cluster,
            end: self
                .shared
                .limit
                .after(RECOVERY + FINAL + 2 * self.shared.patience),
            member,
        };
        Ok(Simulation::new(&self.config, root)?)
    }

    pub(crate) fn faults(&self) -> Option<String> {
        lock(&self.shared.collected).faults.first().cloned()
    }

    /// Checks the history of a finished run.
    pub(crate) fn conclude(
        &self,
        test: &Test,
        report: &corsair::Report,
        injected: u64,
    ) -> Result<Report, TestError> {
        if let Some(fault) = self.faults() {
            return Err(TestError::Node(fault));
        }
        let collected: Collected = std::mem::take(&mut *lock(&self.shared.collected));
        let other = injected + u64::from(test.concurrency);
        Ok(Report::new(test, self.workload, collected, report, other))
    }
}

/// The parent of all nodes, services and clients, which waits until the clients have finished.
struct Root<F> {
    cluster: Cluster,
    end: Time,
    member: F,
}

impl<A, F> Scenario<Packet> for Root<F>
where
    A: Actor<Packet>,
    F: Fn(u32) -> Member<A> + Clone + Send + Sync + 'static,
{
    async fn root<C: AsyncContext<Packet>>(self, mut cx: C) {
        let count = self.cluster.len();
        let all = Spawn::many(count, "member", "");
        let all = cx.spawn_actors(all, self.member).await;
        assert_eq!(
            all.get(0),
            self.cluster.node(0),
            "the members are the second spawn of the run"
        );
        let mut left = count - self.cluster.node_count() - crate::SERVICES.len() as u32;
        while left > 0 && cx.now() < self.end {
            let patience = self.end.since(cx.now());
            if let Some(Event::Message { body, .. }) = cx.recv_timeout(patience).await
                && matches!(body, Packet::Finished)
            {
                left -= 1;
            }
        }
    }
}

/// An actor of a test: the root, a node, a service or a client.
enum Member<A> {
    Node(A),
    Service(Service),
    Client(Client),
}

impl<A: Actor<Packet>> Actor<Packet> for Member<A> {
    fn start<C: Context<Packet>>(&mut self, cx: &mut C) {
        match self {
            Member::Node(node) => node.start(cx),
            Member::Service(service) => service.start(cx),
            Member::Client(client) => client.start(cx),
        }
    }

    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        match self {
            Member::Node(node) => node.on(event, cx),
            Member::Service(service) => service.on(event, cx),
            Member::Client(client) => client.on(event, cx),
        }
    }
}
