//! A run that its caller advances.

use super::save::Saver;
use super::{Checkpointing, DriveError, Finished, Policy, Workload};
use crate::Recorder;
use crate::checkpoint::RunId;
use corsair::{RunError, Simulation, Snapshot, SnapshotError, Time};

/// A run of a workload in virtual time that is paused until its caller advances it.
pub struct PausedRun<W: Workload> {
    /// The simulation, which the caller advances, inspects and saves.
    pub simulation: Simulation<W::Message>,
    workload: W,
}

impl<W: Workload> PausedRun<W> {
    pub(super) fn new(workload: W, snapshot: Option<&Snapshot>) -> Result<PausedRun<W>, W::Error> {
        let (config, kinds) = (workload.config(), workload.kinds());
        let simulation = match snapshot {
            None => {
                let (parameters, local) = workload.root();
                Simulation::with_kinds::<W::Root>(config, &kinds, parameters, local)
                    .map_err(SnapshotError::from)?
            }
            Some(snapshot) => {
                let mut simulation = Simulation::restore(config, &kinds, snapshot)?;
                for (time, to, message) in workload.injections(None) {
                    let injected = simulation.inject(time, to, message);
                    injected.map_err(|error| SnapshotError::Corrupt {
                        part: 0,
                        source: error.into(),
                    })?;
                }
                simulation
            }
        };
        Ok(PausedRun {
            simulation,
            workload,
        })
    }

    /// Returns the workload.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// Runs to the end, or to `until` if that is earlier, and saves checkpoints. Returns true if the run is
    /// over.
    ///
    /// # Errors
    /// If the directory cannot be used, or the state cannot be saved.
    pub fn drive(
        &mut self,
        until: Option<Time>,
        policy: &Policy,
        owner: &dyn Checkpointing,
        run: RunId,
        recorder: Recorder,
    ) -> Result<bool, DriveError<W::Error>> {
        let mut saver = Saver::new(policy, owner, run, recorder)?;
        saver.drive(self, until)
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// If the run fails.
    pub fn finish(self) -> Result<Finished<W::Totals>, RunError> {
        let report = self.simulation.finish()?;
        let totals = self.workload.totals();
        Ok(Finished { report, totals })
    }

    /// Ends the run at its current time.
    pub fn stop(mut self) -> Finished<W::Totals> {
        let report = self.simulation.report();
        // Actors add their results to the totals when they are dropped.
        drop(self.simulation);
        let totals = self.workload.totals();
        Finished { report, totals }
    }
}

impl<W: Workload> std::fmt::Debug for PausedRun<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PausedRun").field(&self.simulation).finish()
    }
}
