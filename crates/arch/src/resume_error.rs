//! Errors of resuming a saved run.

use crate::plan::SimulateError;
use corsair::SnapshotError;

/// The reasons why a saved run cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The architecture cannot be run.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// The changes are not possible.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The saved run cannot be read, or is a run of another program.
    #[error(transparent)]
    Snapshot(SnapshotError),
}

impl From<SnapshotError> for ResumeError {
    fn from(error: SnapshotError) -> ResumeError {
        match error {
            SnapshotError::Run(error) => ResumeError::Simulate(error.into()),
            error => ResumeError::Snapshot(error),
        }
    }
}

impl ResumeError {
    /// Converts to the error of a new run, for errors that only a new run can have.
    pub(crate) fn into_simulate(self) -> SimulateError {
        match self {
            ResumeError::Simulate(error) => error,
            error => unreachable!("a run that begins does not resume: {error}"),
        }
    }
}

/// A change that is not possible in a resumed run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The change concerns a field on which the saved state depends.
    #[error(
        "{0} cannot be changed in a resumed run; start a new run with it, or change a load, a fault, a policy, a limit or a time"
    )]
    State(String),
    /// A fault would begin before the time at which the run was saved.
    #[error(
        "a fault of {instance} at {at:?} of the load is before the time at which the run was saved; give a later time"
    )]
    Past {
        /// The name of the instance.
        instance: String,
        /// The time after the start of the load.
        at: std::time::Duration,
    },
    /// The load is not running, so a setting cannot scale it.
    #[error("the run was saved before its load began or after it ended; save it during the load")]
    NoLoad,
}
