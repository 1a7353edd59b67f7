//! Writes: lines become batches, which are sent on the edges of the tasks that take them.
//!
//! First the lines are parsed. Then the write waits until all tasks that take its points have capacity. An engine with
//! a [log](super::write_log) then logs the write. Finally all points are passed to all tasks at once, without waiting.
//! So no task gets points of a refused write, and a cancelled write has passed either all points to all tasks, or none.

use super::entrance::Entrance;
use super::parse::ParsedWrite;
use super::write_log::Submission;
use super::{Engine, EngineState};
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::Block;
use crate::line::Precision;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

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

/// The longest pause between two checks of capacity.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// Parses lines and passes their points to all tasks that take them. Waits until tasks whose overflow policy is to
    /// block have capacity. Points of one measurement keep the order of the lines. A task that takes every measurement
    /// gets all points in the order of the lines. Points without a timestamp get the time of the write. Bad lines are
    /// left out.
    ///
    /// If the future is dropped before it is ready, the points have been given to all of these tasks, or to none.
    ///
    /// # Errors
    /// See [`WriteError`]; in that case nothing was accepted.
    pub async fn write(&self, to: &Write, lines: &[u8]) -> Result<WriteReport, WriteError> {
        if self.shared.closed.load(Ordering::SeqCst) {
            return Err(WriteError::Closed);
        }
        self.deliver(self.parse_plain(to, lines)).await
    }

    /// Waits until all tasks that take the points have capacity, logs the points, and gives them to the tasks.
    pub(crate) async fn deliver(&self, parsed: ParsedWrite) -> Result<WriteReport, WriteError> {
        let shared = &*self.shared;
        let Ok(permit) = shared.writes.clone().try_acquire_owned() else {
            return Err(match shared.closed.load(Ordering::SeqCst) {
                true => WriteError::Closed,
                false => WriteError::Busy {
                    limit: shared.options.writes.get(),
                },
            });
        };
        shared.wait_for_capacity(&parsed).await?;
        let written = match shared.write_log.get() {
            // Points that no task wants change no state.
            Some(log) if !parsed.blocks.is_empty() => {
                let (reply, replied) = oneshot::channel();
                let submission = Submission {
                    parsed,
                    permit,
                    reply,
                };
                log.submit(shared, submission);
                replied.await.unwrap_or(Err(WriteError::Closed))?
            }
            _ => {
                let _order = shared.order.read();
                shared.give(parsed)
            }
        };
        let count = |counter: &AtomicU64, more: usize| {
            counter.fetch_add(more as u64, Ordering::Relaxed);
        };
        count(&shared.written, 1);
        count(&shared.accepted, written.accepted);
        count(&shared.rejected, written.rejected);
        Ok(written)
    }
}

impl EngineState {
    /// Gives the points to all tasks that take them, without waiting. The caller holds `order`.
    pub(super) fn give(&self, parsed: ParsedWrite) -> WriteReport {
        let group = Arc::new(Group::default());
        let pending = self.pending_writes.begin();
        let give = |block: &Arc<Block>, rows: Rows, bytes: usize, takers: &[Arc<Entrance>]| {
            for taker in takers {
                let flow = Flow::Points(Batch {
                    block: block.clone(),
                    rows: rows.clone(),
                    group: group.clone(),
                });
                taker.give(flow, pending.clone(), bytes, &self.io);
            }
        };
        for (block, takers) in &parsed.blocks {
            let rows = Rows::Range(0, block.rows() as u32);
            give(block, rows, block.bytes(), takers);
        }
        for (place, rows) in parsed.order {
            let block = &parsed.blocks[place].0;
            let bytes = block.bytes() / block.rows().max(1) * rows.len();
            give(block, rows, bytes, &parsed.takers_of_all);
        }
        if let Some((source, next)) = parsed.source {
            self.sources.lock().insert(source.to_string(), next);
        }
        parsed.written
    }

    /// Waits until the queue of every task that gets points has capacity.
    pub(super) async fn wait_for_capacity(&self, parsed: &ParsedWrite) -> Result<(), WriteError> {
        let deadline = Instant::now().checked_add(self.options.patience);
        let mut pause = Duration::from_millis(1);
        loop {
            if self.closed.load(Ordering::SeqCst) {
                return Err(WriteError::Closed);
            }
            let takers = parsed.blocks.iter().flat_map(|(_, takers)| takers);
            let all = match parsed.blocks.is_empty() {
                true => &[][..],
                false => &parsed.takers_of_all,
            };
            let Some(full) = takers.chain(all).find(|taker| !taker.has_room()) else {
                return Ok(());
            };
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let task = full.task.clone();
                return Err(WriteError::Full { task });
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
