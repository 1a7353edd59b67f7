//! Contiguous ranges into one growing buffer per worker: the strategy to use.
//!
//! How a run goes:
//!
//! 1. The caller encodes the first values itself, until it has [`SAMPLE`] bytes. Few values end
//!    here. It then knows about how many bytes are left.
//! 2. If they are not worth waking a thread for, the caller goes on alone: such a run costs what
//!    [`Serial`](super::Serial) costs.
//! 3. Else it calls the pool. Caller and pool take blocks of consecutive values from one counter
//!    until none is left. A block is about [`BLOCK`] bytes: short enough that all end at nearly the
//!    same time, long enough that the counter does not matter. A thread that wakes late finds less
//!    to do, and nobody waits for it in the meantime.
//!
//! The caller is one of the workers: a call for two workers wakes one thread, not two. When nothing
//! is left to take it waits awake for those that finish their last block. A caller that slept would
//! be woken on the core of the thread that finished, and the next run would begin with two workers
//! on one core, where the scheduler leaves them for a millisecond: the length of the whole run.

use super::{Strategy, pooled};
use crate::batch::ONE_BLOCK;
use crate::failure::FirstFailure;
use crate::part::Part;
use crate::{Batch, Format, MarshalError};
use rayon::ThreadPool;
use rayon::prelude::*;
use serde::Serialize;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Bytes that the caller encodes before it decides: some microseconds of work.
const SAMPLE: usize = 8 << 10;

/// Bytes of a block, about.
const BLOCK: usize = 16 << 10;

/// Bytes that must be left, by estimate, for the pool to be called.
const WORTH_WAKING: usize = 160 << 10;

/// How long a caller that has nothing left to do waits awake: several blocks.
const PATIENCE: Duration = Duration::from_micros(100);

/// Ranges of values, each worker into a buffer of its own, on a pool that lives across runs.
///
/// Never slower than [`Serial`](crate::Serial) for a handful of values, because it then does the
/// same. In steady state a run allocates at most a fixed number of times, however many values and
/// workers there are.
#[derive(Debug)]
pub struct Chunked {
    /// The workers besides the caller; `None` if the caller is the only one.
    pool: Option<ThreadPool>,
    worth_waking: usize,
    /// How long the caller waits awake: not at all if it would keep a worker from its core.
    patience: Duration,
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
            helpers => Some(pooled::pool(helpers)?),
        };
        let cores = available_parallelism().map_or(1, usize::from);
        Ok(Chunked {
            pool,
            worth_waking: WORTH_WAKING,
            patience: match workers <= cores {
                true => PATIENCE,
                false => Duration::ZERO,
            },
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
        1 + self
            .pool
            .as_ref()
            .map_or(0, ThreadPool::current_num_threads)
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

/// What the workers of one run share.
struct Run<'a, F, T> {
    format: &'a F,
    values: &'a [T],
    first: FirstFailure,
}

impl<F: Format, T: Serialize + Sync> Run<'_, F, T> {
    /// Encodes everything, with the pool if it is worth it, and says by which shift the parts have
    /// noted their blocks. A failure is in `first`.
    fn divide(&self, chunked: &Chunked, parts: &mut [Part]) -> u32 {
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
        if helpers == 0 {
            self.work(mine, &AtomicUsize::new(begun), shift);
            return shift;
        }
        let (next, ended) = (AtomicUsize::new(begun), AtomicBool::new(false));
        pool.in_place_scope(|scope| {
            // One job for the whole pool, which divides it as its threads wake.
            scope.spawn(|_| {
                theirs[..helpers]
                    .par_iter_mut()
                    .with_max_len(1)
                    .for_each(|part| self.work(part, &next, shift));
                ended.store(true, Ordering::Release);
            });
            self.work(mine, &next, shift);
            wait_awake(&ended, chunked.patience);
        });
        shift
    }

    /// Encodes the first values, until there are enough bytes to judge by, and says how many.
    fn sample(&self, part: &mut Part) -> usize {
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
    fn alone(&self, part: &mut Part, start: usize) -> u32 {
        self.range(part, start, self.values.len());
        // No value, no block.
        part.blocks
            .extend((!self.values.is_empty()).then_some((0, 0)));
        ONE_BLOCK
    }

    /// Takes blocks until none is left or one before them has failed.
    fn work(&self, part: &mut Part, next: &AtomicUsize, shift: u32) {
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let start = block << shift;
            if start >= self.values.len() {
                return;
            }
            part.blocks.push((block, part.len()));
            let end = self.values.len().min(start + (1 << shift));
            if !self.range(part, start, end) {
                return;
            }
        }
    }

    /// Encodes the values from `start` to `end`; `false` if one failed, here or before them.
    fn range(&self, part: &mut Part, start: usize, end: usize) -> bool {
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

/// Waits for the pool's job to end, for as long as `patience` lasts. The scope waits for the rest.
fn wait_awake(ended: &AtomicBool, patience: Duration) {
    if patience.is_zero() {
        return;
    }
    let until = Instant::now() + patience;
    while !ended.load(Ordering::Acquire) && Instant::now() < until {
        spin_loop();
    }
    // The job has only to tell the scope.
    (0..8).for_each(|_| spin_loop());
}

/// The shift of blocks of about [`BLOCK`] bytes, but several of them for each worker.
fn shift(per_value: usize, left: usize, workers: usize) -> u32 {
    let by_size = BLOCK / per_value;
    let by_share = left / (workers * 4);
    by_size.min(by_share).max(1).ilog2()
}
