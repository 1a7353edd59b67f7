//! The options of a node.

use crate::limits::Limits;
use crate::log::jetstream::without_secrets;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a node.
#[derive(Clone, Default)]
pub struct Options {
    /// The data directory. Without it the data are in memory, and are lost with the process.
    pub data: Option<PathBuf>,
    /// The URL of a NATS server with JetStream, if several nodes share one log.
    pub nats: Option<String>,
    /// A file with the common key of the nodes; entries that are not sealed with it are ignored.
    pub nats_key: Option<PathBuf>,
    /// The stream that the nodes share; without it the stream with the default name.
    pub nats_stream: Option<String>,
    /// The number of servers with a copy of the stream.
    pub nats_replicas: Option<u8>,
    /// A file with `USER:PASSWORD` or a token for the server.
    pub nats_credentials: Option<PathBuf>,
    /// A file with the certificates of the authority that has signed the server's certificate.
    pub nats_ca: Option<PathBuf>,
    /// The number of entries of the stream after which a snapshot is stored for new nodes; by default a million.
    pub nats_snapshot: Option<u64>,
    /// Origins from which browsers may connect, in addition to the node's own.
    pub origins: Vec<String>,
    /// The users who may create an account.
    pub registration: Registration,
    /// The age above which messages are removed; `None` keeps all messages.
    pub keep: Option<Duration>,
    /// The maximum bytes of all messages. Above it the oldest messages are removed. `None` means no limit.
    pub keep_bytes: Option<u64>,
    /// The number of unused bytes in the index's file above which it is compacted, if at least half of the file is
    /// unused; by default 256 MiB.
    pub waste: Option<u64>,
    /// The size of the index's cache in bytes; by default 128 MiB.
    pub cache: Option<usize>,
    /// The limits on requests and connections.
    pub limits: Limits,
}

/// The users who may create an account.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Registration {
    /// Everybody may create an account.
    #[default]
    Open,
    /// Clients that send this secret may create an account.
    Token(String),
    /// No one may create an account.
    Closed,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret must not be printed.
        f.write_str(match self {
            Registration::Open => "Open",
            Registration::Token(_) => "Token(…)",
            Registration::Closed => "Closed",
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may contain a password.
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
