//! The result of a run: documents in the order of the values. They stay in the buffers to which the workers wrote them.
//!
//! Documents are found by block. A block is a number of consecutive values (a power of two) that one worker has encoded
//! one after the other, so their documents are adjacent in the worker's buffer. For each block, the batch stores the
//! part (the buffer of a worker) that contains the block, and the entry at which the block begins.

mod write;

use crate::worker_buffer::WorkerBuffer;
use crate::{Format, MarshalError};
use std::fmt;
use std::marker::PhantomData;

/// The shift of a batch that consists of a single block.
pub(crate) const ONE_BLOCK: u32 = usize::BITS - 1;

/// The position of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placement {
    pub(crate) part: usize,
    /// The entry of the first value of the block.
    pub(crate) entry: usize,
}

/// One encoded document per value, in the order of the values.
///
/// The batch owns the documents. If the batch is passed to [`marshal_into`](crate::Strategy::marshal_into) again, new
/// documents replace them, and the memory is reused. A new batch is empty.
pub struct Batch<F> {
    parts: Vec<WorkerBuffer>,
    placements: Vec<Placement>,
    /// The binary logarithm of the number of values in a block.
    shift: u32,
    len: usize,
    format: PhantomData<fn() -> F>,
}

impl<F: Format> Batch<F> {
    /// Creates an empty batch. No memory is allocated before the batch is filled.
    pub const fn new() -> Batch<F> {
        Batch {
            parts: Vec::new(),
            placements: Vec::new(),
            shift: ONE_BLOCK,
            len: 0,
            format: PhantomData,
        }
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the batch has no documents.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the document of the value at `index`; `None` if there is no such value.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        (index < self.len).then(|| {
            let block = self.placements[index >> self.shift];
            let entry = block.entry + (index & ((1 << self.shift) - 1));
            self.parts[block.part].document(entry, F::TERMINATOR.len())
        })
    }

    /// Iterates over the documents in the order of the values.
    pub fn iter(&self) -> Documents<'_, F> {
        Documents {
            batch: self,
            next: 0,
            end: self.len,
        }
    }

    /// Returns the number of bytes of all documents, without terminators.
    pub fn size(&self) -> usize {
        let parts: usize = self.parts.iter().map(WorkerBuffer::size).sum();
        parts - self.len * F::TERMINATOR.len()
    }

    /// Returns the number of bytes of memory that the batch keeps for the next run.
    pub fn capacity(&self) -> usize {
        self.parts.iter().map(WorkerBuffer::capacity).sum::<usize>()
            + self.placements.capacity() * size_of::<Placement>()
    }

    /// Removes the documents and keeps the memory for the next run.
    pub fn clear(&mut self) {
        self.len = 0;
        self.parts.iter_mut().for_each(WorkerBuffer::clear);
    }

    /// Prepares the batch for a run, with a part for each of `parts` writers and a placement for each of `blocks`
    /// blocks. The batch is empty until [`settle`](Batch::settle) is called.
    pub(crate) fn open(
        &mut self,
        parts: usize,
        blocks: usize,
    ) -> (&mut [WorkerBuffer], &mut [Placement]) {
        self.clear();
        if self.parts.len() < parts {
            self.parts.resize_with(parts, WorkerBuffer::default);
        }
        self.placements.clear();
        self.placements.resize(blocks, Placement::default());
        (&mut self.parts[..parts], &mut self.placements)
    }

    /// Records the positions of the `blocks` blocks that the parts have encoded.
    pub(crate) fn place_blocks(&mut self, blocks: usize) {
        self.placements.clear();
        self.placements.resize(blocks, Placement::default());
        for (part, written) in self.parts.iter().enumerate() {
            for &(block, entry) in &written.blocks {
                self.placements[block] = Placement { part, entry };
            }
        }
    }

    /// Ends a run over `len` values that were placed in blocks of `1 << shift`. If the run succeeded, the documents
    /// become available; if it failed, all of them are dropped.
    pub(crate) fn settle(
        &mut self,
        outcome: Result<(), MarshalError>,
        len: usize,
        shift: u32,
    ) -> Result<(), MarshalError> {
        match outcome {
            Ok(()) => {
                self.shift = shift;
                self.len = len;
                Ok(())
            }
            Err(error) => {
                self.clear();
                Err(error)
            }
        }
    }

    /// Returns the bytes of consecutive documents with their terminators, in as few pieces as possible.
    fn runs(&self) -> impl Iterator<Item = &[u8]> {
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= self.len {
                return None;
            }
            let first = self.placements[next >> self.shift];
            let mut entry = first.entry;
            // Consecutive blocks in one part form one piece.
            while next < self.len {
                let block = self.placements[next >> self.shift];
                if (block.part, block.entry) != (first.part, entry) {
                    break;
                }
                let values = (self.len - next).min(1 << self.shift);
                entry += values;
                next += values;
            }
            Some(self.parts[first.part].run(first.entry, entry))
        })
    }
}

impl<F: Format> Default for Batch<F> {
    fn default() -> Batch<F> {
        Batch::new()
    }
}

impl<F: Format> fmt::Debug for Batch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("format", &F::NAME)
            .field("len", &self.len)
            .field("size", &self.size())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

impl<'a, F: Format> IntoIterator for &'a Batch<F> {
    type Item = &'a [u8];
    type IntoIter = Documents<'a, F>;

    fn into_iter(self) -> Documents<'a, F> {
        self.iter()
    }
}

/// The documents of a [`Batch`], in order.
#[derive(Debug)]
pub struct Documents<'a, F: Format> {
    batch: &'a Batch<F>,
    next: usize,
    end: usize,
}

impl<'a, F: Format> Iterator for Documents<'a, F> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next == self.end {
            return None;
        }
        self.next += 1;
        self.batch.get(self.next - 1)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<F: Format> DoubleEndedIterator for Documents<'_, F> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        self.batch.get(self.end)
    }
}

impl<F: Format> ExactSizeIterator for Documents<'_, F> {}
