//! The executors of wall-clock time: [`tokio`], [`threads`] and [`pool`].
//!
//! They share everything but where an actor's body is polled and how its timers wake it; those two
//! are a [`Runtime`]. What all of them guarantee:
//! - messages of one sender to one receiver are handled in the order of sending;
//! - a mailbox holds no more messages than [`Config::mailbox`], and [`Config::overflow`] says what
//!   happens to one more;
//! - a panic ends the actor that panicked and no other, unless it is the root;
//! - when the root returns, every other body is dropped before the run reports;
//! - a run in which nothing can happen any more ends as a deadlock. An actor that also waits for
//!   something outside of the run keeps the run going.
//!
//! **Back-pressure** ([`Overflow::Block`](crate::Overflow::Block)). A send never waits. A message
//! that finds no room goes to its mailbox in its turn all the same, and is owed to its sender
//! until the receiver takes it out. At its next wait the sender first waits until it is owed
//! nothing; while it does, it goes on to take out what arrives for itself. So an actor that waits,
//! for whatever reason, always empties its own mailbox, and actors that flood each other cannot
//! block each other for good. The price is that what a body sends without ever waiting, and what a
//! blocked actor takes out, is held in memory without a bound.

mod alarm;
mod cell;
mod clock;
mod context;
mod counters;
mod hold;
mod keeper;
mod letter;
mod life;
mod limit;
mod mailbox;
mod nursery;
mod owed;
mod place;
pub(crate) mod pool;
mod records;
mod runtime;
mod stack;
mod summary;
mod system;
mod table;
pub(crate) mod threads;
mod timers;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
mod unfinished;
mod wakes;

use crate::contract::{Config, Executor, Message, Report, RunError, Scenario};
use runtime::Runtime;
use std::sync::Arc;
use system::System;

/// Runs a scenario: starts the root, keeps the time until the run is over, ends everybody who is
/// left by `shut`, and reports.
fn launch<M: Message>(
    executor: Executor,
    config: &Config,
    runtime: Runtime,
    scenario: impl Scenario<M>,
    shut: impl FnOnce(&Arc<System<M>>),
) -> Result<Report, RunError> {
    let system = Arc::new(System::<M>::new(config, runtime));
    context::spawn_root(&system, scenario);
    system.clock.keep(
        |now| system.watch(now),
        |to, letter| system.post_delayed(to, letter),
    );
    let over = system.clock.now();
    shut(&system);
    summary::conclude(&system, executor, over)
}

/// The report of a run that could not begin.
fn nothing(executor: Executor, config: &Config) -> Box<Report> {
    Box::new(Report {
        executor,
        seed: config.seed,
        ..Report::default()
    })
}
