//! Contiguous ranges into one growing buffer per worker: the strategy to use.
//!
//! How a run goes:
//!
//! 1. The caller encodes the first values itself, until it has [`SAMPLE`] bytes. Few values end
//!    here. It then knows about how many bytes are left.
//! 2. If these bytes are too few to wake a thread for, the caller encodes them alone: such a run
//!    costs as much as [`Serial`](super::Serial).
//! 3. Else it calls the pool. The caller has a share of the values and the pool the rest; both take
//!    blocks of consecutive values from the front of their own until that is empty, and then from
//!    the other's. A block is about [`BLOCK`] bytes: short enough that all end at nearly the same
//!    time, long enough that taking it does not matter. A thread that wakes late finds less to do,
//!    and no worker waits for it in the meantime. From run to run most values meet the same core, whose
//!    caches may still have them, and most documents lie behind the one before.
//!
//! The caller is one of the workers: a call for two workers wakes one thread, not two. It never
//! waits for a thread that has not woken, and waits awake for those that finish their last block. A
//! caller that slept would be woken on the core of the thread that finished, and the next run would
//! begin with two workers on one core, where the scheduler leaves them for a millisecond: the length
//! of the whole run. Threads of the pool, too, look around for some time before they sleep, so that
//! the next of several runs in a row finds them awake.

use super::Strategy;
use crate::batch::ONE_BLOCK;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use corsair::fork_join::{Pool, for_each};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the caller encodes before it decides: some microseconds of work.
const SAMPLE: usize = 8 << 10;

/// Bytes of a block, about.
const BLOCK: usize = 16 << 10;

/// Bytes that must be left, by estimate, for the pool to be called.
const WORTH_WAKING: usize = 160 << 10;

/// Ranges of values, each worker into a buffer of its own, on a pool that lives across runs.
///
/// Never slower than [`Serial`](crate::Serial) for a handful of values, because it then does the
/// same. In steady state a run allocates at most a fixed number of times, however many values and
/// workers there are.
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
    /// The workers besides the caller; `None` if the caller is the only one.
    pool: Option<Pool>,
    worth_waking: usize,
}

impl Chunked {
    /// `workers` workers: the caller, and a pool of threads that end when this is dropped. Zero
    /// means one.
    ///
    /// # Errors
    ///
    /// [`MarshalError::Workers`] where the system refuses the threads.
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

    /// Calls the pool from this many encoded bytes on, by estimate from the first values.
    ///
    /// The default, 160 KiB, suits formats that write about a gigabyte a second. Set it lower for
    /// values that take long for the bytes they give; zero calls the pool for whatever is left
    /// after the first values.
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

/// How many blocks of `1 << shift` values `len` values fill, the last perhaps not quite.
fn blocks(len: usize, shift: u32) -> usize {
    len.div_ceil(1 << shift)
}

/// Blocks of a run, of which each free worker takes the next.
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

/// What the workers of one run share.
struct Run<'a, F, T> {
    format: &'a F,
    values: &'a [T],
    first: FirstFailure,
}

impl<F: Format, T: Serialize + Sync> Run<'_, F, T> {
    /// Encodes everything, with the pool if it is worth it, and says by which shift the parts have
    /// noted their blocks. A failure is in `first`.
    fn divide(&self, chunked: &Chunked, parts: &mut [WorkerBuffer]) -> u32 {
        let (mine, theirs) = parts.split_at_mut(1);
        let mine = &mut mine[0];
        let sampled = self.sample(mine);
        let left = self.values.len() - sampled;
        let per_value = (mine.size() / sampled.max(1)).max(1);
        let Some(pool) = &chunked.pool else {
            return self.alone(mine, sampled);
        };
        // All of it, if there is nothing left or the sample failed.
        if left == 0
            || !self.first.is_after(sampled)
            || left.saturating_mul(per_value) < chunked.worth_waking
        {
            return self.alone(mine, sampled);
        }

        let shift = shift(per_value, left, chunked.workers());
        // Ends the block in which the sample stopped, so that the others begin at a block.
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
        pool.beside(
            || self.work(mine, [&front, &back], shift),
            || match &mut theirs[..helpers] {
                [part] => self.work(part, [&back, &front], shift),
                // One job for the whole pool, which divides it as its threads wake.
                parts => pool.install(|| {
                    for_each(parts, |part| self.work(part, [&back, &front], shift));
                }),
            },
        );
        shift
    }

    /// Encodes the first values, until there are enough bytes to judge by, and says how many.
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

    /// Encodes the values from `start` on as one block, together with what is before them.
    fn alone(&self, part: &mut WorkerBuffer, start: usize) -> u32 {
        self.range(part, start, self.values.len());
        // No value, no block.
        part.blocks
            .extend((!self.values.is_empty()).then_some((0, 0)));
        ONE_BLOCK
    }

    /// Takes blocks of one range after the other until none is left or one before them has failed.
    ///
    /// A worker that stops because of a failure leaves no block behind that comes before it: that is of
    /// the range that it has worked through, or of the one on which the other side still works.
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

    /// Encodes the values from `start` to `end`; `false` if one failed, here or before them.
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

/// The shift of blocks of about [`BLOCK`] bytes, but several of them for each worker.
fn shift(per_value: usize, left: usize, workers: usize) -> u32 {
    let by_size = BLOCK / per_value;
    let by_share = left / (workers * 4);
    by_size.min(by_share).max(1).ilog2()
}
