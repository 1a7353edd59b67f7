//! Programs of nodes, and one run of them.

use crate::invariant::{Invariant, watched};
use crate::network::{Choices, network};
use crate::node::{Coverage, FIRST, Host, Make};
use crate::step::Step;
use crate::{Change, FaultPlan, Node, PlanError, Properties, Transmission};
use corsair::{
    Addr, AsyncContext, Config, Context, Event, Message, Random, RunError, Scenario, Spawn, Time,
    simulate,
};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Nodes that run together, with an observer.
pub trait Program: Send + Sync + 'static {
    /// The type of messages. [`Message::duplicate`] determines whether messages can arrive twice.
    type Message: Message + Clone;
    /// The type of the nodes.
    type Node: Node<Self::Message>;
    /// The type of the observer.
    type Observer: Observer<Self::Message>;

    /// Returns the name, for replay files.
    fn name(&self) -> &'static str;
    /// Returns the number of nodes, at most 63.
    fn nodes(&self) -> u32;
    /// Returns the duration of a run in milliseconds. Faults stop after two thirds of it.
    fn time(&self) -> u32;
    /// Creates a node, at the start and after each crash.
    fn node(&self, index: u32) -> Self::Node;
    /// Creates the observer.
    fn observer(&self) -> Self::Observer;
    /// True if nodes may lose their disks in a crash, so that a search also draws such crashes.
    fn loses_disks(&self) -> bool {
        false
    }
}

/// The parent of all nodes. Messages that nodes send to the observer are neither lost nor duplicated, but they take
/// time and may overtake each other.
pub trait Observer<M: Message>: Send + 'static {
    /// Handles the report of a node.
    fn on<C: Context<M>>(&mut self, from: Addr, body: M, cx: &mut C);

    /// States the properties that must hold at the end, when no fault has happened for a third of
    /// the run.
    fn end<C: Context<M>>(&mut self, cx: &mut C) {
        let _ = cx;
    }
}

/// Observes nothing: the nodes state all properties.
impl<M: Message> Observer<M> for () {
    fn on<C: Context<M>>(&mut self, _: Addr, _: M, _: &mut C) {}
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// The properties of the run.
    pub properties: Properties,
    /// The run's digest, which depends only on the seed and the plan.
    pub digest: u64,
    /// The number of messages and timers that the nodes have handled.
    pub events: u64,
    /// The changes of the states of nodes and of pairs of nodes, in order: other runs branch there. Without changes no run
    /// branches.
    pub changes: Vec<Change>,
}

/// A run with its steps.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The result of the run.
    pub result: RunResult,
    /// The steps of the nodes, in the order of time.
    pub steps: Vec<Step>,
    pub(crate) choices: Choices,
}

impl Trace {
    /// Creates the trace of a run without random faults.
    pub fn new(result: RunResult, steps: Vec<Step>) -> Trace {
        Trace {
            result,
            steps,
            choices: Choices::new(),
        }
    }

    /// Returns the messages to which random faults (loss, duplicates, late messages) have happened.
    pub fn chosen(&self) -> impl Iterator<Item = Transmission> {
        self.choices.keys().copied()
    }
}

/// The interface of a program of any message type, for the search.
pub trait Subject: Sync {
    /// Returns the name of the program.
    fn name(&self) -> &'static str;
    /// Returns the number of nodes.
    fn nodes(&self) -> u32;
    /// Returns the length of a run, in milliseconds.
    fn time(&self) -> u32;
    /// True if nodes may lose their disks in a crash.
    fn loses_disks(&self) -> bool;
    /// Draws the faults of a run of this length, in milliseconds.
    fn draw(&self, random: &mut Random, time: u32) -> FaultPlan {
        FaultPlan::draw(random, self.nodes(), time, self.loses_disks())
    }

    /// Runs the program once in virtual time, on the given number of workers.
    ///
    /// A panic of a node is a violation of `no node panics`.
    ///
    /// # Errors
    /// If the plan does not fit the program, or the run fails for another reason.
    fn run(&self, seed: u64, plan: &FaultPlan, workers: usize) -> Result<RunResult, HuntError>;
    /// Runs the program once on one worker, and also returns the steps of its nodes.
    ///
    /// # Errors
    /// See [`Subject::run`].
    fn trace(&self, seed: u64, plan: &FaultPlan) -> Result<Trace, HuntError>;
}

/// The reasons why a run could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    /// The plan does not fit the program.
    #[error("the fault plan does not fit: {0}")]
    Plan(#[from] PlanError),
    /// The plan describes an invalid network.
    #[error(transparent)]
    Network(#[from] corsair::network::NetworkError),
    /// A replayed run does not violate its property.
    #[error("the run does not violate the property '{property}'; the program may have changed")]
    NotReproduced {
        /// The name of the property.
        property: String,
    },
    /// The run failed.
    #[error("the run with seed {seed} failed: {source}")]
    Run {
        /// The seed of the failed run.
        seed: u64,
        /// The error of the run.
        source: Box<RunError>,
    },
}

impl<P: Program> Subject for Arc<P> {
    fn name(&self) -> &'static str {
        P::name(self)
    }

    fn nodes(&self) -> u32 {
        P::nodes(self)
    }

    fn time(&self) -> u32 {
        P::time(self)
    }

    fn loses_disks(&self) -> bool {
        P::loses_disks(self)
    }

    fn run(&self, seed: u64, plan: &FaultPlan, workers: usize) -> Result<RunResult, HuntError> {
        run(self, seed, plan, workers, None, &[])
    }

    fn trace(&self, seed: u64, plan: &FaultPlan) -> Result<Trace, HuntError> {
        trace(self, seed, plan, &[])
    }
}

pub(crate) fn trace<P: Program>(
    program: &Arc<P>,
    seed: u64,
    plan: &FaultPlan,
    invariants: &[Invariant<P::Message>],
) -> Result<Trace, HuntError> {
    let records = Records::default();
    let result = run(program, seed, plan, 1, Some(records.clone()), invariants)?;
    let mut steps = take(&records.steps);
    // Steps are recorded node by node within a window, so they must be sorted.
    steps.sort_by_key(|step: &Step| step.at);
    Ok(Trace {
        result,
        steps,
        choices: take(&records.choices),
    })
}

fn take<T: Default>(records: &Mutex<T>) -> T {
    std::mem::take(&mut *records.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The records of a traced run.
#[derive(Clone, Default)]
pub(crate) struct Records {
    steps: Arc<Mutex<Vec<Step>>>,
    choices: Arc<Mutex<Choices>>,
}

pub(crate) fn run<P: Program>(
    program: &Arc<P>,
    seed: u64,
    plan: &FaultPlan,
    workers: usize,
    records: Option<Records>,
    invariants: &[Invariant<P::Message>],
) -> Result<RunResult, HuntError> {
    let nodes = P::nodes(program);
    plan.check(nodes)?;
    let mut links = network(plan, nodes)?;
    if let Some(records) = &records {
        links = links.recording(Arc::clone(&records.choices));
    }
    let log = records.map(|records| records.steps);
    let coverage = Arc::new(Coverage::new(nodes));
    let config = Config {
        seed,
        workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
        network: Some(Arc::new(links)),
        traces: log.is_some(),
        ..Config::default()
    };
    let watch = Watch {
        program: Arc::clone(program),
        plan: Arc::new(plan.clone()),
        coverage: Arc::clone(&coverage),
        log,
    };
    let outcome = match invariants {
        [] => simulate(&config, watch).map(|report| (report, Properties::default())),
        _ => watched(&config, watch, nodes, invariants),
    };
    let (report, stated) = match outcome {
        Ok(outcome) => outcome,
        Err(RunError::Panicked { .. }) => {
            let mut properties = Properties::default();
            properties.violate("no node panics");
            return Ok(RunResult {
                properties,
                digest: 0,
                events: coverage.events(),
                changes: coverage.changes(),
            });
        }
        Err(source) => {
            return Err(HuntError::Run {
                seed,
                source: Box::new(source),
            });
        }
    };
    let mut properties = match plan.until {
        None => Properties::of(&report),
        Some(_) => Properties::of_part(&report),
    };
    properties.merge(&stated);
    Ok(RunResult {
        properties,
        digest: report.digest.unwrap_or(0),
        events: coverage.events(),
        changes: coverage.changes(),
    })
}

/// A run as a scenario: its root spawns the nodes and observes.
struct Watch<P> {
    program: Arc<P>,
    plan: Arc<FaultPlan>,
    coverage: Arc<Coverage>,
    log: Option<Arc<Mutex<Vec<Step>>>>,
}

impl<P: Program> Scenario<P::Message> for Watch<P> {
    async fn root<C: AsyncContext<P::Message>>(self, mut cx: C) {
        let Watch {
            program,
            plan,
            coverage,
            log,
        } = self;
        let (count, time, cut) = (program.nodes(), plan.end(), plan.until.is_some());
        let mut observer = program.observer();
        let host = move |index| {
            let program = Arc::clone(&program);
            let make: Make<P::Node> = Arc::new(move |index| program.node(index));
            let (plan, coverage) = (Arc::clone(&plan), Arc::clone(&coverage));
            Host::new(index, count, make, plan, coverage, log.clone())
        };
        let nodes = cx.spawn_actors(Spawn::many(count, "node", ""), host).await;
        assert_eq!(
            nodes.get(0).as_u32(),
            FIRST,
            "the nodes are the second spawn of the run"
        );
        let end = Time::from_nanos(u64::from(time) * 1_000_000);
        while cx.now() < end {
            let left: Duration = end.since(cx.now());
            if let Some(Event::Message { from, body }) = cx.recv_timeout(left).await {
                observer.on(from, body, &mut cx);
            }
        }
        if !cut {
            observer.end(&mut cx);
        }
    }
}
