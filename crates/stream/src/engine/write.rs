//! A write: from bytes to batches on the edges of those who want them.

use super::routes::Entrance;
use super::{Engine, Shared};
use crate::batch::{Batch, Flow, Group};
use crate::block::{Block, Builder, Origin};
use crate::line::{LineError, Precision};
use crate::passage::Parcel;
use corsair::edge::TryCollectError;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where points are written to, and what their timestamps mean.
#[derive(Clone, Debug)]
pub struct Write {
    /// `db`
    pub database: Arc<str>,
    /// `rp`; `None`: [`EngineOptions::default_policy`](super::EngineOptions::default_policy).
    pub policy: Option<Arc<str>>,
    /// The unit of timestamps.
    pub precision: Precision,
}

/// What became of the lines of a write.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Lines whose points were given to all tasks that want them.
    pub accepted: usize,
    /// Lines that are none.
    pub rejected: usize,
    /// The first of them, at most [`Written::MOST_ERRORS`].
    pub errors: Vec<BadLine>,
}

impl Written {
    /// So many bad lines are told of.
    pub const MOST_ERRORS: usize = 100;
}

/// A line that is none.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// What is wrong, for programs.
    pub code: &'static str,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, where, and what to write instead.
    pub message: String,
}

/// Why a write was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Too many are under way.
    #[error("{limit} writes are under way already; try again in a moment, or write larger batches")]
    Busy {
        /// How many may be.
        limit: usize,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down and takes no more points")]
    Closed,
}

/// What a write has found out about the lines: blocks, and who takes them.
struct Parsed {
    blocks: Vec<(Block, Vec<Arc<Entrance>>)>,
    written: Written,
}

impl Engine {
    /// Parses lines and gives their points to all tasks that want them, waiting for those whose
    /// edges are full, if their policy is to block. Points of one measurement keep the order of the
    /// lines, and points without a timestamp get the time of the write. Bad lines are left out.
    ///
    /// The future must be run to its end: dropped half-way, some tasks have got the points and others
    /// have not.
    ///
    /// # Errors
    /// See [`WriteError`]; nothing was accepted then.
    pub async fn write(&self, to: &Write, lines: &[u8]) -> Result<Written, WriteError> {
        let shared = &*self.shared;
        let Ok(_permit) = shared.writes.try_acquire() else {
            return Err(match shared.closed.load(Ordering::SeqCst) {
                true => WriteError::Closed,
                false => WriteError::Busy {
                    limit: shared.options.writes.get(),
                },
            });
        };
        if shared.closed.load(Ordering::SeqCst) {
            return Err(WriteError::Closed);
        }
        let Parsed { blocks, written } = shared.parse(to, lines);
        let group = Arc::new(Group::default());
        let passage = shared.passages.begin();
        for (block, takers) in blocks {
            let parcel = Parcel {
                flow: Flow::Points(Batch::all(Arc::new(block), group.clone())),
                passage: passage.clone(),
            };
            give(&parcel, &takers).await;
        }
        shared.written.fetch_add(1, Ordering::Relaxed);
        let count = |lines: usize| lines as u64;
        shared
            .accepted
            .fetch_add(count(written.accepted), Ordering::Relaxed);
        shared
            .rejected
            .fetch_add(count(written.rejected), Ordering::Relaxed);
        Ok(written)
    }
}

impl Shared {
    fn parse(&self, to: &Write, lines: &[u8]) -> Parsed {
        let routes = self.routes();
        let policy = to.policy.clone();
        let policy = policy.unwrap_or_else(|| self.options.default_policy.as_str().into());
        let mut takers: FxHashMap<Arc<str>, Vec<Arc<Entrance>>> = FxHashMap::default();
        let wanted = |measurement: &str| {
            let measurement: Arc<str> = measurement.into();
            let mut found = Vec::new();
            routes.look_up([&to.database, &policy, &measurement], &mut found);
            if found.is_empty() {
                return None;
            }
            takers.insert(measurement.clone(), found);
            Some(Arc::new(Origin {
                database: to.database.clone(),
                policy: policy.clone(),
                measurement,
            }))
        };
        let mut written = Written::default();
        let on_bad = |error: LineError| {
            written.rejected += 1;
            if written.errors.len() < Written::MOST_ERRORS {
                written.errors.push(BadLine {
                    code: error.code(),
                    line: error.line,
                    message: error.to_string(),
                });
            }
        };
        let mut builder = Builder::new().max_line(self.options.max_line);
        let fed = builder.feed(lines, to.precision, now(), wanted, on_bad);
        written.accepted = fed.accepted();
        let blocks = builder.finish().into_iter().map(|block| {
            let takers = takers.get(&block.origin.measurement);
            let takers = takers.expect("a block is of a measurement that somebody wants");
            (block, takers.clone())
        });
        Parsed {
            blocks: blocks.collect(),
            written,
        }
    }
}

/// Puts a parcel on the first edges of those who want it. One that is full keeps none of the others
/// waiting.
async fn give(parcel: &Parcel, takers: &[Arc<Entrance>]) {
    let mut full = Vec::new();
    for taker in takers {
        // Whoever holds the lock waits for room.
        let Ok(mut edge) = taker.edge.try_lock() else {
            full.push(taker);
            continue;
        };
        if let Some(edge) = &mut *edge
            && let Err(TryCollectError::Full(_)) = edge.try_collect(parcel.clone())
        {
            full.push(taker);
        }
    }
    for taker in full {
        if let Some(edge) = &mut *taker.edge.lock().await {
            // An aborted edge belongs to a task that has failed or was deleted.
            let _ = edge.collect(parcel.clone()).await;
        }
    }
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
