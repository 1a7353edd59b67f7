//! From recorded traces to a definition: what the services are, what their endpoints do, and how
//! much comes in.
//!
//! Spans are read from files ([`read`]) and joined to invocations: what an instance was asked, and
//! what it called meanwhile ([`invocation`]). From the invocations of an endpoint follows its script
//! ([`script`]): which calls come one after the other and which at once, how likely each is, and
//! how long it works in between ([`fit`]). From those of an instance follows how many it handles at
//! once ([`slots`]), and from the requests without a caller what comes in ([`arrivals`]). What was
//! learned is then run, and its response times are compared with the recorded ones ([`judge`]).

mod arrivals;
mod define;
mod fit;
mod invocation;
mod judge;
mod names;
mod read;
mod script;
mod slots;

pub use judge::{Quantile, Resemblance};
pub use read::TraceError;

use crate::definition::{Checked, Definition, DefinitionError, read_text};
use crate::simulate::SimulateError;
use corsair::Config;
use invocation::Invocations;
use read::Recorded;
use std::path::PathBuf;
use std::time::Duration;

/// What was learned from traces.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The definition.
    pub definition: Definition,
    /// How many spans there were, and in how many traces.
    pub spans: u64,
    /// See `spans`.
    pub traces: u64,
    /// From the first request to the last.
    pub lasted: Duration,
    /// What the traces do not say, or what a definition cannot say of them; a sentence each.
    pub remarks: Vec<String>,
    recorded: Vec<judge::RecordedKind>,
}

/// Why nothing was learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A file that cannot be read, or has no traces.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// Spans without a request that comes from outside.
    #[error("none of {0} spans is a request to a service; give whole traces with spans of servers")]
    NoRequests(u64),
    /// What was learned is more than a definition can say.
    #[error("what was learned cannot be used: {0}")]
    Definition(#[from] DefinitionError),
    /// There would be more instances than there can be.
    #[error("what was learned cannot be run: {0}")]
    Scale(String),
    /// What was learned did not run.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Learns a definition of this name from files of traces: OTLP/JSON, Zipkin or Jaeger.
///
/// # Errors
/// See [`LearnError`].
pub fn learn(files: &[PathBuf], name: &str) -> Result<Learned, LearnError> {
    let mut recorded = Recorded::read(files)?;
    let spans = recorded.spans.len() as u64;
    let mut invocations = Invocations::join(&recorded);
    invocations.part_inner(&mut recorded.names);
    if !invocations.all.iter().any(|made| made.caller.is_none()) {
        return Err(LearnError::NoRequests(spans));
    }
    let described = define::describe(&recorded, &invocations, name);
    Ok(Learned {
        definition: described.definition,
        spans,
        traces: invocations.traces,
        lasted: Duration::from_nanos(described.lasted),
        remarks: described.remarks,
        recorded: described.kinds,
    })
}

impl Learned {
    /// The definition, checked as if it had been read.
    ///
    /// # Errors
    /// What was learned is more than a definition can say.
    pub fn checked(&self) -> Result<Checked, LearnError> {
        Ok(read_text(&self.definition.to_text(), "what was learned")?)
    }

    /// Runs what was learned, and compares its response times with the recorded ones.
    ///
    /// # Errors
    /// That it cannot be run.
    pub fn judge(&self, config: &Config) -> Result<Vec<Resemblance>, LearnError> {
        judge::judge(self, config)
    }
}
