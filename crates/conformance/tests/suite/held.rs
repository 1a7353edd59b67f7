//! Pirates that are held between two steps, or resumed from a snapshot.

use corsair::fsm::Fsm;
use corsair::{Config, Snapshot};
use corsair_observe::run::{PausedRun, Pirates, Run};

/// A run of pirates from its beginning, or from where it was saved.
pub fn hold(config: &Config, fsm: &Fsm, from: Option<&Snapshot>) -> PausedRun<Pirates> {
    let pirates = Pirates::new(config, fsm.clone()).unwrap();
    Run::new(pirates).resume(from.cloned()).hold().unwrap()
}
