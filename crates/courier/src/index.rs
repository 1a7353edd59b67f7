//! The index of the log: users, sessions, conversations, messages, and a queue per user.
//!
//! One thread applies the log's entries in order, within a transaction that stays open until a reader needs its
//! changes. A crash loses nothing: the log has every entry, and the index stores the position of the last applied
//! entry in the same transaction as its effects. Messages and queues are written to their tables in batches, after
//! their posters were answered and before the transaction ends. A *checkpoint* writes everything to disk from
//! time to time; the log may then remove earlier entries.
//!
//! A reader sees every entry applied before its request: [`Index::read`] first commits the open transaction.

mod apply;
mod builder;
mod chunk;
mod compaction;
mod conversations;
mod copy;
mod expiry;
mod handle;
mod keys;
mod lines;
mod lookalikes;
mod machine;
mod opened;
mod overlay;
mod pending;
mod queue;
mod read;
mod replacement;
mod replay;
mod requests;
mod row;
mod sessions;
mod tables;
#[cfg(test)]
mod tests;
mod upgrade;
mod writer;

pub(crate) use builder::IndexBuilder;
pub(crate) use chunk::Chunk;
pub(crate) use compaction::IndexSize;
pub(crate) use handle::{Index, IndexError};
pub(crate) use lines::Line;
pub(crate) use opened::{CACHE, FILE, OpenedIndex};
pub(crate) use read::{QueuePage, Stock};
pub(crate) use requests::Effects;
