//! What nodes tell each other over NATS, sealed with a key that only they have.
//!
//! Any client of a NATS server can publish what it likes. A message is believed if it begins with
//! the keyed hash of the rest. The rest begins with the version that can read it: a message of a newer
//! version is not read as something else, and one that its own version cannot read is unreadable for
//! every node alike.
//!
//! ```text
//!   magic (4) │ keyed hash (32) │ version (1) │ postcard
//! ```

use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use subtle::ConstantTimeEq;

const MAGIC: &[u8; 4] = b"cou2";
/// The newest version of what this program reads. Raise it with every change of a command: a new
/// variant at the end has the new version (see [`Command::version`](crate::command::Command::version)),
/// all others keep theirs.
pub(crate) const NEWEST: u8 = 4;
/// The first version.
pub(crate) const FIRST: u8 = 1;
const HASH: usize = 32;
const HEAD: usize = MAGIC.len() + HASH + 1;
/// So that the key is good for nothing else.
const CONTEXT: &str = "corsair-courier 2026-11 messages between nodes";

/// A key that nodes have in common.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

/// The contents of a sealed message.
#[derive(Debug)]
pub(crate) enum Opened<T> {
    Read(T),
    /// It was not sealed with this key.
    Foreign,
    /// It was sealed with this key, and is not what its version says. No node can read it.
    Unreadable(String),
    /// It was sealed with this key by a newer version.
    Newer(u8),
}

impl Key {
    /// A key made from what is in a key file.
    pub fn new(secret: &[u8]) -> Key {
        Key(blake3::derive_key(CONTEXT, secret))
    }

    /// A key for another use, made from this one.
    pub fn of(&self, context: &str) -> Key {
        Key(blake3::derive_key(context, &self.0))
    }

    /// Makes the keyed hash of what is too long to be sealed.
    pub fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }

    /// Seals a value that this version, and all later ones, can read.
    ///
    /// # Errors
    /// If it cannot be encoded.
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

    /// Reads what [`Key::seal`] has made.
    pub fn open<T: DeserializeOwned>(&self, bytes: &[u8]) -> Opened<T> {
        if bytes.len() < HEAD || &bytes[..MAGIC.len()] != MAGIC {
            return Opened::Foreign;
        }
        let (hash, sealed) = bytes[MAGIC.len()..].split_at(HASH);
        if !bool::from(self.hash(sealed).as_slice().ct_eq(hash)) {
            return Opened::Foreign;
        }
        match sealed[0] {
            FIRST..=NEWEST => match postcard::take_from_bytes(&sealed[1..]) {
                Ok((value, [])) => Opened::Read(value),
                Ok((_, rest)) => Opened::Unreadable(format!("{} bytes are left over", rest.len())),
                Err(error) => Opened::Unreadable(error.to_string()),
            },
            version => Opened::Newer(version),
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
            Opened::Read(read) => assert_eq!(read, (7, "ahoy".to_owned())),
            other => panic!("{other:?}"),
        }
        let foreign =
            |key: &Key, bytes: &[u8]| matches!(key.open::<(u64, String)>(bytes), Opened::Foreign);
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
        assert!(matches!(key.open::<u8>(&sealed), Opened::Unreadable(_)));
        let newer = key.seal(NEWEST + 1, &300u64).unwrap();
        match key.open::<u64>(&newer) {
            Opened::Newer(version) => assert_eq!(version, NEWEST + 1),
            other => panic!("{other:?}"),
        }
    }
}
