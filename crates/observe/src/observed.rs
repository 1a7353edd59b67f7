//! The summary of a run's output, and of the data that could not be written.

use crate::ServiceTimes;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The output of a run.
#[derive(Clone, Debug, Default)]
pub struct OutputSummary {
    /// The files and their contents.
    pub files: Vec<WrittenFile>,
    /// Spans that were written.
    pub spans: u64,
    /// The number of written spans with a missing end, because a server was killed, a message was lost, or the run
    /// ended.
    pub incomplete: u64,
    /// The data that other systems did not receive.
    pub losses: Vec<Loss>,
    /// The times of each service, by the service's name.
    pub times: BTreeMap<String, ServiceTimes>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of entries in the file.
    pub count: u64,
    /// The unit: `events`, `spans`, `values`.
    pub unit: &'static str,
}

/// Data that could not be sent to another system, although the system was reachable at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The system: `Kafka at localhost:9092`.
    pub system: String,
    /// The number of lost items.
    pub lost: u64,
    /// The number of all items, including the lost items.
    pub of: u64,
    /// The unit of the items: `spans`.
    pub unit: &'static str,
    /// The first error.
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
