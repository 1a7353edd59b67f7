//! Conversion of values to bytes and back.

use crate::contract::{Message, Plain};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The reasons why a value cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum CodecError {
    /// An actor was spawned by a closure, or has an async body.
    #[error("it has no kind")]
    NoKind,
    /// The program does not know this kind.
    #[error("this program does not know the kind `{0}`")]
    UnknownKind(String),
    /// The bytes cannot be decoded.
    #[error("{0}")]
    Postcard(#[from] postcard::Error),
    /// The storage of the bytes could not be read.
    #[error("{0}: {1}")]
    Unread(String, std::io::Error),
    /// The bytes differ from those that were written.
    #[error("{0} is damaged: a checksum or a length differs")]
    Changed(String),
    /// The bytes are not a message.
    #[error("these bytes are not a message")]
    Body,
    /// A number outside of its valid range.
    #[error("{0} is not a valid {1}")]
    Number(u64, &'static str),
}

/// The remaining bytes to read.
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

/// Checks that all bytes have been read.
pub(in super::super) fn expect_end(from: Input<'_>, end: &'static str) -> Result<(), CodecError> {
    match from.len() {
        0 => Ok(()),
        left => Err(CodecError::Number(left as u64, end)),
    }
}

/// Writes a number as a varint: seven bits per byte.
#[inline]
pub(in super::super) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The serialization of messages.
pub(super) trait Bodies<M> {
    fn write(body: &M, to: &mut Vec<u8>) -> Result<(), CodecError>;
    fn read(from: &mut Input<'_>) -> Result<M, CodecError>;
}

/// The codec of messages that postcard serializes.
pub(super) struct Serialized;

impl<M: Serialize + DeserializeOwned> Bodies<M> for Serialized {
    #[inline(always)]
    fn write(body: &M, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, body)
    }

    #[inline(always)]
    fn read(from: &mut Input<'_>) -> Result<M, CodecError> {
        get(from)
    }
}

/// Messages that are [`Plain`].
pub(super) struct InPlace;

impl<M: Plain> Bodies<M> for InPlace {
    #[inline(always)]
    fn write(body: &M, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let end = to.len();
        to.resize(end + M::SIZE, 0);
        body.write_to(&mut to[end..]);
        Ok(())
    }

    #[inline(always)]
    fn read(from: &mut Input<'_>) -> Result<M, CodecError> {
        let (bytes, rest) = from
            .split_at_checked(M::SIZE)
            .ok_or_else(CodecError::short)?;
        *from = rest;
        M::read_from(bytes).ok_or(CodecError::Body)
    }
}

/// The serialization of a run's messages in snapshots; small numbers take few bytes. Only kinds provide it,
/// so messages without kinds need not be serializable.
pub(in super::super) struct Codec<M> {
    pub(super) encode: fn(&M, &mut Vec<u8>) -> Result<(), CodecError>,
    pub(super) decode: fn(&mut Input<'_>) -> Result<M, CodecError>,
}

impl<M> Clone for Codec<M> {
    fn clone(&self) -> Codec<M> {
        *self
    }
}

impl<M> Copy for Codec<M> {}

impl CodecError {
    /// Returns the error of input that ends too early.
    pub(in super::super) fn short() -> CodecError {
        postcard::Error::DeserializeUnexpectedEnd.into()
    }
}

impl<M: Message + Serialize + DeserializeOwned> Codec<M> {
    pub(super) fn new() -> Codec<M> {
        Codec {
            encode: Serialized::write,
            decode: Serialized::read,
        }
    }
}
