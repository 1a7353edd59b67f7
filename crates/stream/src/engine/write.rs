//! Writes: lines become batches, which are sent on the edges of the tasks that take them.
//!
//! First the lines are parsed. Then the write waits until all tasks that take its points have capacity. An engine with
//! a [log](super::write_log) then logs the write. Finally all points are passed to all tasks at once, without waiting.
//! So no task gets points of a refused write, and a cancelled write has passed either all points to all tasks, or none.

use super::entrance::Entrance;
use super::write_log::{self, Submission};
use super::{Engine, EngineState};
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Builder, Origin};
use crate::line::{LineError, Precision};
use rustc_hash::FxHashMap;
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

/// Lines as blocks, with the tasks that take them.
#[derive(Debug)]
pub(crate) struct ParsedWrite {
    blocks: Vec<(Arc<Block>, Vec<Arc<Entrance>>)>,
    /// Tasks that take the points of all measurements, in the order of their lines.
    takers_of_all: Vec<Arc<Entrance>>,
    /// Rows of blocks, in the order of lines; empty if no task takes all points.
    order: Vec<(usize, Rows)>,
    written: WriteReport,
    /// The generation of the routes with which the write was parsed.
    generation: u64,
    /// The log entry; empty without a log.
    pub(super) entry: Vec<u8>,
    /// The source of the lines, and the position at which the source continues.
    pub(super) source: Option<(Arc<str>, i64)>,
}

impl ParsedWrite {
    /// Waits until tasks that drop points have processed all earlier writes.
    pub(super) async fn wait_for_dropping_tasks(&self) {
        let takers = self.blocks.iter().flat_map(|(_, takers)| takers);
        for taker in takers.chain(&self.takers_of_all) {
            taker.processed_if_dropping().await;
        }
    }

    /// Keeps only the entrances for which `takes` is true.
    pub(super) fn retain(&mut self, takes: impl Fn(&Entrance) -> bool) {
        let lists = self.blocks.iter_mut().map(|(_, takers)| takers);
        for takers in lists.chain([&mut self.takers_of_all]) {
            takers.retain(|taker| takes(taker));
        }
    }
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
        let parsed = self.parse(to, lines, |_| true);
        self.deliver(parsed.expect("it may take as much memory as it needs"))
            .await
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
                log.submit(Submission {
                    parsed,
                    permit,
                    reply,
                });
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

    /// Parses lines into blocks. `grow` reserves memory in addition to that of the lines. Returns `None` if the memory
    /// was refused.
    pub(crate) fn parse(
        &self,
        to: &Write,
        lines: &[u8],
        mut grow: impl FnMut(usize) -> bool,
    ) -> Option<ParsedWrite> {
        let logged = self.shared.write_log.get().is_some();
        if logged && !grow(lines.len()) {
            return None;
        }
        let now = now(to.precision);
        let mut parsed = self.parse_at(to, lines, now, grow)?;
        if logged && !parsed.blocks.is_empty() {
            let policy = to.policy.as_deref();
            let policy = policy.unwrap_or(&self.shared.options.default_policy);
            let generation = parsed.generation;
            parsed.entry =
                write_log::entry(&to.database, policy, to.precision, now, generation, lines);
        }
        Some(parsed)
    }

    /// Parses like [`parse`](Engine::parse), but for the log: points without a timestamp get the time `now`.
    pub(super) fn parse_at(
        &self,
        to: &Write,
        lines: &[u8],
        now: i64,
        grow: impl FnMut(usize) -> bool,
    ) -> Option<ParsedWrite> {
        let shared = &*self.shared;
        let routes = shared.routes();
        let policy = to.policy.clone();
        let policy = policy.unwrap_or_else(|| shared.options.default_policy.as_str().into());
        let takers_of_all = routes.look_up(&to.database, &policy, None);
        let mut takers: FxHashMap<Arc<str>, Vec<Arc<Entrance>>> = FxHashMap::default();
        let wanted = |measurement: &str| {
            let measurement: Arc<str> = measurement.into();
            let found = routes.look_up(&to.database, &policy, Some(&measurement));
            if found.is_empty() && takers_of_all.is_empty() {
                return None;
            }
            takers.insert(measurement.clone(), found);
            Some(Arc::new(Origin {
                database: to.database.clone(),
                policy: policy.clone(),
                measurement,
            }))
        };
        let mut written = WriteReport::default();
        let on_bad = |error: LineError| {
            written.rejected += 1;
            if written.errors.len() < WriteReport::MOST_ERRORS {
                written.errors.push(BadLine {
                    code: error.code(),
                    line: error.line,
                    message: error.to_string(),
                });
            }
        };
        let mut builder = Builder::new()
            .max_line(shared.options.max_line)
            .numbered(!takers_of_all.is_empty());
        let (fed, all) = builder.feed_while(lines, to.precision, now, wanted, on_bad, grow);
        if !all {
            return None;
        }
        written.accepted = fed.accepted();
        let (blocks, numbers): (Vec<Block>, Vec<Vec<u32>>) =
            builder.finish_numbered().into_iter().unzip();
        let order = match takers_of_all.is_empty() {
            true => Vec::new(),
            false => in_order(&numbers),
        };
        let blocks = blocks.into_iter().map(|block| {
            let takers = takers.get(&block.origin.measurement);
            let takers = takers.cloned().unwrap_or_default();
            (Arc::new(block), takers)
        });
        Some(ParsedWrite {
            blocks: blocks.collect(),
            takers_of_all,
            order,
            written,
            generation: routes.generation,
            entry: Vec::new(),
            source: None,
        })
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

/// Returns the rows of blocks in the order of their lines, as consecutive ranges. `numbers` has the line number of
/// each row; no number occurs twice.
fn in_order(numbers: &[Vec<u32>]) -> Vec<(usize, Rows)> {
    let lines = numbers.iter().map(Vec::len).sum();
    let mut block_of_line = vec![0u32; lines];
    for (block, numbers) in numbers.iter().enumerate() {
        for &number in numbers {
            block_of_line[number as usize] = block as u32;
        }
    }
    let mut next_row = vec![0u32; numbers.len()];
    let mut order = Vec::new();
    for run in block_of_line.chunk_by(|a, b| a == b) {
        let block = run[0] as usize;
        let from = next_row[block];
        next_row[block] += run.len() as u32;
        order.push((block, Rows::Range(from, next_row[block])));
    }
    order
}

/// Returns the nanoseconds since 1970, rounded to the precision.
fn now(precision: Precision) -> i64 {
    let now = crate::now::now();
    now - now.rem_euclid(precision.unit())
}
