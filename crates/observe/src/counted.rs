//! A writer that computes the length and the checksum of its output.

use std::io::{self, IoSlice, Write};

/// A writer that counts the bytes that pass through it.
#[derive(Debug)]
pub(crate) struct CountingWriter<W> {
    out: W,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl<W: Write> CountingWriter<W> {
    pub(crate) fn new(out: W) -> CountingWriter<W> {
        CountingWriter {
            out,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// Flushes the writer, and returns the number of bytes and their CRC-32.
    pub(crate) fn so_far(&mut self) -> io::Result<(u64, u32)> {
        self.out.flush()?;
        Ok((self.bytes, self.sum.clone().finalize()))
    }

    /// Returns the number of bytes written through this writer.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn get(&self) -> &W {
        &self.out
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.out.write_vectored(slices)?;
        self.bytes += written as u64;
        let mut left = written;
        for slice in slices {
            let part = left.min(slice.len());
            self.sum.update(&slice[..part]);
            left -= part;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
