//! An architecture in several processes.

use crate::branch::{Branch, Branched};
use crate::message::Msg;
use crate::model::Model;
use crate::resume_error::ResumeError;
use crate::scenario::{Scene, kinds};
use crate::simulate::{Plan, SimulateError, prepare, totals};
use crate::topology::Topology;
use crate::totals::Totals;
use crate::workload::Architecture;
use corsair::cluster::{self, Beginning, Carrier, Part, Saving};
use corsair::{Addr, Config, Executor, Snapshot};
use corsair_observe::run::Workload;
use std::sync::Arc;

/// Where the part of an architecture begins.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At the beginning.
    Beginning,
    /// Where it was saved.
    Saved(&'a Snapshot),
    /// The same, as this branch of it.
    Branch(&'a Snapshot, &'a Branch),
}

/// Runs the part of an architecture that one process has, as [`cluster::run_part`] does. What the actors of this process have
/// done comes beside it; [`Totals::merge`] puts those of all processes together.
///
/// # Errors
/// See [`ResumeError`].
pub fn run_part<C: Carrier>(
    base: &Config,
    part: Part,
    topology: Topology,
    plan: &Plan,
    start: Start<'_>,
    carrier: C,
    saving: Option<&dyn Saving>,
) -> Result<(Vec<u8>, Totals), ResumeError> {
    let run = |config: &Config, model: &Arc<Model>, beginning: Beginning<'_, Msg, Scene>| {
        let kinds = kinds(model);
        let told =
            cluster::run_part::<_, Scene, C>(config, part, &kinds, beginning, carrier, saving);
        Ok((told?, totals(model)))
    };
    let prepared = |topology| prepare(Executor::Virtual, base, topology, plan);
    match start {
        Start::Beginning => {
            let (config, model, parameters) = prepared(topology)?;
            let root = Beginning::Root(parameters, Arc::clone(&model));
            run(&config, &model, root)
        }
        Start::Saved(snapshot) => {
            let (config, model, _) = prepared(topology)?;
            run(&config, &model, Beginning::Saved(snapshot))
        }
        Start::Branch(snapshot, branch) => {
            let branched = Branched::new(base, &topology, branch, plan, snapshot)?;
            let commands = |first: Addr| {
                let address = |instance| Addr::from_u32(first.as_u32() + instance);
                let message = |&(at, to, command)| (at, address(to), Msg::Command(command));
                branched.commands.iter().map(message).collect()
            };
            let beginning = Beginning::Branch(&branched.snapshot, &commands);
            run(&branched.config, &branched.model, beginning)
        }
    }
}

/// All that decides the result of an architecture, as bytes that all processes of the run must have alike.
///
/// # Errors
/// See [`SimulateError`].
pub fn course(base: &Config, topology: Topology, plan: &Plan) -> Result<Vec<u8>, SimulateError> {
    let architecture = Architecture::new(Executor::Virtual, base, topology, plan)?;
    Ok(architecture.course())
}
