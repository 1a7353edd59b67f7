//! Asynchronous actors: one source, any executor.
#![warn(missing_docs)]

mod contract;
pub mod edge;
pub mod fork_join;
pub mod fsm;
mod run;
mod sync;
mod virtual_time;
mod wall;

// So that derive macros, which name the crate, also work within it.
extern crate self as corsair;

pub use contract::{
    Actor, ActorTotals, Addr, AddrRange, AskError, AsyncContext, Config, ConfigError, Context, Cut,
    DeadLetters, Envelope, Event, Executor, Fingerprint, Flow, KindCount, Latency, Message,
    Outcome, Overflow, PanicReport, Progress, Random, Reason, Report, RunError, Scenario, SpanId,
    Spawn, Ticket, Time, Token, Waiting, WaitingActor, drive, peak_memory,
};
pub use run::{run, run_on};
