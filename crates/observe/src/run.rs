//! One driver for every run: a [`Workload`] defines the simulation, and [`Run`] defines how it is executed.
//!
//! The command line, the live view, Python and users of the library all use this builder. A run can start from the
//! beginning or from a checkpoint. It can go to the end or pause between commands, and can save checkpoints. It can run
//! in one process or be distributed over several. A new workload only implements [`Workload`] and supports all of these
//! modes.

mod paused;
mod pirates;
mod save;
#[cfg(test)]
mod tests;

pub use paused::PausedRun;
pub use pirates::Pirates;
pub use save::{Checkpointing, Every, Pace, Policy, SaveEvent};

use crate::checkpoint::{CheckpointError, RunId};
use crate::{ObserveError, Recorder};
use corsair::cluster::{self, Beginning, Carrier, ProcessPart, Saving};
use corsair::{
    Addr, Config, Executor, Kind, Kinds, Message, Report, Script, Snapshot, SnapshotError, Time,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The messages that are injected into a saved run when it is resumed as a branch, each with its time and its receiver.
pub type Injections<M> = Vec<(Time, Addr, M)>;

/// A simulation that is ready to run.
///
/// A workload has a configuration, the parameters of its actors, and a store for their results. The same workload can
/// run from the beginning, be paused, saved and resumed, or be distributed over processes.
pub trait Workload: Sized {
    /// The type of the actors' messages.
    type Message: Message;
    /// The type of the root, a script that can be saved.
    type Root: Kind + Script<Self::Message>;
    /// The totals of the actors in a process, in addition to the report. The processes of a distributed run send their
    /// totals to the first process.
    type Totals: Serialize + DeserializeOwned;
    /// The type of the errors.
    type Error: From<SnapshotError> + std::error::Error + Send + Sync + 'static;

    /// Returns the configuration of the run.
    fn config(&self) -> &Config;

    /// Returns all kinds of actors, including the root.
    fn kinds(&self) -> Kinds<Self::Message>;

    /// Returns the parameters of the root, which are equal in all processes, and the values for this process.
    fn root(
        &self,
    ) -> (
        <Self::Root as Kind>::Parameters,
        <Self::Root as Kind>::Local,
    );

    /// Runs from the beginning to the end on any executor, without a pause.
    ///
    /// # Errors
    /// If the run fails.
    fn run(self, executor: Executor) -> Result<(Report, Self::Totals), Self::Error>;

    /// Returns the totals of the actors. This method is called once, after all actors have ended.
    fn totals(self) -> Self::Totals;

    /// Adds the totals of another process of the same run.
    fn merge(totals: &mut Self::Totals, other: Self::Totals);

    /// Returns the messages to inject when a saved run is resumed. They are empty unless the run is a branch. `first`
    /// is the first actor that the root has spawned, if the caller knows it.
    fn injections(&self, first: Option<Addr>) -> Injections<Self::Message> {
        let _ = first;
        Vec::new()
    }

    /// Returns, as bytes, everything that determines the result of the run. The bytes are equal in all processes. The
    /// identity of the run is computed from them.
    fn run_inputs(&self) -> Vec<u8> {
        cluster::run_inputs::<Self::Message, Self::Root>(self.config(), &self.root().0)
    }
}

/// A run of a workload with its execution options.
///
/// ```
/// use corsair::Config;
/// use corsair::fsm::Fsm;
/// use corsair_observe::run::{Pirates, Run};
///
/// let config = Config::default();
/// let fsm = Fsm { population: 100, ..Fsm::default() };
/// let whole = Run::new(Pirates::new(&config, fsm.clone())?).finish()?;
///
/// // The same run, paused, saved and resumed.
/// let mut held = Run::new(Pirates::new(&config, fsm.clone())?).hold()?;
/// held.simulation.step();
/// let snapshot = held.simulation.snapshot()?;
/// let resumed = Run::new(Pirates::new(&config, fsm)?).resume(snapshot).finish()?;
/// assert_eq!(resumed.report.digest, whole.report.digest);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Run<'a, W> {
    workload: W,
    executor: Executor,
    snapshot: Option<Snapshot>,
    recorder: Recorder,
    until: Option<Time>,
    checkpoints: Option<(&'a Policy, &'a dyn Checkpointing, RunId)>,
}

/// The result of a run that has ended or has reached the time at which it was to stop.
#[derive(Clone, Debug)]
pub struct Finished<T> {
    /// The report of the run.
    pub report: Report,
    /// The totals of the workload's actors.
    pub totals: T,
}

/// The reasons why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError<E> {
    /// The workload cannot be run, or the run failed.
    #[error(transparent)]
    Workload(E),
    /// Checkpoints cannot be written to the specified directory.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// A file that the run writes cannot be saved.
    #[error(transparent)]
    Output(ObserveError),
    /// The system refuses a thread.
    #[error("the system refuses the thread that writes checkpoints: {0}")]
    Thread(std::io::Error),
}

impl<'a, W: Workload> Run<'a, W> {
    /// Creates a run from the beginning to the end, in virtual time.
    pub fn new(workload: W) -> Run<'a, W> {
        Run {
            workload,
            executor: Executor::Virtual,
            snapshot: None,
            recorder: Recorder::off(),
            until: None,
            checkpoints: None,
        }
    }

    /// Sets the executor. Only runs in virtual time can be paused, saved, resumed and distributed.
    #[must_use]
    pub fn on(self, executor: Executor) -> Run<'a, W> {
        Run { executor, ..self }
    }

    /// Returns the workload.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// Resumes a saved run.
    #[must_use]
    pub fn resume(self, snapshot: impl Into<Option<Snapshot>>) -> Run<'a, W> {
        let snapshot = snapshot.into();
        Run { snapshot, ..self }
    }

    /// Sets the recorder of the workload's actors; its files are part of each checkpoint.
    #[must_use]
    pub fn record(self, recorder: Recorder) -> Run<'a, W> {
        Run { recorder, ..self }
    }

    /// Stops the run at this time, if it has not ended before.
    #[must_use]
    pub fn until(self, until: impl Into<Option<Time>>) -> Run<'a, W> {
        let until = until.into();
        Run { until, ..self }
    }

    /// Saves checkpoints of the run with this identity.
    #[must_use]
    pub fn checkpoint(
        self,
        policy: &'a Policy,
        owner: &'a dyn Checkpointing,
        run: RunId,
    ) -> Run<'a, W> {
        let checkpoints = Some((policy, owner, run));
        Run {
            checkpoints,
            ..self
        }
    }

    /// Starts the run in the paused state: before its first event, or at the checkpoint. The caller then advances the
    /// run.
    ///
    /// # Errors
    /// If the run cannot be started, or cannot be resumed from the snapshot.
    pub fn hold(self) -> Result<PausedRun<W>, W::Error> {
        PausedRun::new(self.workload, self.snapshot.as_ref())
    }

    /// Runs to the end, or to the time set with [`until`](Run::until).
    ///
    /// # Errors
    /// Returns a [`DriveError`] if the run, a checkpoint or an output fails.
    pub fn finish(self) -> Result<Finished<W::Totals>, DriveError<W::Error>> {
        let is_paused =
            self.snapshot.is_some() || self.until.is_some() || self.checkpoints.is_some();
        if !is_paused || self.executor != Executor::Virtual {
            let ran = self.workload.run(self.executor);
            let (report, totals) = ran.map_err(DriveError::Workload)?;
            return Ok(Finished { report, totals });
        }
        let Run {
            until,
            checkpoints,
            recorder,
            ..
        } = self;
        let held = PausedRun::new(self.workload, self.snapshot.as_ref());
        let mut held = held.map_err(DriveError::Workload)?;
        let is_over = match checkpoints {
            Some((policy, owner, run)) => held.drive(until, policy, owner, run, recorder)?,
            None => until.is_none_or(|until| !held.simulation.run_until(until)),
        };
        match is_over {
            true => Ok(held.finish().map_err(SnapshotError::from)?),
            false => Ok(held.stop()),
        }
    }

    /// Runs this process's part of a distributed run. `carrier` transports messages to the other processes. Returns the
    /// serialized outcome for [`conclude_parts`](cluster::conclude_parts), and the totals of this process.
    ///
    /// # Errors
    /// If the part cannot be started or resumed, or if it fails.
    pub fn over<C: Carrier>(
        self,
        part: ProcessPart,
        carrier: C,
        saving: Option<&dyn Saving>,
    ) -> Result<(Vec<u8>, W::Totals), W::Error> {
        let Run {
            workload, snapshot, ..
        } = self;
        let injections = |first| workload.injections(Some(first));
        let beginning = match &snapshot {
            None => {
                let (parameters, local) = workload.root();
                Beginning::Root(parameters, local)
            }
            Some(snapshot) => Beginning::Branch(snapshot, &injections),
        };
        let (config, kinds) = (workload.config(), workload.kinds());
        let outcome = cluster::run_part::<W::Message, W::Root, C>(
            config, part, &kinds, beginning, carrier, saving,
        )?;
        Ok((outcome, workload.totals()))
    }
}

impl<W> std::fmt::Debug for Run<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("executor", &self.executor)
            .field("is_resumed", &self.snapshot.is_some())
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl<E> From<CheckpointError> for DriveError<E> {
    fn from(error: CheckpointError) -> Self {
        DriveError::Checkpoint(error)
    }
}

impl<E> From<ObserveError> for DriveError<E> {
    fn from(error: ObserveError) -> Self {
        DriveError::Output(error)
    }
}

impl<E: From<SnapshotError>> From<SnapshotError> for DriveError<E> {
    fn from(error: SnapshotError) -> Self {
        DriveError::Workload(error.into())
    }
}
