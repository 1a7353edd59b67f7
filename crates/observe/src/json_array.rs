//! Writes a JSON array in batches.

use corsair_serial::{Batch, Format, Serial, Strategy};
use serde::Serialize;
use std::io::{self, IoSlice, Write};

/// The separators between the elements of a JSON array. The text before each element except the first begins with a
/// comma; the text after each element may be a line feed.
pub(crate) trait Element: Sync {
    /// The text before each element; the first element omits the comma.
    const BEFORE: &'static [u8];
    /// The text after each element.
    const AFTER: &'static [u8];
}

/// The format of elements with their separators.
#[derive(Debug)]
pub(crate) struct Elements<E>(std::marker::PhantomData<fn() -> E>);

impl<E> Elements<E> {
    pub(crate) const fn new() -> Elements<E> {
        Elements(std::marker::PhantomData)
    }
}

impl<E: Element> Format for Elements<E> {
    const NAME: &'static str = "json";
    const TERMINATOR: &'static [u8] = E::AFTER;
    type Error = serde_json::Error;

    #[inline]
    fn encode<T: Serialize + ?Sized>(
        &self,
        value: &T,
        buffer: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        buffer.extend_from_slice(E::BEFORE);
        serde_json::to_writer(buffer, value)
    }
}

/// Writes the elements of an array, batch after batch.
#[derive(Debug)]
pub(crate) struct Array<E: Element> {
    batch: Batch<Elements<E>>,
    begun: bool,
}

impl<E: Element> Array<E> {
    pub(crate) fn new() -> Array<E> {
        Array {
            batch: Batch::new(),
            begun: false,
        }
    }

    /// Continues an array that already has elements.
    pub(crate) fn set_begun(&mut self) {
        self.begun = true;
    }

    /// Returns true if the array has elements.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Starts another array.
    pub(crate) fn restart(&mut self) {
        self.begun = false;
    }

    /// Serializes values and appends them to the array.
    ///
    /// # Errors
    /// Returns the errors of the writer.
    pub(crate) fn write<T: Serialize + Sync>(
        &mut self,
        strategy: &Marshal,
        values: &[T],
        out: &mut impl Write,
    ) -> io::Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        strategy
            .marshal_into(&Elements::new(), values, &mut self.batch)
            .map_err(io::Error::other)?;
        let skipped = std::mem::replace(&mut self.begun, true);
        self.batch.write_to(WithoutFirst { out, skipped })
    }
}

/// The strategy for serializing values: on the writing thread, or on several threads.
#[derive(Debug, Default)]
pub(crate) enum Marshal {
    #[default]
    Alone,
    Together(corsair_serial::Chunked),
}

impl Marshal {
    /// Creates a strategy with this number of threads. If the system cannot start them, values are serialized on one
    /// thread, which takes longer.
    pub(crate) fn with(workers: usize) -> Marshal {
        match workers {
            0 | 1 => Marshal::Alone,
            _ => corsair_serial::Chunked::new(workers).map_or(Marshal::Alone, Marshal::Together),
        }
    }

    pub(crate) fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), corsair_serial::MarshalError> {
        match self {
            Marshal::Alone => Serial.marshal_into(format, values, batch),
            Marshal::Together(chunked) => chunked.marshal_into(format, values, batch),
        }
    }
}

/// A writer that skips the first byte: the comma before the first element.
struct WithoutFirst<'a, W> {
    out: &'a mut W,
    skipped: bool,
}

impl<W: Write> Write for WithoutFirst<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.skipped || bytes.is_empty() {
            return self.out.write(bytes);
        }
        self.skipped = true;
        Ok(1)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.skipped {
            return self.out.write_vectored(slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        first.map_or(Ok(0), |slice| self.write(slice))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line;
    impl Element for Line {
        const BEFORE: &'static [u8] = b",";
        const AFTER: &'static [u8] = b"\n";
    }

    #[test]
    fn commas_stand_between_elements_of_all_batches() {
        for strategy in [Marshal::Alone, Marshal::with(2)] {
            let mut array = Array::<Line>::new();
            let mut out = b"[\n".to_vec();
            for values in [&[][..], &[1], &[2, 3], &[], &[4]] {
                array.write(&strategy, values, &mut out).unwrap();
            }
            assert_eq!(String::from_utf8(out).unwrap(), "[\n1\n,2\n,3\n,4\n");
        }
    }
}
