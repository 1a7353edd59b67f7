//! What was written about a run, and what could not be.

use crate::ServiceTimes;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// What was written about a run.
#[derive(Clone, Debug, Default)]
pub struct OutputSummary {
    /// The files, and what is in them.
    pub files: Vec<WrittenFile>,
    /// Spans that were written.
    pub spans: u64,
    /// Written spans of which one end was never recorded, because a server was killed, a message was
    /// lost, or the run ended.
    pub incomplete: u64,
    /// What could not be sent to other systems.
    pub losses: Vec<Loss>,
    /// The times of each service, by its name.
    pub times: BTreeMap<String, ServiceTimes>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where.
    pub path: PathBuf,
    /// How many of what it has.
    pub count: u64,
    /// What that is: `events`, `spans`, `values`.
    pub unit: &'static str,
}

/// What could not be sent to another system, after it had been reached at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Which: `Kafka at localhost:9092`.
    pub system: String,
    /// How many were lost.
    pub lost: u64,
    /// How many of all.
    pub of: u64,
    /// What they are: `spans`.
    pub unit: &'static str,
    /// What happened first.
    pub reason: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss {
            system,
            lost,
            of,
            unit,
            reason,
        } = self;
        write!(f, "{system} did not take {lost} of {of} {unit}: {reason}")
    }
}
