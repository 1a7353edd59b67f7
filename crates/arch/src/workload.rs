//! An architecture as a workload, which [`corsair_observe::run::Run`] runs.

use crate::message::{Command, Msg};
use crate::model::Model;
use crate::plan::{Plan, SimulateError, prepare, totals};
use crate::resume_error::ResumeError;
use crate::scenario::{Scene, SceneParameters, kinds};
use crate::topology::Topology;
use crate::totals::Totals;
use crate::why::trail::Trail;
use corsair::{Addr, Config, Executor, Kinds, Report, Time, cluster};
use corsair_observe::run::{Injections, Workload};
use std::sync::Arc;

/// An architecture that is ready to run, from its beginning or from a saved state.
///
/// ```
/// use corsair::{Config, Executor};
/// use corsair_arch::{Architecture, Plan, Scale, Topology, read};
/// use corsair_observe::run::Run;
/// use std::path::Path;
///
/// let topology = Topology::new(&read("lamp", Path::new("json_arch"))?, Scale::default())?;
/// let config = Config::default();
/// let lamp = Architecture::new(Executor::Virtual, &config, topology, &Plan::default())?;
/// let finished = Run::new(lamp).finish()?;
/// assert!(finished.totals.entries.contains_key("www"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Architecture {
    pub(crate) config: Config,
    pub(crate) model: Arc<Model>,
    pub(crate) parameters: SceneParameters,
    /// Commands to instances in the order of time, for a saved run that is resumed as a branch.
    pub(crate) commands: Vec<(Time, u32, Command)>,
}

impl Architecture {
    /// Checks that an architecture can be run.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub fn new(
        executor: Executor,
        base: &Config,
        topology: Topology,
        plan: &Plan,
    ) -> Result<Architecture, SimulateError> {
        let (config, model, parameters) = prepare(executor, base, topology, plan)?;
        Ok(Architecture {
            config,
            model,
            parameters,
            commands: Vec::new(),
        })
    }

    /// Records the trail of requests, to explain the run.
    pub(crate) fn with_trail(mut self, trail: Arc<Trail>) -> Architecture {
        let model = Arc::get_mut(&mut self.model).expect("it is not shared yet");
        model.trail = Some(trail);
        self
    }

    /// Returns the topology of the run.
    pub fn topology(&self) -> &Topology {
        &self.model.topology
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    pub(crate) fn simulate(self, executor: Executor) -> Result<(Report, Totals), SimulateError> {
        let scene = Scene::new(Arc::clone(&self.model), self.parameters);
        let report = corsair::run(executor, &self.config, scene)?;
        Ok((report, totals(&self.model)))
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
    let base = plan.without_needless_traces(base);
    Architecture::new(executor, &base, topology, plan)?.simulate(executor)
}

impl Workload for Architecture {
    type Message = Msg;
    type Root = Scene;
    type Totals = Totals;
    type Error = ResumeError;

    fn config(&self) -> &Config {
        &self.config
    }

    fn kinds(&self) -> Kinds<Msg> {
        kinds(&self.model)
    }

    fn root(&self) -> (SceneParameters, Arc<Model>) {
        (self.parameters.clone(), Arc::clone(&self.model))
    }

    fn run(self, executor: Executor) -> Result<(Report, Totals), ResumeError> {
        Ok(self.simulate(executor)?)
    }

    fn totals(self) -> Totals {
        totals(&self.model)
    }

    fn merge(totals: &mut Totals, other: Totals) {
        totals.merge(other);
    }

    fn injections(&self, first: Option<Addr>) -> Injections<Msg> {
        let known = || self.model.first.get().copied();
        let Some(first) = first.map(Addr::as_u32).or_else(known) else {
            return Vec::new();
        };
        let message = |&(at, instance, command): &(Time, u32, Command)| {
            let to = Addr::from_u32(first + instance);
            (at, to, Msg::Command(command))
        };
        self.commands.iter().map(message).collect()
    }

    fn run_inputs(&self) -> Vec<u8> {
        let mut run_inputs = cluster::run_inputs::<Msg, Scene>(&self.config, &self.parameters);
        let times = self.model.times().into_iter();
        run_inputs.extend(times.flat_map(u64::to_le_bytes));
        run_inputs.extend(self.model.topology.encoded());
        run_inputs
    }
}
