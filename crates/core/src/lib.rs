//! Asynchronous actors: the same source runs on every executor.
//!
//! An actor is an `async fn` over an [`AsyncContext`], or a handler that implements [`Actor`]. A run starts with a
//! [`Scenario`], and [`run()`] runs the scenario on an [`Executor`]: in deterministic virtual time, on tokio, on a pool
//! of threads, or with an OS thread for each actor.
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
//! Two modules are independent of actors: [`edge`] has bounded channels with abort, and [`fork_join`] has parallel
//! recursion.
//!
//! # Features
//! | | |
//! |---|---|
//! | `threads` (default) | the executors `Threads` and `Pool` |
//! | `tokio` (default) | the executor `Tokio` |
//! | `edge` (default) | the module [`edge`] |
//! | `fork-join` (default) | the module [`fork_join`] |
//! | `fsm` (default) | the module [`fsm`] |
//! | `rand_core` | an actor's random numbers as a generator of the crate `rand_core` |
//! | `serde` | a paused run shows an actor's state as a JSON value |
//! | `tracing` | a layer for tests: events of `tracing` with virtual time and actor |
//!
//! Without default features only virtual time is available, which also runs on `wasm32-unknown-unknown`, with one
//! worker. The minimum supported Rust version is the `rust-version` of the manifest; raising it is a minor release.
#![deny(missing_docs)]

#[cfg(feature = "serde")]
pub mod cluster;
mod contract;
mod determinism;
#[cfg(feature = "edge")]
pub mod edge;
mod experiment;
#[cfg(feature = "fork-join")]
pub mod fork_join;
#[cfg(feature = "fsm")]
pub mod fsm;
#[cfg(all(test, not(any(loom, miri))))]
mod imports;
mod memory;
pub mod network;
pub mod picture;
mod results;
#[cfg(feature = "rand_core")]
mod rng;
mod run;
mod supervision;
mod sync;
#[cfg(feature = "tracing")]
pub mod traced;
#[allow(
    unsafe_code,
    reason = "actors and events lie in arenas that the engine and contexts reach by turns"
)]
mod virtual_time;
#[cfg(feature = "threads")]
mod wall;

/// Includes the README, so that its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

// Allows derive macros, which name the crate, to work within it.
extern crate self as corsair;

pub use contract::{
    Actor, ActorTotals, Addr, AddrRange, AskError, AsyncContext, BucketNumber, Buckets,
    CancelToken, Config, ConfigError, Context, DeadLetters, Distribution, DistributionError,
    Envelope, Event, Executor, Fingerprint, Flow, Gauge, Histogram, Interval, KindCount, Latency,
    Message, Outcome, Overflow, PanicReport, Panics, Probes, Progress, Random, Reason, ReplyHandle,
    Report, RunError, Scenario, Script, Select, Series, SpanId, Spawn, Time, TimerHandle, Token,
    Wait, WaitReason, WaitingActor, drive, perform,
};
#[cfg(feature = "serde")]
pub use contract::{EachKind, Kind, Plain, ProcessState};
#[doc(hidden)]
pub use contract::{LibraryWait, Sample};
pub use determinism::{Difference, NotDeterministic, check_determinism};
pub use experiment::{Estimate, Experiment, Replication, ReplicationError, measure, replicate};
pub use memory::{available_memory, file_memory, peak_memory, resident_memory};
pub use results::Results;
#[cfg(feature = "rand_core")]
pub use rng::StreamRng;
#[cfg(feature = "tokio")]
pub use run::run_on;
pub use run::{run, run_on_wall_clock, simulate, simulate_script};
pub use supervision::{FinalAction, RestartPolicy, Strategy, Supervised, Supervisor, restarting};
pub use virtual_time::{InjectError, InspectError, Simulation, most_workers, worthwhile_workers};
#[cfg(feature = "serde")]
pub use virtual_time::{Kinds, Snapshot, SnapshotError, StoredPart};
