//! What can go wrong where the service is started.

use std::io;
use std::path::{Path, PathBuf};

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process has the directory.
    #[error(
        "{} is in use by another process; stop that one, or give this one a directory of its own with --data", path.display()
    )]
    InUse {
        /// The file that is locked.
        path: PathBuf,
    },
    /// The data are not what they should be.
    #[error("cannot use {}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What the database says.
        #[source]
        source: Box<redb::Error>,
    },
    /// The log cannot be read or written.
    #[error("cannot use the log {}: {reason}", path.display())]
    Log {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The data were written by another version.
    #[error(
        "{} has format {found}, this version reads format {wanted}; use the version that wrote it, or another directory", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format found there.
        found: u32,
        /// The one wanted.
        wanted: u32,
    },
    /// The log that the index belongs to is missing, or another one is in its place.
    #[error(
        "{} belongs to another log, which may hold messages that are nowhere else: bring that log back (the directory log beside it, or with --nats the data of the server), or use another directory", path.display()
    )]
    OtherLog {
        /// The index.
        path: PathBuf,
    },
    /// The log lacks what the index has applied.
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
    /// The key of several nodes cannot be used.
    #[error("cannot use the key {}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use {} for TLS: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory cannot be made.
    #[error("cannot make the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
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
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// What is to be shown to the NATS server cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The NATS server cannot be used.
    #[error("cannot use the NATS server {url}: {reason}")]
    Nats {
        /// Its address, without credentials.
        url: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl StartError {
    /// What a database said when it was opened.
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
