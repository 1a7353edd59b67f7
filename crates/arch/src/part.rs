//! An architecture in several processes.

use crate::live::ResumeError;
use crate::scenario::{Scene, kinds};
use crate::simulate::{Plan, SimulateError, prepare, totals};
use crate::topology::Topology;
use crate::totals::Totals;
use corsair::cluster::{self, Beginning, Carrier, Part, Saving};
use corsair::{Config, Executor, Snapshot, SnapshotError};
use std::sync::Arc;

/// Runs the part of an architecture that one process has, as [`cluster::run_part`] does, from its beginning or from where it
/// was saved. What the actors of this process have done comes beside it; [`Totals::merge`] puts those of all processes
/// together.
///
/// # Errors
/// See [`ResumeError`].
pub fn run_part<C: Carrier>(
    base: &Config,
    part: Part,
    topology: Topology,
    plan: &Plan,
    from: Option<&Snapshot>,
    carriers: Vec<impl FnOnce() -> C + Send>,
    saving: Option<&dyn Saving>,
) -> Result<(Vec<u8>, Totals), ResumeError> {
    let (config, model, parameters) = prepare(Executor::Virtual, base, topology, plan)?;
    let beginning = match from {
        None => Beginning::Root(parameters, Arc::clone(&model)),
        Some(snapshot) => Beginning::Saved(snapshot),
    };
    let kinds = kinds(&model);
    let told = cluster::run_part::<_, Scene, C>(&config, part, &kinds, beginning, carriers, saving);
    let told = told.map_err(|error| match error {
        SnapshotError::Run(error) => ResumeError::Simulate(error.into()),
        error => error.into(),
    })?;
    Ok((told, totals(&model)))
}

/// All that decides the result of an architecture, as bytes that all processes of the run must have alike.
///
/// # Errors
/// See [`SimulateError`].
pub fn course(base: &Config, topology: Topology, plan: &Plan) -> Result<Vec<u8>, SimulateError> {
    let described = format!("{topology:?}");
    let (config, model, parameters) = prepare(Executor::Virtual, base, topology, plan)?;
    let mut course = cluster::course::<crate::Msg, Scene>(&config, &parameters);
    course.extend(model.times().into_iter().flat_map(u64::to_le_bytes));
    course.extend(described.into_bytes());
    Ok(course)
}
