//! The versions of commands, and the common key of the nodes of a cluster.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

/// The newest version that this program can read. Increase it with every change of the commands. A new variant is added
/// at the end and has the new version (see [`Command::version`](crate::command::Command::version)); all other variants
/// keep their versions.
pub(crate) const NEWEST: u8 = 4;
/// The version of the first nodes that could be members of a cluster.
pub(crate) const FIRST_OF_CLUSTERS: u8 = 4;
/// The first version.
pub(crate) const FIRST: u8 = 1;
/// The purpose of the key, so that it cannot be used for anything else.
const CONTEXT: &str = "corsair-courier 2026-11 messages between nodes";

/// The newest version that all nodes can read. Clones share it.
///
/// A node that has just started has not received messages from the other nodes. Until then it assumes the newest
/// version that it has read in the log, because a node that cannot read that version has stopped. Nodes that report no
/// version have the first version.
#[derive(Clone, Debug)]
pub(crate) struct CommonVersion(Arc<AtomicU8>);

impl CommonVersion {
    pub fn new(version: u8) -> CommonVersion {
        CommonVersion(Arc::new(AtomicU8::new(version)))
    }

    pub fn get(&self) -> u8 {
        self.0.load(Relaxed)
    }

    pub fn set(&self, version: u8) {
        self.0.store(version, Relaxed);
    }
}

/// A key that nodes have in common.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// Creates a key from the content of a key file.
    pub fn new(secret: &[u8]) -> Key {
        Key(blake3::derive_key(CONTEXT, secret))
    }

    /// Derives a key for another purpose.
    pub fn of(&self, context: &str) -> Key {
        Key(blake3::derive_key(context, &self.0))
    }

    /// Returns a hasher for keyed hashes.
    pub fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
