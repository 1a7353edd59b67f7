//! Writes a batch with vectored writes, directly from the buffers into which the documents were encoded.

use super::Batch;
use crate::{Format, JsonLines};
use std::io::{self, IoSlice, Write};

/// The number of slices in one call. Systems accept at most 1,024; with fewer, the array is cheap
/// to clear.
const SLICES: usize = 256;

impl<F: Format> Batch<F> {
    /// Writes all documents in order, each with the terminator of its format.
    ///
    /// Adjacent documents are written as one slice, so a run by one worker is a single write.
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer; some documents may have been written by then.
    pub fn write_to(&self, writer: impl Write) -> io::Result<()> {
        let mut gather = Gather::new(writer);
        for run in self.runs() {
            gather.push(run)?;
        }
        gather.flush()
    }
}

impl<F: JsonLines> Batch<F> {
    /// Writes one document per line: newline-delimited JSON.
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer; some lines may have been written by then.
    pub fn write_ndjson(&self, writer: impl Write) -> io::Result<()> {
        self.write_to(writer)
    }

    /// Writes one JSON array with all documents, `[…,…]`.
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer; a part of the array may have been written by then.
    pub fn write_json_array(&self, writer: impl Write) -> io::Result<()> {
        let mut gather = Gather::new(writer);
        let mut before: &[u8] = b"[";
        for document in self {
            gather.push(before)?;
            gather.push(document)?;
            before = b",";
        }
        gather.push(if self.is_empty() { b"[]" } else { b"]" })?;
        gather.flush()
    }
}

/// Collects slices and writes many of them with one call.
struct Gather<'a, W> {
    writer: W,
    slices: [IoSlice<'a>; SLICES],
    len: usize,
}

impl<'a, W: Write> Gather<'a, W> {
    fn new(writer: W) -> Gather<'a, W> {
        Gather {
            writer,
            slices: [IoSlice::new(&[]); SLICES],
            len: 0,
        }
    }

    fn push(&mut self, bytes: &'a [u8]) -> io::Result<()> {
        if self.len == SLICES {
            self.flush()?;
        }
        self.slices[self.len] = IoSlice::new(bytes);
        self.len += 1;
        Ok(())
    }

    /// Writes all collected slices, in as many calls as the writer needs.
    fn flush(&mut self) -> io::Result<()> {
        let mut rest = &mut self.slices[..self.len];
        // Skips empty slices at the front: a writer would return 0 for them, which means that it is full.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.writer.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.len = 0;
        Ok(())
    }
}
