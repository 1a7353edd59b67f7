//! Writes: lines become batches, which are sent on the edges of the tasks that take them.
//!
//! First the lines are parsed. Then the write waits until all tasks that take its points have capacity. An engine with
//! a [log](super::write_log) then logs the write. Finally all points are passed to all tasks at once, without waiting.
//! So no task gets points of a refused write, and a cancelled write has passed either all points to all tasks, or none.

use super::Engine;
use super::entrance::Entrance;
use super::parse::{LineParser, Lines, ParseError, ParsedWrite};
use super::report::{Write, WriteError, WriteReport};
use super::state::EngineState;
use super::write_log::Submission;
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

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

    /// Parses plain lines that may take as much memory as they need.
    pub(super) fn parse_plain(&self, to: &Write, lines: &[u8]) -> ParsedWrite {
        let parsed = self.parse(to, Lines::Plain(lines), |_| true);
        parsed.expect("plain lines are parsed if there is memory")
    }

    /// Parses lines into blocks. `grow` reserves memory in addition to that of the lines.
    ///
    /// # Errors
    /// The memory was refused, or packed lines cannot be unpacked.
    pub(crate) fn parse(
        &self,
        to: &Write,
        lines: Lines<'_>,
        mut grow: impl FnMut(usize) -> bool,
    ) -> Result<ParsedWrite, ParseError> {
        let limit = self.shared.options.max_body;
        let routes = self.shared.routes();
        let policy = to.policy.clone();
        let policy = policy.unwrap_or_else(|| self.shared.options.default_policy.as_str().into());
        let max_line = self.shared.options.max_line;
        let mut parser = LineParser::new(to, policy, &routes, max_line);
        match lines {
            Lines::Plain(lines) => {
                if !parser.feed(lines, &mut grow) {
                    return Err(ParseError::Memory);
                }
            }
            Lines::Gzip(packed) => parser.feed_packed(packed, limit, &mut grow)?,
        }
        Ok(parser.finish())
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
