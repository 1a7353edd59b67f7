//! The encoding of a document: a [`Format`] appends one value to a buffer.

mod json;
mod postcard;
#[cfg(feature = "sonic")]
mod sonic;

pub use self::json::Json;
pub use self::postcard::Postcard;
#[cfg(feature = "sonic")]
pub use self::sonic::Sonic;

use serde::Serialize;
use std::error::Error;

/// An encoding of values, one document per value.
///
/// ```
/// use corsair_serial::{Format, Serial, Strategy};
/// use serde::Serialize;
///
/// /// JSON, indented.
/// struct Pretty;
///
/// impl Format for Pretty {
///     const NAME: &'static str = "pretty";
///     type Error = serde_json::Error;
///
///     fn encode<T: Serialize + ?Sized>(&self, value: &T, buffer: &mut Vec<u8>) -> serde_json::Result<()> {
///         serde_json::to_writer_pretty(buffer, value)
///     }
/// }
///
/// let batch = Serial.marshal(&Pretty, &[[1], [2]])?;
/// assert_eq!(batch.get(1), Some(&b"[\n  2\n]"[..]));
/// # Ok::<(), corsair_serial::MarshalError>(())
/// ```
pub trait Format: Sync {
    /// The name of the format in errors and tables.
    const NAME: &'static str;

    /// The bytes that follow every document in the buffers of a [`Batch`](crate::Batch), so that documents can be
    /// written without a copy. They are not part of the document.
    const TERMINATOR: &'static [u8] = b"";

    /// The reason why a value cannot be encoded.
    type Error: Error + Send + Sync + 'static;

    /// Appends the document of `value` to `buffer`, and leaves the existing contents unchanged.
    ///
    /// The appended bytes depend only on the value, never on the contents of the buffer.
    ///
    /// # Errors
    ///
    /// If the format cannot express the value, or its `Serialize` implementation returns an error. The caller removes
    /// the bytes that were appended.
    fn encode<T: Serialize + ?Sized>(
        &self,
        value: &T,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Self::Error>;
}

/// A [`Format`] whose documents are JSON texts without a line break, and whose terminator is one line feed;
/// [`write_ndjson`](crate::Batch::write_ndjson) and [`write_json_array`](crate::Batch::write_json_array) rely on this.
pub trait JsonLines: Format {}
