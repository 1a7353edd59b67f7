//! JSON, written by `sonic-rs`.

use super::{Format, JsonLines};
use serde::Serialize;

/// JSON on one line, written by `sonic-rs`, which uses SIMD instructions to escape strings.
///
/// Text and integers are written as by [`Json`](crate::Json); the digits of floats may differ.
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
