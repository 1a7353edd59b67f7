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

pub use contract::{
    Actor, ActorTotals, Addr, AddrRange, AskError, AsyncContext, Config, ConfigError, Context, Cut,
    DeadLetters, Envelope, Event, Executor, Flow, KindCount, Latency, Message, Outcome, Overflow,
    PanicReport, Progress, Random, Reason, Report, RunError, Scenario, SpanId, Spawn, Ticket, Time,
    Token, Waiting, WaitingActor, drive, peak_memory,
};
pub use run::{run, run_on};
