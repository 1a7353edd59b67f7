//! Errors at the start of a node.

use std::io;
use std::path::{Path, PathBuf};

/// The reasons why a node could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process uses the directory.
    #[error(
        "{} is in use by another process; stop that process, or give this one another directory with --data", path.display()
    )]
    InUse {
        /// The locked file.
        path: PathBuf,
    },
    /// The data are damaged or incompatible.
    #[error("cannot use {}: {source}", path.display())]
    Database {
        /// The path of the database.
        path: PathBuf,
        /// The error of the database.
        #[source]
        source: Box<redb::Error>,
    },
    /// The log cannot be read or written.
    #[error("cannot use the log {}: {reason}", path.display())]
    Log {
        /// The path of the log, or of a file in it.
        path: PathBuf,
        /// The reason why the log cannot be used.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has format {found}, and this version reads format {wanted}; use the version that wrote it, or another directory", path.display()
    )]
    Format {
        /// The path of the data.
        path: PathBuf,
        /// The format version in the data.
        found: u32,
        /// The format version that this program reads.
        wanted: u32,
    },
    /// The log of the index is missing, or was replaced by another one.
    #[error(
        "{} belongs to another log, which may contain messages that exist nowhere else: restore that log (the directory `log` or `cluster` beside it), or use another directory; data of a version with NATS are moved with that version's `export`", path.display()
    )]
    OtherLog {
        /// The path of the index.
        path: PathBuf,
    },
    /// The index has applied entries that the log does not have.
    #[error(
        "{} has applied {applied} entries, and the log beside it ends at {last}: the log has lost entries; restore it, or use another directory", path.display()
    )]
    LogBehind {
        /// The path of the index.
        path: PathBuf,
        /// The number of the last entry that the index has applied.
        applied: u64,
        /// The number of the last entry in the log.
        last: u64,
    },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// The common key of the nodes cannot be used.
    #[error("cannot use the key {}: {reason}", path.display())]
    Key {
        /// The path of the file with the key.
        path: PathBuf,
        /// The reason why the key cannot be used.
        reason: String,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use {} for TLS: {reason}", path.display())]
    Tls {
        /// The path of the certificate or key.
        path: PathBuf,
        /// The reason why TLS cannot use the file.
        reason: String,
    },
    /// The directory cannot be made.
    #[error("cannot create the directory {}: {source}", path.display())]
    Directory {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The operating system refused to start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The node cannot listen on the address.
    #[error("cannot listen on {address}: {source}; choose another --listen address")]
    Listen {
        /// The address given by `--listen`.
        address: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// Converts the error from opening a database.
    pub(crate) fn database(path: &Path, error: redb::Error) -> StartError {
        let path = path.to_owned();
        match error {
            redb::Error::DatabaseAlreadyOpen => StartError::InUse { path },
            source => StartError::Database {
                path,
                source: Box::new(source),
            },
        }
    }
}

impl From<corsair_journal::JournalError> for StartError {
    fn from(error: corsair_journal::JournalError) -> StartError {
        use corsair_journal::JournalError;
        match error {
            JournalError::Unusable { path, reason } => StartError::Log { path, reason },
            JournalError::Format {
                path,
                found,
                wanted,
            } => StartError::Format {
                path,
                found,
                wanted,
            },
        }
    }
}
