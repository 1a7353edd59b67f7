//! Strict parsing of JSON objects.

use serde::de::{DeserializeOwned, Unexpected};

/// Parses a value of a struct from a JSON object. Serde would also accept an array of the fields.
pub(crate) fn object<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(serde::de::Error::invalid_type(
            Unexpected::Seq,
            &"a JSON object",
        ));
    }
    serde_json::from_slice(bytes)
}
