//! The contract between actors and executors: the methods of an actor, its events, and the configuration and
//! report of a run. It does not depend on any executor; every executor implements it.

mod actor;
mod address;
mod async_context;
mod buckets;
pub(crate) mod config;
mod context;
mod distribution;
mod error;
mod event;
mod fingerprint;
#[cfg(feature = "serde")]
mod kind;
mod message;
#[cfg(feature = "serde")]
mod plain;
mod probes;
pub(crate) mod random;
pub(crate) mod report;
mod scenario;
mod script;
mod select;
pub(crate) mod spawn;
mod sum;
pub(crate) mod time;
mod waiting;

pub use actor::{Actor, Flow, drive};
pub use address::{Addr, AddrRange};
pub use async_context::AsyncContext;
pub use buckets::{BucketNumber, Buckets};
pub use config::{
    CancelToken, Config, ConfigError, DeadLetters, Executor, Latency, Overflow, Panics, Progress,
};
pub use context::Context;
/// Implements the trait [`Kind`](trait@Kind) for a state that is plain data.
#[cfg(feature = "serde")]
pub use corsair_derive::Kind;
/// Implements the trait [`Message`](trait@Message); its documentation describes the attributes.
pub use corsair_derive::Message;
/// Implements the trait [`Plain`](trait@Plain) for a struct or an enum of plain fields.
#[cfg(feature = "serde")]
pub use corsair_derive::Plain;
pub use distribution::{Distribution, DistributionError};
pub(crate) use distribution::{normal_quantile, seconds};
pub use error::RunError;
pub use event::{Envelope, Event, Reason, ReplyHandle, SpanId, TimerHandle, Token};
pub use fingerprint::Fingerprint;
#[cfg(feature = "serde")]
pub use kind::{EachKind, Kind, ProcessState};
pub use message::Message;
#[cfg(feature = "serde")]
pub use plain::Plain;
pub use probes::{Gauge, Histogram, Interval, Probes, Sample, Series};
pub use random::Random;
pub use report::{ActorTotals, KindCount, Outcome, PanicReport, Report, WaitingActor};
pub use scenario::Scenario;
pub use script::{Script, Wait, perform};
pub use select::Select;
pub use spawn::Spawn;
pub use time::Time;
pub use waiting::{AskError, LibraryWait, WaitReason};
