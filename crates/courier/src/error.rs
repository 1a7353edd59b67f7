//! Errors of starting a node.

use std::io;
use std::path::{Path, PathBuf};

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process uses the directory.
    #[error(
        "{} is in use by another process; stop that one, or give this one a directory of its own with --data", path.display()
    )]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// The data are damaged or incompatible.
    #[error("cannot use {}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        #[source]
        source: Box<redb::Error>,
    },
    /// The log cannot be read or written.
    #[error("cannot use the log {}: {reason}", path.display())]
    Log {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has format {found}, this version reads format {wanted}; use the version that wrote it, or another directory", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The supported format.
        wanted: u32,
    },
    /// The log of the index is missing, or was replaced by another one.
    #[error(
        "{} belongs to another log, which may hold messages that are nowhere else: bring that log back (the directory log beside it, or with --nats the data of the server), or use another directory", path.display()
    )]
    OtherLog {
        /// The index.
        path: PathBuf,
    },
    /// The log lacks entries that the index has applied.
    #[error(
        "{} has applied {applied} entries, and the log beside it ends at {last}: the log has lost entries; bring it back, or use another directory", path.display()
    )]
    LogBehind {
        /// The index.
        path: PathBuf,
        /// The last entry of the index.
        applied: u64,
        /// The last entry of the log.
        last: u64,
    },
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// The common key of the nodes cannot be used.
    #[error("cannot use the key {}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use {} for TLS: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The directory cannot be made.
    #[error("cannot make the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another --listen address")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The credentials for the NATS server are invalid.
    #[error("cannot use {}: {reason}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The NATS server cannot be used.
    #[error("cannot use the NATS server {url}: {reason}")]
    Nats {
        /// The address without credentials.
        url: String,
        /// The fault and its remedy.
        reason: String,
    },
}

impl StartError {
    /// Converts an error of opening a database.
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
