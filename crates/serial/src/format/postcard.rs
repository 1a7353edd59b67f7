//! The compact binary form, by `postcard`.

use super::Format;
use postcard::ser_flavors::Flavor;
use serde::Serialize;

/// A compact binary format, written by `postcard`. Small numbers take few bytes, and field names are omitted.
///
/// Documents contain neither their length nor a terminator; the [`Batch`](crate::Batch) knows where each document ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl Format for Postcard {
    const NAME: &'static str = "postcard";
    type Error = postcard::Error;

    #[inline]
    fn encode<T: Serialize + ?Sized>(
        &self,
        value: &T,
        buffer: &mut Vec<u8>,
    ) -> postcard::Result<()> {
        postcard::serialize_with_flavor(value, Append(buffer))
    }
}

/// A `postcard` flavour that appends to a borrowed buffer. The flavours in `postcard` own their buffers.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.push(data);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
