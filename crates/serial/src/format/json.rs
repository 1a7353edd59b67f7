//! JSON, written by `serde_json`.

use super::{Format, JsonLines};
use serde::Serialize;

/// JSON on one line, written by `serde_json`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Format for Json {
    const NAME: &'static str = "json";
    const TERMINATOR: &'static [u8] = b"\n";
    type Error = serde_json::Error;

    #[inline]
    fn encode<T: Serialize + ?Sized>(
        &self,
        value: &T,
        buffer: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        serde_json::to_writer(buffer, value)
    }
}

impl JsonLines for Json {}
