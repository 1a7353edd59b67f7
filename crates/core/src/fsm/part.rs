//! Pirates in several processes.

use super::{
    Fsm, FsmError, FsmLocal, FsmParameters, Monster, Msg, Tally, Watch, configured, kinds,
};
use crate::Config;
use crate::Snapshot;
use crate::cluster::{self, Beginning, Carrier, Part, Saving};

/// Runs the part of a run of pirates that one process has, as [`cluster::run_part`] does, with pirates as
/// handlers, whatever the scenario says; from its beginning, or from where it was saved. The first process gets the
/// tally, unless the run was cancelled.
///
/// # Errors
/// See [`FsmError`].
pub fn run_part<W: Watch, C: Carrier>(
    base: &Config,
    part: Part,
    fsm: &Fsm<W>,
    from: Option<&Snapshot>,
    carrier: C,
    saving: Option<&dyn Saving>,
) -> Result<(Vec<u8>, Option<Tally>), FsmError> {
    fsm.check()?;
    let local = FsmLocal::new(fsm.watch.clone());
    let beginning = match from {
        None => Beginning::Root(FsmParameters::from(fsm), local.clone()),
        Some(snapshot) => Beginning::Saved(snapshot),
    };
    let (config, kinds) = (configured::<W>(base), kinds(&local));
    let told =
        cluster::run_part::<Msg, Monster<W>, C>(&config, part, &kinds, beginning, carrier, saving);
    Ok((told?, local.tally()))
}

/// All that decides the result of a run of pirates, as bytes that all processes of the run must have alike.
pub fn course(base: &Config, fsm: &Fsm) -> Vec<u8> {
    cluster::course::<Msg, Monster>(&configured::<()>(base), &FsmParameters::from(fsm))
}
