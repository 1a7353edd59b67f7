//! JSON by `sonic-rs`.

use super::{Format, JsonLines};
use serde::Serialize;

/// JSON on one line, by `sonic-rs`, which escapes strings a register at a time.
///
/// Text and integers come out as from [`Json`](crate::Json); floats may be spelled differently.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sonic;

impl Format for Sonic {
    const NAME: &'static str = "sonic";
    const TERMINATOR: &'static [u8] = b"\n";
    type Error = sonic_rs::Error;

    #[inline]
    fn encode<T: Serialize + ?Sized>(
        &self,
        value: &T,
        buffer: &mut Vec<u8>,
    ) -> Result<(), sonic_rs::Error> {
        sonic_rs::to_writer(buffer, value)
    }
}

impl JsonLines for Sonic {}
