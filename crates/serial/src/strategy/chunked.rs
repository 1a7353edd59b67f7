//! Contiguous ranges of values, encoded into one growing buffer per worker: the recommended strategy.
//!
//! The steps of a run:
//!
//! 1. The caller encodes the first values itself, until they have [`SAMPLE`] bytes. If there are only few values, the
//!    run ends here. Otherwise, the number of remaining bytes can now be estimated.
//! 2. If the remaining bytes are too few to wake a thread for, the caller encodes them alone: such a run costs as much
//!    as [`Serial`](super::Serial).
//! 3. Otherwise it wakes the pool. The caller gets one share of the values and the pool gets the rest. Each takes
//!    blocks of consecutive values from the front of its own share until the share is empty, and then from the other
//!    share. A block has about [`BLOCK`] bytes: small enough that all workers end at nearly the same time, and large
//!    enough that the cost of taking a block does not matter. A thread that wakes late finds less work, and no worker
//!    waits for it in the meantime. In successive runs, most values are encoded on the same core, whose caches may
//!    still contain them, and most documents are adjacent to their predecessors.
//!
//! The caller is one of the workers: a call for two workers wakes one thread. The caller never waits for a thread that
//! has not woken, and spins while threads finish their last block. If the caller slept, it would be woken on the core
//! of the thread that finished last. The next run would then begin with two workers on one core, where the scheduler
//! leaves them for a millisecond, as long as the whole run. Threads of the pool also spin for some time before they
//! sleep, so that the next of several consecutive runs finds them awake.

use super::Strategy;
use crate::batch::ONE_BLOCK;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use corsair::fork_join::{Pool, for_each};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of bytes that the caller encodes before it decides whether to wake the pool: some microseconds of work.
const SAMPLE: usize = 8 << 10;

/// The approximate size of a block in bytes.
const BLOCK: usize = 16 << 10;

/// The estimated number of remaining bytes from which on the pool is woken.
const WORTH_WAKING: usize = 160 << 10;

/// Encodes ranges of values, each worker into its own buffer, on a pool that lives across runs.
///
/// For a few values this strategy is never slower than [`Serial`](crate::Serial), because it encodes them in the same
/// way. In steady state, the number of allocations of a run has a fixed bound, for any number of values and workers.
///
/// ```
/// use corsair_serial::{Batch, Chunked, Json, Strategy};
///
/// let chunked = Chunked::new(2)?;
/// let mut batch = Batch::new();
/// chunked.marshal_into(&Json, &[("ahoy", 1), ("aye", 2)], &mut batch)?;
/// assert_eq!(batch.get(1), Some(&br#"["aye",2]"#[..]));
/// # Ok::<(), corsair_serial::MarshalError>(())
/// ```
#[derive(Debug)]
pub struct Chunked {
    /// The workers other than the caller; `None` if the caller is the only one.
    pool: Option<Pool>,
    worth_waking: usize,
}

impl Chunked {
    /// Creates a strategy with `workers` workers: the caller, and a pool of threads that end when the strategy is
    /// dropped. Zero means one.
    ///
    /// # Errors
    ///
    /// [`MarshalError::Workers`] if the system cannot create the threads.
    pub fn new(workers: usize) -> Result<Chunked, MarshalError> {
        let pool = match workers.saturating_sub(1) {
            0 => None,
            helpers => Some(Pool::new(helpers).map_err(|source| MarshalError::Workers {
                workers: helpers,
                source: Box::new(source),
            })?),
        };
        Ok(Chunked {
            pool,
            worth_waking: WORTH_WAKING,
        })
    }

    /// Sets the estimated number of encoded bytes from which on the pool is woken.
    ///
    /// The default, 160 KiB, suits formats that write about a gigabyte per second. Set it lower for values that take
    /// long in relation to their encoded size. With zero, the pool is woken for any values that are left after the
    /// first ones.
    pub fn worth_waking(mut self, bytes: usize) -> Chunked {
        self.worth_waking = bytes;
        self
    }
}

impl Strategy for Chunked {
    fn name(&self) -> &'static str {
        "chunked"
    }

    fn workers(&self) -> usize {
        1 + self.pool.as_ref().map_or(0, Pool::workers)
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        let (parts, _) = batch.open(self.workers(), 0);
        let run = Run {
            format,
            values,
            first: FirstFailure::new(),
        };
        let shift = run.divide(self, parts);
        let outcome = run.first.into_result();
        if outcome.is_ok() {
            batch.place_blocks(blocks(values.len(), shift));
        }
        batch.settle(outcome, values.len(), shift)
    }
}

/// Returns the number of blocks of `1 << shift` values that `len` values fill; the last block may be smaller.
fn blocks(len: usize, shift: u32) -> usize {
    len.div_ceil(1 << shift)
}

/// The blocks of a run; each free worker takes the next one.
struct Range {
    next: AtomicUsize,
    end: usize,
}

impl Range {
    fn new(start: usize, end: usize) -> Range {
        Range {
            next: AtomicUsize::new(start),
            end,
        }
    }
}

impl Iterator for &Range {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let block = self.next.fetch_add(1, Ordering::Relaxed);
        (block < self.end).then_some(block)
    }
}

/// The data that the workers of one run share.
struct Run<'a, F, T> {
    format: &'a F,
    values: &'a [T],
    first: FirstFailure,
}

impl<F: Format, T: Serialize + Sync> Run<'_, F, T> {
    /// Encodes all values, with the pool if this is faster. Returns the shift by which the parts have numbered their
    /// blocks. A failure is recorded in `first`.
    fn divide(&self, chunked: &Chunked, parts: &mut [WorkerBuffer]) -> u32 {
        let (mine, theirs) = parts.split_at_mut(1);
        let mine = &mut mine[0];
        let sampled = self.sample(mine);
        let left = self.values.len() - sampled;
        let per_value = (mine.size() / sampled.max(1)).max(1);
        let Some(pool) = &chunked.pool else {
            return self.alone(mine, sampled);
        };
        // All values are encoded, or the sample failed.
        if left == 0
            || !self.first.is_after(sampled)
            || left.saturating_mul(per_value) < chunked.worth_waking
        {
            return self.alone(mine, sampled);
        }

        let shift = shift(per_value, left, chunked.workers());
        // Completes the block in which the sample stopped, so that the other workers begin at a block.
        let begun = blocks(sampled, shift);
        let end = self.values.len().min(begun << shift);
        if !self.range(mine, sampled, end) {
            return shift;
        }
        mine.blocks
            .extend((0..begun).map(|block| (block, block << shift)));

        let count = blocks(self.values.len(), shift);
        let helpers = theirs.len().min(count - begun);
        let middle = begun + (count - begun) / (1 + helpers);
        let (front, back) = (Range::new(begun, middle), Range::new(middle, count));
        if helpers == 0 {
            self.work(mine, [&front, &back], shift);
            return shift;
        }
        pool.join_with_caller(
            || self.work(mine, [&front, &back], shift),
            || match &mut theirs[..helpers] {
                [part] => self.work(part, [&back, &front], shift),
                // One job for the whole pool; each thread takes blocks from it when it wakes.
                parts => pool.install(|| {
                    for_each(parts, |part| self.work(part, [&back, &front], shift));
                }),
            },
        );
        shift
    }

    /// Encodes the first values until there are enough bytes for an estimate, and returns their number.
    fn sample(&self, part: &mut WorkerBuffer) -> usize {
        let mut sampled = 0;
        while sampled < self.values.len() && part.size() < SAMPLE {
            if !self.range(part, sampled, sampled + 1) {
                break;
            }
            sampled += 1;
        }
        sampled
    }

    /// Encodes the values from `start` on. Records these values and all earlier values as one block.
    fn alone(&self, part: &mut WorkerBuffer, start: usize) -> u32 {
        self.range(part, start, self.values.len());
        // A slice without values has no block.
        part.blocks
            .extend((!self.values.is_empty()).then_some((0, 0)));
        ONE_BLOCK
    }

    /// Takes blocks of both ranges in turn until no block is left, or until a value before the next block has failed.
    ///
    /// If a worker stops because of a failure, all blocks before the failure are still encoded: this worker has
    /// completed them, or they belong to the range on which other workers are still working.
    fn work(&self, part: &mut WorkerBuffer, ranges: [&Range; 2], shift: u32) {
        for block in ranges.into_iter().flatten() {
            let start = block << shift;
            part.blocks.push((block, part.len()));
            let end = self.values.len().min(start + (1 << shift));
            if !self.range(part, start, end) {
                return;
            }
        }
    }

    /// Encodes the values from `start` to `end`; returns `false` if one of them, or a value before them, has failed.
    fn range(&self, part: &mut WorkerBuffer, start: usize, end: usize) -> bool {
        for (index, value) in (start..end).zip(&self.values[start..end]) {
            if !self.first.is_after(index) {
                return false;
            }
            if let Err(error) = part.encode(self.format, index, value) {
                self.first.record(error);
                return false;
            }
        }
        true
    }
}

/// Returns the shift of blocks that have about [`BLOCK`] bytes, but with several blocks for each worker.
fn shift(per_value: usize, left: usize, workers: usize) -> u32 {
    let by_size = BLOCK / per_value;
    let by_share = left / (workers * 4);
    by_size.min(by_share).max(1).ilog2()
}
