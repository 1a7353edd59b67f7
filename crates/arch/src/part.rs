//! An architecture in several processes.

use crate::scenario::{Scene, kinds};
use crate::simulate::{Plan, SimulateError, prepare, totals};
use crate::topology::Topology;
use crate::totals::Totals;
use corsair::cluster::{self, Beginning, Carrier, Part};
use corsair::{Config, Executor, SnapshotError};
use std::sync::Arc;

/// Runs the part of an architecture that one process has, as [`cluster::run_part`] does, from its beginning. What the
/// actors of this process have done comes beside it; [`Totals::merge`] puts those of all processes together. It
/// cannot be saved: what actors of other processes have counted is in no part.
///
/// # Errors
/// See [`SimulateError`].
pub fn run_part<C: Carrier>(
    base: &Config,
    part: Part,
    topology: Topology,
    plan: &Plan,
    carriers: Vec<impl FnOnce() -> C + Send>,
) -> Result<(Vec<u8>, Totals), SimulateError> {
    let (config, model, parameters) = prepare(Executor::Virtual, base, topology, plan)?;
    let (kinds, root) = (
        kinds(&model),
        Beginning::Root(parameters, Arc::clone(&model)),
    );
    let told = cluster::run_part::<_, Scene, C>(&config, part, &kinds, root, carriers, None);
    let told = told.map_err(|error| match error {
        SnapshotError::Run(error) => SimulateError::Run(error),
        error => unreachable!("nothing is restored: {error}"),
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
