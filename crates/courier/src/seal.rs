//! What nodes tell each other over NATS, sealed with a key that only they have.
//!
//! Any client of a NATS server can publish what it likes. A message is believed if it begins with
//! the keyed hash of the rest. The rest begins with the version of its format: a message of a newer
//! version is not read as something else.
//!
//! ```text
//!   magic (4) │ keyed hash (32) │ version (1) │ postcard
//! ```

use serde::{Serialize, de::DeserializeOwned};
use std::fmt;
use subtle::ConstantTimeEq;

const MAGIC: &[u8; 4] = b"cou2";
/// The version of everything that is sealed. Raise it when a variant of a command or of a presence
/// message changes its meaning; adding a variant at the end does not need that.
const VERSION: u8 = 1;
const HASH: usize = 32;
const HEAD: usize = MAGIC.len() + HASH + 1;
/// So that the key is good for nothing else.
const CONTEXT: &str = "corsair-courier 2026-11 messages between nodes";

/// A key that nodes have in common.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

/// What was found in a message.
#[derive(Debug)]
pub(crate) enum Opened<T> {
    Read(T),
    /// It was not sealed with this key.
    Foreign,
    /// It was sealed with this key, and this version cannot read it.
    Unreadable(String),
}

impl Key {
    /// A key made from what is in a key file.
    pub fn new(secret: &[u8]) -> Key {
        Key(blake3::derive_key(CONTEXT, secret))
    }

    /// Seals a value.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn seal(&self, value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; HASH]);
        bytes.push(VERSION);
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
            VERSION => match postcard::take_from_bytes(&sealed[1..]) {
                Ok((value, [])) => Opened::Read(value),
                Ok((_, rest)) => Opened::Unreadable(format!("{} bytes are left over", rest.len())),
                Err(error) => Opened::Unreadable(error.to_string()),
            },
            version => Opened::Unreadable(format!(
                "it has version {version}, this node knows up to {VERSION}"
            )),
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
        let sealed = ours.seal(&(7u64, "ahoy")).unwrap();
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
        let sealed = key.seal(&300u64).unwrap();
        match key.open::<u8>(&sealed) {
            Opened::Unreadable(_) => {}
            other => panic!("{other:?}"),
        }
        let mut newer = sealed.clone();
        newer[MAGIC.len() + HASH] = VERSION + 1;
        let hash = key.hash(&newer[MAGIC.len() + HASH..]);
        newer[MAGIC.len()..MAGIC.len() + HASH].copy_from_slice(&hash);
        match key.open::<u64>(&newer) {
            Opened::Unreadable(said) => assert!(said.contains("version 2"), "{said}"),
            other => panic!("{other:?}"),
        }
    }
}
