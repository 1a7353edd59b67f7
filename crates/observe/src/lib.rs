//! The output of a run: graphs, flows and histograms, in formats that other tools read.
//!
//! Actors report events to a [`Recorder`], on any thread. An [`Observer`] orders the records and
//! writes them during the run:
//!
//! * in virtual time the output is the same, byte for byte, for any number of workers, because records are ordered by
//!   time, then by actor, then in the actor's own order;
//! * memory is bounded: an actor that records faster than the observer writes has to wait, and
//!   nothing is dropped;
//! * a file appears under its final name when it is complete, or not at all;
//! * a file that cannot be written, or a system that cannot be reached, is reported as an error
//!   before the run begins.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod addresses;
pub mod checkpoint;
mod counted;
pub mod diff;
mod directory;
mod error;
mod flows;
pub mod graph;
mod json_array;
#[cfg(feature = "metrics")]
mod metrics;
mod node;
mod observed;
mod observer;
mod places;
mod recorder;
mod relay;
#[cfg_attr(
    not(any(feature = "http", feature = "kafka")),
    allow(dead_code, reason = "used where flows are sent")
)]
mod remote;
mod replacement;
mod resumed;
pub mod run;
mod settings;
mod times;
mod trace;

pub use addresses::Addresses;
pub use error::ObserveError;
pub use flows::{FlowFormat, SeenSpan};
pub use node::{Container, Exit, Node, Population};
pub use observed::{Loss, OutputSummary, WrittenFile};
pub use observer::Observer;
pub use places::{Places, PlacesError, REGIONS, ZONES};
pub use recorder::{Clock, Metric, Payload, Recorder, ServiceId};
pub use relay::{Relay, RelayError, Source};
pub use replacement::{FileError, Replacement};
pub use resumed::{ResumePoint, SavedOutputs};
pub use settings::{GraphFormat, Guess, Neo4j, Settings, SpanSink};
pub use times::table::percentile_table;
pub use times::{ServiceTimes, TimesHistogram};
pub use trace::{Exchange, Status, TraceContext};
