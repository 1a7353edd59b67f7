//! Values as bytes, and back.

use crate::contract::Message;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why something cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum CodecError {
    /// An actor that was spawned by a closure, or has an async body.
    #[error("it is of no kind")]
    NoKind,
    /// A kind that is not known here.
    #[error("this program does not know the kind `{0}`")]
    UnknownKind(String),
    /// The bytes mean nothing.
    #[error("{0}")]
    Postcard(#[from] postcard::Error),
    /// What holds the bytes does not give them.
    #[error("{0}: {1}")]
    Unread(String, std::io::Error),
    /// They are others than were written.
    #[error("{0} is not what was written: a checksum or a length differs")]
    Changed(String),
    /// A number that stands for nothing.
    #[error("{0} is no {1}")]
    Number(u64, &'static str),
}

/// Bytes that are yet to be read.
pub(in super::super) type Input<'a> = &'a [u8];

struct Bytes<'a>(&'a mut Vec<u8>);

impl Flavor for Bytes<'_> {
    type Output = ();

    #[inline(always)]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Writes a value.
#[inline]
pub(in super::super) fn put<T: Serialize + ?Sized>(
    to: &mut Vec<u8>,
    value: &T,
) -> Result<(), CodecError> {
    Ok(postcard::serialize_with_flavor(value, Bytes(to))?)
}

/// Reads a value.
#[inline]
pub(in super::super) fn get<T: DeserializeOwned>(from: &mut Input<'_>) -> Result<T, CodecError> {
    let (value, rest) = postcard::take_from_bytes(from)?;
    *from = rest;
    Ok(value)
}

/// All has been read, and this is the end.
pub(in super::super) fn expect_end(from: Input<'_>, end: &'static str) -> Result<(), CodecError> {
    match from.len() {
        0 => Ok(()),
        left => Err(CodecError::Number(left as u64, end)),
    }
}

/// Writes a number of at most seven bits a byte.
#[inline]
pub(in super::super) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// How messages of a run are written: known only where kinds are, so that messages need not be.
pub(in super::super) struct Codec<M> {
    pub(super) encode: fn(&M, &mut Vec<u8>) -> Result<(), CodecError>,
    pub(super) decode: fn(&mut Input<'_>) -> Result<M, CodecError>,
}

impl<M> Codec<M> {
    /// Writes a message.
    #[inline]
    pub(in super::super) fn write_body(
        &self,
        body: &M,
        to: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        (self.encode)(body, to)
    }

    /// Reads a message.
    #[inline]
    pub(in super::super) fn read_body(&self, from: &mut Input<'_>) -> Result<M, CodecError> {
        (self.decode)(from)
    }
}

impl<M> Clone for Codec<M> {
    fn clone(&self) -> Codec<M> {
        *self
    }
}

impl<M> Copy for Codec<M> {}

impl CodecError {
    /// The bytes end too early.
    pub(in super::super) fn short() -> CodecError {
        postcard::Error::DeserializeUnexpectedEnd.into()
    }
}

impl<M: Message + Serialize + DeserializeOwned> Codec<M> {
    pub(super) fn new() -> Codec<M> {
        Codec {
            encode: |message, to| put(to, message),
            decode: |from| get(from),
        }
    }
}
