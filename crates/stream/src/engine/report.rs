//! The destination of a write, its results, and the reasons why it was refused.

use crate::line::Precision;
use std::sync::Arc;

/// The destination and the timestamp precision of a write.
#[derive(Clone, Debug)]
pub struct Write {
    /// `db`
    pub database: Arc<str>,
    /// `rp`; `None`: [`EngineOptions::default_policy`](super::EngineOptions::default_policy).
    pub policy: Option<Arc<str>>,
    /// The unit of timestamps.
    pub precision: Precision,
}

/// The results of a write, by line.
#[derive(Clone, Debug, Default)]
pub struct WriteReport {
    /// The number of lines whose points reached all tasks that take them.
    pub accepted: usize,
    /// The number of invalid lines.
    pub rejected: usize,
    /// The errors of the first invalid lines, at most [`WriteReport::MOST_ERRORS`].
    pub errors: Vec<BadLine>,
}

impl WriteReport {
    /// The maximum number of bad lines that an answer describes.
    pub const MOST_ERRORS: usize = 100;
}

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// The kind of fault, for programs.
    pub code: &'static str,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The fault, its position and its remedy.
    pub message: String,
}

/// The reasons why a write was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Too many writes are in progress.
    #[error("{limit} writes are under way already; try again in a moment, or write larger batches")]
    Busy {
        /// The maximum number of concurrent writes.
        limit: usize,
    },
    /// A task that takes points of the write is too slow.
    #[error(
        "the task `{task}` does not keep up, and its queue is full; try again in a moment (nothing was written)"
    )]
    Full {
        /// The name of the task.
        task: Arc<str>,
    },
    /// The write-ahead log cannot be written.
    #[error("the write-ahead log cannot be written: {0}; nothing was written")]
    Log(Arc<str>),
    /// The engine is shutting down.
    #[error("the engine is shutting down and takes no more points")]
    Closed,
}
