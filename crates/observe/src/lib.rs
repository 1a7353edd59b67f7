//! What comes out of a run: graphs, flows and histograms, in the formats that other tools read.
//!
//! Actors tell a [`Recorder`] what happens, on any thread. An [`Observer`] brings what they tell
//! into one order and writes it during the run:
//!
//! * in virtual time the output is the same, byte for byte, for any number of workers: what is
//!   told is ordered by (time, actor, order of telling), up to the window that is being run;
//! * memory is bounded: who tells faster than can be written waits, and nothing is dropped;
//! * a file appears under its name when it is whole, or not at all;
//! * what cannot be written or reached is an error before the run begins.
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
pub use flows::SeenSpan;
pub use node::{Container, Exit, Node, Population};
pub use observed::{Loss, Observed, WrittenFile};
pub use observer::Observer;
pub use places::{Places, PlacesError, REGIONS, ZONES};
pub use recorder::{Clock, Metric, Payload, Recorder, ServiceId};
pub use relay::{Relay, RelayError, Source};
pub use replacement::{FileError, Replacement};
pub use resumed::{Resumed, SavedOutputs};
pub use settings::{FlowFormat, GraphFormat, Guess, Neo4j, Settings, SpanSink};
pub use times::ServiceTimes;
pub use times::table::percentile_table;
pub use trace::{Exchange, Status, TraceContext};
