//! Asynchronous actors: one source, any executor.
#![warn(missing_docs)]

mod actor;
mod address;
mod config;
mod context;
pub mod edge;
mod error;
mod event;
pub mod fork_join;
pub mod fsm;
mod message;
mod random;
mod report;
mod run;
mod spawn;
mod sync;
mod time;
mod virtual_time;
mod wall;

pub use actor::{Actor, Flow, drive};
pub use address::{Addr, AddrRange};
pub use config::{Config, ConfigError, Cut, DeadLetters, Executor, Latency, Overflow, Progress};
pub use context::{AskError, AsyncContext, Context, Waiting};
pub use error::RunError;
pub use event::{Envelope, Event, Reason, SpanId, Ticket, Token};
pub use message::Message;
pub use random::Random;
pub use report::{ActorTotals, KindCount, Outcome, PanicReport, Report, WaitingActor, peak_memory};
pub use run::{Scenario, run, run_on};
pub use spawn::Spawn;
pub use time::Time;
