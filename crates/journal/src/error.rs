//! Why a journal cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It is damaged, incomplete, or cannot be read or written.
    #[error("cannot use the log {}: {reason}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Another version wrote it.
    #[error("{} has format {found}, this version reads format {wanted}; use the version that wrote it, or another directory", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The format of this version.
        wanted: u32,
    },
}

impl JournalError {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> JournalError {
        JournalError::Unusable {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// For `map_err`: reading or writing `path` has failed.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> JournalError {
        let path = path.to_owned();
        move |error| JournalError::new(&path, error)
    }
}
