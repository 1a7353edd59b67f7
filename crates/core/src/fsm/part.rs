//! Pirates in several processes.

use super::{Fsm, FsmError, FsmLocal, FsmParameters, Monster, Msg, Tally, configured, kinds};
use crate::cluster::{self, Carrier, Part};
use crate::contract::Config;

/// Runs the part of a run of pirates that one process has, as [`cluster::run_part`] does, with pirates as
/// handlers, whatever the scenario says. The first process gets the tally, unless the run was cut.
///
/// # Errors
/// See [`FsmError`].
pub fn run_part<C: Carrier>(
    base: &Config,
    part: Part,
    fsm: &Fsm,
    carriers: Vec<impl FnOnce() -> C + Send>,
) -> Result<(Vec<u8>, Option<Tally>), FsmError> {
    fsm.check()?;
    let local = FsmLocal::new(());
    let root = (FsmParameters::from(fsm), local.clone());
    let config = configured::<()>(base);
    let told = cluster::run_part::<Msg, Monster, C>(&config, part, &kinds(&local), root, carriers)?;
    Ok((told, local.tally()))
}

/// All that decides the result of a run of pirates, as bytes that all processes of the run must have alike.
pub fn course(base: &Config, fsm: &Fsm) -> Vec<u8> {
    cluster::course::<Msg, Monster>(&configured::<()>(base), &FsmParameters::from(fsm))
}
