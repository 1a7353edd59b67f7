//! The executors of wall-clock time: [`tokio`], [`threads`] and [`pool`].
//!
//! The executors share everything except two things, which a [`Runtime`] defines: the thread that polls an actor's
//! body, and the way in which its timers wake the actor. All of them guarantee:
//! - messages of one sender to one receiver are handled in the order of sending;
//! - a mailbox holds at most [`Config::mailbox`] messages, and [`Config::overflow`] is the policy for further messages;
//! - a panic ends only the actor that panicked, unless it is the root;
//! - when the root returns, every other body is dropped before the run reports;
//! - a run in which no further event can occur ends as a deadlock. An actor that also waits for something outside of
//!   the run keeps the run going.
//!
//! **Back-pressure** ([`Overflow::Block`](crate::Overflow::Block)). A send never waits. A message for a full mailbox is
//! still added to the mailbox, in order, and counts as *owed* by its sender until the receiver takes it out. At its
//! next wait the sender first waits until it owes no messages; during that wait it still empties its own mailbox. So a
//! waiting actor always empties its mailbox, whatever it waits for, and actors that flood each other cannot block each
//! other forever. The drawback is that memory is unbounded for messages that a body sends without waiting, and for
//! messages that a blocked actor takes out.

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
mod remains;
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
mod wakes;
