//! The documents that one worker has encoded. They are adjacent in one buffer, and the end of each document is stored.
//!
//! A part contains only complete documents: a value that fails leaves no bytes behind.

use crate::{Format, MarshalError};
use serde::Serialize;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The documents of one worker.
///
/// Parts are adjacent in memory, and every write changes the length of a buffer. Each part has two cache lines for
/// itself, because processors fetch cache lines in pairs. So workers do not share cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerBuffer {
    bytes: Vec<u8>,
    /// The end of each document in `bytes`, including its terminator.
    ends: Vec<usize>,
    /// The blocks of values that this worker took: the number of each block, and the entry of its
    /// first value in `ends`. Only strategies that place whole blocks use this field.
    pub(crate) blocks: Vec<(usize, usize)>,
}

impl WorkerBuffer {
    /// Removes the documents and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.blocks.clear();
    }

    /// Returns the number of documents.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of bytes of all documents, including terminators.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes of memory that the part has allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.blocks.capacity() * size_of::<(usize, usize)>()
    }

    /// Returns the start of the document `entry` in the buffer.
    fn start(&self, entry: usize) -> usize {
        match entry {
            0 => 0,
            _ => self.ends[entry - 1],
        }
    }

    /// Returns the document `entry`, without its terminator of `terminator` bytes.
    #[inline]
    pub(crate) fn document(&self, entry: usize, terminator: usize) -> &[u8] {
        &self.bytes[self.start(entry)..self.ends[entry] - terminator]
    }

    /// Returns the documents from `entry` up to `end`, including their terminators.
    pub(crate) fn run(&self, entry: usize, end: usize) -> &[u8] {
        &self.bytes[self.start(entry)..self.start(end)]
    }

    /// Appends the document of `value`, whose index in the slice is `index`.
    ///
    /// # Errors
    ///
    /// If the format returns an error, or the `Serialize` implementation panics. The part is then
    /// unchanged.
    #[inline]
    pub(crate) fn encode<F: Format, T: Serialize>(
        &mut self,
        format: &F,
        index: usize,
        value: &T,
    ) -> Result<(), MarshalError> {
        let start = self.bytes.len();
        let bytes = &mut self.bytes;
        // A panic can leave an incomplete document, which is truncated below.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let encoded = format.encode(value, bytes);
            assert!(
                bytes.len() >= start,
                "the format {} removed bytes that were already in the buffer",
                F::NAME
            );
            encoded
        }));
        match outcome {
            Ok(Ok(())) => {
                bytes.extend_from_slice(F::TERMINATOR);
                self.ends.push(bytes.len());
                Ok(())
            }
            Ok(Err(error)) => {
                bytes.truncate(start);
                Err(MarshalError::Encode {
                    index,
                    format: F::NAME,
                    source: Box::new(error),
                })
            }
            Err(payload) => {
                bytes.truncate(start);
                Err(MarshalError::Panicked {
                    index,
                    message: message(payload),
                })
            }
        }
    }
}

/// Returns the message of a panic.
#[cold]
fn message(payload: Box<dyn Any + Send>) -> String {
    let payload = match payload.downcast::<String>() {
        Ok(message) => return *message,
        Err(payload) => payload,
    };
    match payload.downcast::<&'static str>() {
        Ok(message) => (*message).to_owned(),
        Err(payload) => {
            // The payload is leaked, because its destructor is foreign code and might panic again, outside of the
            // guard.
            std::mem::forget(payload);
            "its payload is not text".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use serde::Serializer;
    use serde::ser::{Error as _, SerializeSeq};

    /// A value that writes some bytes and then fails or panics.
    struct Broken {
        panics: bool,
    }

    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut sequence = serializer.serialize_seq(None)?;
            sequence.serialize_element("some bytes")?;
            if self.panics {
                std::panic::panic_any(17_u8);
            }
            Err(S::Error::custom("refused"))
        }
    }

    #[test]
    fn a_value_that_fails_leaves_no_byte_behind() {
        let mut part = WorkerBuffer::default();
        part.encode(&Json, 0, &1).unwrap();
        for panics in [false, true] {
            let error = part.encode(&Json, 1, &Broken { panics }).unwrap_err();
            assert_eq!(error.index(), Some(1));
            assert_eq!((part.len(), part.size()), (1, 2));
        }
        part.encode(&Json, 1, &2).unwrap();
        assert_eq!(part.run(0, 2), b"1\n2\n");
        assert_eq!(part.document(1, 1), b"2");
    }

    /// A format that violates the rules of [`Format`].
    struct Truncating;

    impl Format for Truncating {
        const NAME: &'static str = "truncating";
        type Error = std::fmt::Error;

        fn encode<T: Serialize + ?Sized>(
            &self,
            _: &T,
            buffer: &mut Vec<u8>,
        ) -> Result<(), std::fmt::Error> {
            match buffer.is_empty() {
                true => buffer.push(b'x'),
                false => buffer.clear(),
            }
            Ok(())
        }
    }

    #[test]
    fn a_format_that_takes_bytes_away_is_an_error() {
        let mut part = WorkerBuffer::default();
        part.encode(&Truncating, 0, &()).unwrap();
        let error = part.encode(&Truncating, 1, &()).unwrap_err();
        assert!(error.to_string().contains("truncating"), "{error}");
    }
}
