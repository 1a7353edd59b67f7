//! Parses a write: its lines become blocks, and the tasks that take the points are looked up.

use super::entrance::Entrance;
use super::report::{BadLine, Write, WriteReport};
use super::routes::Routes;
use crate::batch::Rows;
use crate::block::{Block, Builder, Origin};
use crate::line::{LineError, Precision, complete};
use flate2::read::MultiGzDecoder;
use rustc_hash::FxHashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// The lines of a write, as they were received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lines<'a> {
    Plain(&'a [u8]),
    Gzip(&'a [u8]),
}

/// Lines as blocks, with the tasks that take them.
#[derive(Debug, Default)]
pub(crate) struct ParsedWrite {
    pub(super) blocks: Vec<(Arc<Block>, Vec<Arc<Entrance>>)>,
    /// Tasks that take the points of all measurements, in the order of their lines.
    pub(super) takers_of_all: Vec<Arc<Entrance>>,
    /// Rows of blocks, in the order of lines; empty if no task takes all points.
    pub(super) order: Vec<(usize, Rows)>,
    pub(super) written: WriteReport,
    /// The generation of the routes with which the tasks were looked up.
    pub(super) generation: u64,
    /// The source of the lines, and the position at which the source continues.
    pub(super) source: Option<(Arc<str>, i64)>,
}

/// The reasons why lines cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    /// The memory for the points was refused.
    #[error("the memory for the points was refused")]
    Memory,
    /// The lines are not valid gzip.
    #[error("the lines are not valid gzip: {0}")]
    Gzip(io::Error),
    /// The unpacked lines are too long.
    #[error("the lines have more than {0} bytes after unpacking")]
    TooLarge(usize),
}

impl ParsedWrite {
    /// Waits until tasks that drop points have processed all earlier writes.
    pub(super) async fn wait_for_dropping_tasks(&self) {
        let takers = self.blocks.iter().flat_map(|(_, takers)| takers);
        for taker in takers.chain(&self.takers_of_all) {
            taker.processed_if_dropping().await;
        }
    }
}

/// A write of which a part was parsed.
pub(super) struct LineParser<'a> {
    to: &'a Write,
    policy: Arc<str>,
    routes: &'a Routes,
    takers_of_all: Vec<Arc<Entrance>>,
    takers: FxHashMap<Arc<str>, Vec<Arc<Entrance>>>,
    builder: Builder,
    written: WriteReport,
    now: i64,
    /// The number of lines that were parsed, if lines are numbered.
    lines: usize,
}

/// The number of bytes that are unpacked at once.
const PIECE: usize = 256 << 10;

impl<'a> LineParser<'a> {
    pub(super) fn new(
        to: &'a Write,
        policy: Arc<str>,
        routes: &'a Routes,
        max_line: usize,
    ) -> LineParser<'a> {
        let takers_of_all = routes.look_up(&to.database, &policy, None);
        let builder = Builder::new().max_line(max_line);
        LineParser {
            builder: builder.numbered(!takers_of_all.is_empty()),
            to,
            policy,
            routes,
            takers_of_all,
            takers: FxHashMap::default(),
            written: WriteReport::default(),
            now: now(to.precision),
            lines: 0,
        }
    }

    /// Parses complete lines; false if `grow` has refused memory.
    pub(super) fn feed(&mut self, text: &[u8], grow: impl FnMut(usize) -> bool) -> bool {
        let LineParser {
            to,
            policy,
            routes,
            takers_of_all,
            takers,
            builder,
            written,
            ..
        } = self;
        let wanted = |measurement: &str| {
            let measurement: Arc<str> = measurement.into();
            let found = routes.look_up(&to.database, policy, Some(&measurement));
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
        let before = self.lines;
        let on_bad = |mut error: LineError| {
            written.rejected += 1;
            if written.errors.len() < WriteReport::MOST_ERRORS {
                error.line += before;
                written.errors.push(BadLine {
                    code: error.code(),
                    line: error.line,
                    message: error.to_string(),
                });
            }
        };
        let (fed, all) = builder.feed_while(text, to.precision, self.now, wanted, on_bad, grow);
        written.accepted += fed.accepted();
        all
    }

    /// Unpacks lines piece by piece, and parses them. At most a piece, or the longest line, is in memory
    /// unpacked.
    pub(super) fn feed_packed(
        &mut self,
        packed: &[u8],
        limit: usize,
        grow: &mut impl FnMut(usize) -> bool,
    ) -> Result<(), ParseError> {
        let mut decoder = MultiGzDecoder::new(packed);
        let mut text: Vec<u8> = Vec::new();
        let mut unpacked = 0;
        loop {
            // For a line longer than a piece, the buffer is doubled before each attempt.
            let wanted = PIECE.max(text.len());
            let more = (text.len() + wanted).saturating_sub(text.capacity());
            if more > 0 {
                if !grow(more) {
                    return Err(ParseError::Memory);
                }
                text.reserve_exact(wanted);
            }
            let mut piece = decoder.by_ref().take(wanted as u64);
            let read = piece.read_to_end(&mut text).map_err(ParseError::Gzip)?;
            unpacked += read;
            if unpacked > limit {
                return Err(ParseError::TooLarge(limit));
            }
            let end = match read {
                0 => text.len(),
                _ => complete(&text, usize::MAX),
            };
            if !self.feed(&text[..end], &mut *grow) {
                return Err(ParseError::Memory);
            }
            if read == 0 {
                return Ok(());
            }
            self.lines += memchr::memchr_iter(b'\n', &text[..end]).count();
            text.drain(..end);
        }
    }

    pub(super) fn finish(mut self) -> ParsedWrite {
        let (blocks, numbers): (Vec<Block>, Vec<Vec<u32>>) =
            self.builder.finish_numbered().into_iter().unzip();
        let order = match self.takers_of_all.is_empty() {
            true => Vec::new(),
            false => in_order(&numbers),
        };
        let blocks = blocks.into_iter().map(|block| {
            let takers = self.takers.get(&block.origin.measurement);
            let takers = takers.cloned().unwrap_or_default();
            (Arc::new(block), takers)
        });
        ParsedWrite {
            blocks: blocks.collect(),
            takers_of_all: self.takers_of_all,
            order,
            written: self.written,
            generation: self.routes.generation,
            source: None,
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
