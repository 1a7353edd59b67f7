//! The pirates and the FSM as a workload.

use super::Workload;
use corsair::fsm::{
    self, Fsm, FsmError, FsmLocal, FsmParameters, Monster, Msg, PirateWatch, Tally, Watch,
};
use corsair::{Config, Executor, Kinds, Report};

/// The workload of the FSM scenario. The totals are the FSM's tally, if the FSM has completed it in this process.
pub struct Pirates<W: Watch = ()> {
    fsm: Fsm<W>,
    config: Config,
    local: FsmLocal<W>,
}

impl<W: Watch> Pirates<W> {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// Returns an [`FsmError`] if the scenario is invalid.
    pub fn new(base: &Config, fsm: Fsm<W>) -> Result<Pirates<W>, FsmError> {
        fsm.check()?;
        let config = Config {
            // Only the log of messages uses the traces in envelopes.
            traces: base.traces && W::Pirate::MESSAGES,
            ..fsm::config(base.clone())
        };
        let local = FsmLocal::new(fsm.watch.clone());
        Ok(Pirates { fsm, config, local })
    }

    /// Returns the same scenario for another run.
    #[must_use]
    pub fn again(&self) -> Pirates<W> {
        Pirates {
            fsm: self.fsm.clone(),
            config: self.config.clone(),
            local: FsmLocal::new(self.fsm.watch.clone()),
        }
    }
}

impl<W: Watch> std::fmt::Debug for Pirates<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pirates")
            .field("count", &self.fsm.count())
            .finish_non_exhaustive()
    }
}

impl<W: Watch> Workload for Pirates<W> {
    type Message = Msg;
    type Root = Monster<W>;
    type Totals = Option<Tally>;
    type Error = FsmError;

    fn config(&self) -> &Config {
        &self.config
    }

    fn kinds(&self) -> Kinds<Msg> {
        fsm::kinds(&self.local)
    }

    fn root(&self) -> (FsmParameters, FsmLocal<W>) {
        (FsmParameters::from(&self.fsm), self.local.clone())
    }

    fn run(self, executor: Executor) -> Result<(Report, Option<Tally>), FsmError> {
        fsm::run(executor, &self.config, self.fsm)
    }

    fn totals(self) -> Option<Tally> {
        self.local.tally()
    }

    fn merge(tally: &mut Option<Tally>, other: Option<Tally>) {
        *tally = tally.or(other);
    }
}
