//! Asynchronous actors: one source, any executor.
//!
//! Actors are written over [`AsyncContext`] or as an [`Actor`], a [`Scenario`] is where a run of them
//! begins, and [`run()`] runs it on an [`Executor`]: in deterministic virtual time, on tokio, on a
//! pool of threads, or with an OS thread for each actor.
//!
//! ```
//! use corsair::{AsyncContext, Config, Event, Executor, Message, RunError, Scenario, run};
//!
//! #[derive(Message)]
//! struct Number(u32);
//!
//! /// Sends itself a number.
//! struct Echo;
//!
//! impl Scenario<Number> for Echo {
//!     async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
//!         let me = cx.me();
//!         cx.send(me, Number(7));
//!         let event = cx.recv().await;
//!         assert!(matches!(event, Event::Message { body: Number(7), .. }));
//!     }
//! }
//!
//! for executor in [Executor::Virtual, Executor::Tokio, Executor::Pool, Executor::Threads] {
//!     let report = run(executor, &Config::default(), Echo)?;
//!     assert_eq!(report.delivered(), 1);
//! }
//! # Ok::<(), RunError>(())
//! ```
//!
//! [`edge`] and [`fork_join`] know nothing of actors: bounded connections with abort, and parallel
//! recursion.
#![warn(missing_docs)]

mod contract;
mod determinism;
pub mod edge;
mod experiment;
pub mod fork_join;
pub mod fsm;
mod memory;
pub mod network;
mod results;
mod run;
mod supervision;
mod sync;
mod virtual_time;
mod wall;

/// The examples of the manual are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

// So that derive macros, which name the crate, also work within it.
extern crate self as corsair;

pub use contract::{
    Actor, ActorTotals, Addr, AddrRange, AskError, AsyncContext, Config, ConfigError, Context, Cut,
    DeadLetters, Distribution, DistributionError, Envelope, Event, Executor, Fingerprint, Flow,
    Gauge, Histogram, Interval, KindCount, Latency, Message, Outcome, Overflow, PanicReport,
    Panics, Probes, Progress, Random, Reason, Report, RunError, Scenario, Select, Series, SpanId,
    Spawn, Ticket, Time, TimerHandle, Token, Waiting, WaitingActor, drive,
};
#[doc(hidden)]
pub use contract::{Own, Sample};
pub use determinism::{Difference, NotDeterministic, check_determinism};
pub use experiment::{Estimate, Experiment, Replication, ReplicationError, measure, replicate};
pub use memory::{available_memory, file_memory, peak_memory, resident_memory};
pub use results::Results;
pub use run::{run, run_on, run_on_wall_clock, simulate};
pub use supervision::{RestartPolicy, Strategy, Supervised, Supervisor, Then, restarting};
pub use virtual_time::{InjectError, InspectError, Simulation, most_workers};
