//! The ways to execute a prepared workload: in this process ([`Local`]), or as a part of a distributed run.

use crate::checkpoint::{Details, Owner};
use crate::console::Console;
use crate::options::Options;
use corsair::{Snapshot, SnapshotError};
use corsair_observe::Recorder;
use corsair_observe::run::{DriveError, Finished, Run, Workload};

/// Executes a workload, in one or several processes. The workload is passed to the driver, and gets back its totals,
/// regardless of the processes in which its actors ran.
pub trait Driver {
    /// Returns true in the process that writes the files of the run and prints its summary.
    fn is_first(&self) -> bool;

    /// Runs a workload as specified by the options: from the start or a checkpoint, to its end or an earlier time, with
    /// checkpoints. Returns `None` in a process whose part is reported by the first process.
    ///
    /// # Errors
    /// If the run cannot be saved or resumed, or fails.
    fn drive<W: Workload>(
        &mut self,
        workload: W,
        snapshot: Option<Snapshot>,
        details: &Details<'_>,
    ) -> Result<Option<Finished<W::Totals>>, Failure<W::Error>>;
}

/// The reasons why a workload was not run to its end.
#[derive(Debug)]
pub enum Failure<E> {
    /// The workload cannot be run, or the run failed.
    Workload(E),
    /// A failure outside the workload: checkpoints, files or other processes.
    Other(anyhow::Error),
}

impl<E: std::error::Error + Send + Sync + 'static> From<DriveError<E>> for Failure<E> {
    fn from(error: DriveError<E>) -> Failure<E> {
        match error {
            DriveError::Workload(error) => Failure::Workload(error),
            error => Failure::Other(error.into()),
        }
    }
}

impl<E> From<anyhow::Error> for Failure<E> {
    fn from(error: anyhow::Error) -> Failure<E> {
        Failure::Other(error)
    }
}

impl<E: From<SnapshotError>> From<SnapshotError> for Failure<E> {
    fn from(error: SnapshotError) -> Failure<E> {
        Failure::Workload(error.into())
    }
}

/// Runs workloads in this process.
pub struct Local<'a> {
    pub options: &'a Options,
    pub recorder: Recorder,
    pub console: &'a Console,
}

impl Driver for Local<'_> {
    fn is_first(&self) -> bool {
        true
    }

    fn drive<W: Workload>(
        &mut self,
        workload: W,
        snapshot: Option<Snapshot>,
        details: &Details<'_>,
    ) -> Result<Option<Finished<W::Totals>>, Failure<W::Error>> {
        let run = Run::new(workload)
            .on(self.options.executor)
            .record(self.recorder.clone());
        let Some(checkpoints) = &self.options.checkpoints else {
            return Ok(Some(run.finish()?));
        };
        let identity = checkpoints.run(&run.workload().run_inputs());
        let policy = checkpoints.policy();
        let owner = Owner::new(checkpoints, self.console, details);
        let finished = run
            .resume(snapshot)
            .until(checkpoints.until)
            .checkpoint(&policy, &owner, identity)
            .finish()?;
        Ok(Some(finished))
    }
}
