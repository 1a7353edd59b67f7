//! How a node is to run.

use crate::limits::Limits;
use crate::log::jetstream::without_secrets;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a node is to run.
#[derive(Clone, Default)]
pub struct Options {
    /// Where the data are. Without it they are in memory, and gone with the process.
    pub data: Option<PathBuf>,
    /// The URL of a NATS server with JetStream, where several nodes share one log.
    pub nats: Option<String>,
    /// A file with the common key of those nodes: entries without it are ignored.
    pub nats_key: Option<PathBuf>,
    /// The stream that they share; without it one that all services on that server share.
    pub nats_stream: Option<String>,
    /// Servers that keep a copy of it.
    pub nats_replicas: Option<u8>,
    /// A file with `USER:PASSWORD` or a token for the server.
    pub nats_credentials: Option<PathBuf>,
    /// A file with the certificates that the server's is signed with.
    pub nats_ca: Option<PathBuf>,
    /// Entries of the stream after which a snapshot is stored for new nodes; without it a million.
    pub nats_snapshot: Option<u64>,
    /// Origins from which browsers may connect, besides the one they were served from.
    pub origins: Vec<String>,
    /// Who may make an account.
    pub registration: Registration,
    /// Messages older than this are removed.
    pub keep: Option<Duration>,
    /// The oldest messages are removed while all have more bytes than this.
    pub keep_bytes: Option<u64>,
    /// The index is compacted when this many bytes of its file, and half of it, are not used; without it 256 MiB.
    pub waste: Option<u64>,
    /// Bytes of the index's pages that are kept in memory; without it 128 MiB.
    pub cache: Option<usize>,
    /// The limits.
    pub limits: Limits,
}

/// Who may make an account.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Registration {
    /// Everybody.
    #[default]
    Open,
    /// Clients with this secret.
    Token(String),
    /// No one.
    Closed,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret is not printed.
        f.write_str(match self {
            Registration::Open => "Open",
            Registration::Token(_) => "Token(…)",
            Registration::Closed => "Closed",
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let nats = self.nats.as_deref().map(without_secrets);
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("nats", &nats)
            .field("nats_key", &self.nats_key)
            .field("nats_stream", &self.nats_stream)
            .field("nats_replicas", &self.nats_replicas)
            .field("nats_credentials", &self.nats_credentials)
            .field("nats_ca", &self.nats_ca)
            .field("nats_snapshot", &self.nats_snapshot)
            .field("origins", &self.origins)
            .field("registration", &self.registration)
            .field("keep", &self.keep)
            .field("keep_bytes", &self.keep_bytes)
            .field("waste", &self.waste)
            .field("cache", &self.cache)
            .field("limits", &self.limits)
            .finish()
    }
}
