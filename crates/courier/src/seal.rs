//! Messages between nodes over NATS, sealed with a key that only the nodes have.
//!
//! Any client of a NATS server can publish anything. A message is accepted if it begins with the keyed hash of the
//! rest. The rest begins with the version of the program that can read the message. So a message of a newer version is
//! not misread. A message that its own version cannot read is unreadable for every node.
//!
//! ```text
//!   magic (4) │ keyed hash (32) │ version (1) │ postcard
//! ```

use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use subtle::ConstantTimeEq;

const MAGIC: &[u8; 4] = b"cou2";
/// The newest version that this program can read. Increase it with every change of the commands. A new variant is added
/// at the end and has the new version (see [`Command::version`](crate::command::Command::version)); all other variants
/// keep their versions.
pub(crate) const NEWEST: u8 = 4;
/// The first version.
pub(crate) const FIRST: u8 = 1;
const HASH: usize = 32;
const HEAD: usize = MAGIC.len() + HASH + 1;
/// The purpose of the key, so that it cannot be used for anything else.
const CONTEXT: &str = "corsair-courier 2026-11 messages between nodes";

/// A key that nodes have in common.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

/// The contents of a sealed message.
#[derive(Debug)]
pub(crate) enum UnsealResult<T> {
    Read(T),
    /// The message was not sealed with this key.
    Foreign,
    /// The message was sealed with this key, but does not match its version. No node can read it.
    Unreadable(String),
    /// The message was sealed with this key by a newer version.
    Newer(u8),
}

impl Key {
    /// Creates a key from the content of a key file.
    pub fn new(secret: &[u8]) -> Key {
        Key(blake3::derive_key(CONTEXT, secret))
    }

    /// Derives a key for another purpose.
    pub fn of(&self, context: &str) -> Key {
        Key(blake3::derive_key(context, &self.0))
    }

    /// Returns a hasher for the keyed hash of data that is too long to be sealed.
    pub fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }

    /// Seals a value that this version, and all later ones, can read.
    ///
    /// # Errors
    /// If the value cannot be encoded.
    pub fn seal(&self, version: u8, value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; HASH]);
        bytes.push(version);
        let mut bytes = postcard::to_extend(value, bytes)?;
        let hash = self.hash(&bytes[MAGIC.len() + HASH..]);
        bytes[MAGIC.len()..MAGIC.len() + HASH].copy_from_slice(&hash);
        Ok(bytes)
    }

    /// Opens the result of [`Key::seal`].
    pub fn open<T: DeserializeOwned>(&self, bytes: &[u8]) -> UnsealResult<T> {
        if bytes.len() < HEAD || &bytes[..MAGIC.len()] != MAGIC {
            return UnsealResult::Foreign;
        }
        let (hash, sealed) = bytes[MAGIC.len()..].split_at(HASH);
        if !bool::from(self.hash(sealed).as_slice().ct_eq(hash)) {
            return UnsealResult::Foreign;
        }
        match sealed[0] {
            FIRST..=NEWEST => match postcard::take_from_bytes(&sealed[1..]) {
                Ok((value, [])) => UnsealResult::Read(value),
                Ok((_, rest)) => {
                    UnsealResult::Unreadable(format!("{} bytes are left over", rest.len()))
                }
                Err(error) => UnsealResult::Unreadable(error.to_string()),
            },
            version => UnsealResult::Newer(version),
        }
    }

    fn hash(&self, sealed: &[u8]) -> [u8; HASH] {
        *blake3::keyed_hash(&self.0, sealed).as_bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_with_the_same_key_is_read() {
        let (ours, theirs) = (Key::new(b"ours"), Key::new(b"theirs"));
        let sealed = ours.seal(FIRST, &(7u64, "ahoy")).unwrap();
        match ours.open::<(u64, String)>(&sealed) {
            UnsealResult::Read(read) => assert_eq!(read, (7, "ahoy".to_owned())),
            other => panic!("{other:?}"),
        }
        let foreign = |key: &Key, bytes: &[u8]| {
            matches!(key.open::<(u64, String)>(bytes), UnsealResult::Foreign)
        };
        assert!(foreign(&theirs, &sealed));
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert!(foreign(&ours, &forged), "byte {place}");
            assert!(foreign(&ours, &sealed[..place]), "{place} bytes");
        }
        assert!(foreign(&ours, b"{\"not\":\"ours\"}"));
    }

    #[test]
    fn what_a_newer_version_has_sealed_is_not_taken_for_something_else() {
        let key = Key::new(b"ours");
        let sealed = key.seal(NEWEST, &300u64).unwrap();
        assert!(matches!(
            key.open::<u8>(&sealed),
            UnsealResult::Unreadable(_)
        ));
        let newer = key.seal(NEWEST + 1, &300u64).unwrap();
        match key.open::<u64>(&newer) {
            UnsealResult::Newer(version) => assert_eq!(version, NEWEST + 1),
            other => panic!("{other:?}"),
        }
    }
}
