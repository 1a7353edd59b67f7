//! Errors of journals.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The journal is damaged, incomplete, or cannot be read or written.
    #[error("cannot use the log {}: {reason}", path.display())]
    Unusable {
        /// The path of the file or directory.
        path: PathBuf,
        /// The reason why the journal cannot be used.
        reason: String,
    },
    /// The journal was written by another version.
    #[error("{} has format {found}, this version reads format {wanted}; use the version that wrote it, or another directory", path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// The format version of the file.
        found: u32,
        /// The format version that this program reads.
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

    /// Creates the function for `map_err` when reading or writing `path` fails.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> JournalError {
        let path = path.to_owned();
        move |error| JournalError::new(&path, error)
    }
}
