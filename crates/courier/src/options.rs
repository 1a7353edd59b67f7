//! The options of a node.

use crate::limits::Limits;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a node.
#[derive(Clone, Default)]
pub struct Options {
    /// The data directory. Without it the data are in memory, and are lost with the process.
    pub data: Option<PathBuf>,
    /// A file with the common key of the nodes of a cluster; without it the node is alone.
    pub cluster_key: Option<PathBuf>,
    /// The address of a member of the cluster that a node without data joins. Without it such a node begins a cluster.
    pub join: Option<String>,
    /// The address at which other members reach this node.
    pub advertise: Option<String>,
    /// A file with the certificates of the authority of all members. Connections between members then use TLS, and
    /// both sides need a certificate of this authority.
    pub cluster_ca: Option<PathBuf>,
    /// The files with the certificate of this node and its private key, for connections between members.
    pub cluster_certificate: Option<(PathBuf, PathBuf)>,
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
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("cluster_key", &self.cluster_key)
            .field("join", &self.join)
            .field("advertise", &self.advertise)
            .field("cluster_ca", &self.cluster_ca)
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
