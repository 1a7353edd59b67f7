//! Pirates whose run is paused between two steps or resumed from a snapshot.

use corsair::fsm::Fsm;
use corsair::{Config, Snapshot};
use corsair_observe::run::{PausedRun, Pirates, Run};

/// Returns a paused run of pirates, from the beginning or from a snapshot.
pub fn paused_run(config: &Config, fsm: &Fsm, from: Option<&Snapshot>) -> PausedRun<Pirates> {
    let pirates = Pirates::new(config, fsm.clone()).unwrap();
    Run::new(pirates).resume(from.cloned()).hold().unwrap()
}
