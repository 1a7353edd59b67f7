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
//! that finds its mailbox full goes there in its turn all the same, and is owed to its sender
//! until the receiver takes it out. At its next wait the sender first waits until it is owed
//! nothing; in that time it still takes out what arrives for itself. So an actor that waits,
//! for whatever reason, always empties its own mailbox, and actors that flood each other cannot
//! block each other for good. The price is that what a body sends without ever waiting, and what a
//! blocked actor takes out, is held in memory without a bound.

mod alarm;
mod boxed;
mod cell;
mod clock;
mod clock_waiter;
mod context;
mod counters;
pub(crate) mod launch;
mod life;
mod limit;
mod mailbox;
mod mailbox_entry;
mod overflow_count;
mod pool;
mod records;
mod run_handle;
mod runtime;
mod stack;
mod start_queue;
mod summary;
mod system;
mod table;
mod thread_slot;
mod threads;
mod timers;
#[cfg(feature = "tokio")]
mod tokio;
mod unfinished;
mod wakes;
