//! Derives a definition from recorded traces: the services, the scripts of their endpoints, and the
//! load.
//!
//! Spans are read from files ([`read`]) and joined to invocations: a request to an instance, and the
//! calls that the instance made while it handled the request ([`invocation`]). Requests that waited
//! before the server's span get the time of their arrival ([`waits`]). The invocations of an
//! endpoint determine its script ([`script`]): which calls are sequential and which are parallel, the
//! probability of each call, and the work between calls ([`fit`]). The invocations of an instance
//! determine how many requests it handles at once ([`slots`]), or how many processors they share
//! ([`processors`]), and the pauses that repeat ([`pauses`]). Requests without a caller determine
//! the load ([`arrivals`]). The definition is then run, and its response times are compared with the
//! recorded ones ([`judge`]).

mod arrivals;
mod cache;
mod clock;
mod configured;
mod define;
mod fit;
mod invocation;
mod judge;
mod latency;
mod metrics;
mod names;
mod pauses;
mod policies;
mod processors;
mod rate_limit;
mod read;
mod recording;
mod resample;
mod reservoir;
mod sampled;
mod script;
mod slots;
mod traced_names;
mod waits;

pub use configured::ConfiguredError;
pub use judge::{Quantile, Resemblance};
pub use metrics::MetricSeries;
pub use policies::{UnseenPolicies, UnseenPolicy};
pub use read::TraceError;
pub use recording::Recording;
pub use resample::LearnedParameter;
pub use reservoir::{Reservoir, SpanBatch};

use crate::definition::{CheckedDefinition, Definition, DefinitionError, read_text};
use crate::plan::SimulateError;
use corsair::Config;
use invocation::Invocations;
use std::path::PathBuf;
use std::time::Duration;

/// A definition learned from traces.
#[derive(Clone, Debug)]
pub struct LearnReport {
    /// The learned definition.
    pub definition: Definition,
    /// The number of spans.
    pub spans: u64,
    /// The number of traces.
    pub traces: u64,
    /// The time from the first request to the last.
    pub lasted: Duration,
    /// Sentences about missing parts of the traces, and about properties that a definition cannot express.
    pub remarks: Vec<String>,
    /// The numbers of the definition with their intervals, if resampling was requested and there were enough traces.
    pub numbers: Vec<LearnedParameter>,
    /// Definitions learned from resampled recordings.
    pub resampled: Vec<Definition>,
    /// The policies of calls that the traces cannot show, the most frequent calls first.
    pub unseen: Vec<UnseenPolicies>,
    /// True if the compared response times are of traces that were not learned from.
    pub is_held_out: bool,
    recorded: Vec<judge::RecordedKind>,
    visited: define::Visits,
}

/// The options of learning.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnOptions {
    /// The share of all requests that have traces; with `None` it is taken from the traces, or is 1.
    pub sampled: Option<f64>,
    /// The last fraction of the recording, from 0 to 1, which is excluded from learning and used only for the
    /// comparison.
    pub holdout: f64,
    /// The number of resampled recordings for confidence intervals, up to [`Recording::MOST_RESAMPLES`].
    pub resamples: usize,
    /// The seed of the random numbers for resampling.
    pub seed: u64,
}

impl Default for LearnOptions {
    /// Returns options with which the definition is learned once, from all traces.
    fn default() -> Self {
        LearnOptions {
            sampled: None,
            holdout: 0.0,
            resamples: 0,
            seed: 0,
        }
    }
}

/// The reasons why nothing was learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// A file cannot be read, or has no traces.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// No span is a request from outside.
    #[error(
        "none of {0} spans is a request to a service; give complete traces with spans of servers"
    )]
    NoRequests(u64),
    /// The result is not a valid definition.
    #[error("the learned architecture cannot be used: {0}")]
    Definition(#[from] DefinitionError),
    /// The definition has too many instances.
    #[error("the learned architecture cannot be run: {0}")]
    Scale(String),
    /// The definition could not be simulated.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Learns a definition of this name from files of traces: OTLP/JSON, Zipkin or Jaeger.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("corsair-learn-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// // Two requests of the service web, each of which calls the service db.
/// let mut spans = Vec::new();
/// for (trace, start) in [("a1", 1_000_000), ("a2", 1_500_000)] {
///     for (id, parent, kind, service, at, duration) in [
///         ("1", "", "SERVER", "web", start, 9_000),
///         ("2", "1", "CLIENT", "web", start + 1_000, 6_000),
///         ("3", "2", "SERVER", "db", start + 2_000, 4_000),
///     ] {
///         spans.push(format!(
///             r#"{{"traceId": "{trace}", "id": "{trace}{id}", "parentId": {}, "kind": "{kind}", "name": "get",
///             "timestamp": {at}, "duration": {duration}, "localEndpoint": {{"serviceName": "{service}"}}}}"#,
///             if parent.is_empty() { "null".to_owned() } else { format!("\"{trace}{parent}\"") },
///         ));
///     }
/// }
/// let file = dir.join("traces.json");
/// std::fs::write(&file, format!("[{}]", spans.join(",")))?;
///
/// let report = corsair_arch::learn(&[file], "shop")?;
/// assert_eq!((report.traces, report.spans), (2, 6));
/// let names: Vec<_> = report.definition.services.iter().map(|s| s.name.as_str()).collect();
/// assert!(names.contains(&"web") && names.contains(&"db"), "{names:?}");
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`LearnError`].
pub fn learn(files: &[PathBuf], name: &str) -> Result<LearnReport, LearnError> {
    learn_with(files, name, &LearnOptions::default())
}

/// Learns a definition with options.
///
/// # Errors
/// See [`LearnError`].
pub fn learn_with(
    files: &[PathBuf],
    name: &str,
    options: &LearnOptions,
) -> Result<LearnReport, LearnError> {
    Recording::read(files)?.learn(name, options)
}

/// Removes the traces of the last part of a recording; `None` if there are none.
fn hold_out(all: &mut Invocations, part: f64) -> Option<Invocations> {
    let times = || all.by_trace().map(|(begins, _)| begins);
    let (first, last) = (times().min()?, times().max()?);
    let from = first + ((last - first) as f64 * (1.0 - part)) as u64;
    if part <= 0.0 || from <= first {
        return None;
    }
    let (learned, held_out): (Vec<_>, Vec<_>) =
        all.by_trace().partition(|(begins, _)| *begins < from);
    let chosen = |traces: Vec<(u64, std::ops::Range<u32>)>| {
        all.chosen(traces.into_iter().map(|(_, range)| (range, 0)))
    };
    let (learned, held_out) = (chosen(learned), chosen(held_out));
    *all = learned;
    Some(held_out)
}

impl LearnReport {
    /// Checks the definition as if it had been read.
    ///
    /// # Errors
    /// If the definition is invalid.
    pub fn checked(&self) -> Result<CheckedDefinition, LearnError> {
        Ok(read_text(
            &self.definition.to_text(),
            "the learned definition",
        )?)
    }

    /// Simulates the definition, and compares its response times with the recorded ones.
    ///
    /// # Errors
    /// If the definition cannot be simulated.
    pub fn judge(&self, config: &Config) -> Result<Vec<Resemblance>, LearnError> {
        judge::judge(self, config)
    }
}
