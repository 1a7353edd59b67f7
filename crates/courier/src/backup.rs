//! The files of backups.
//!
//! A backup is one file: the index at one entry of the log, which contains all data of the service at that point.

use crate::error::StartError;
use crate::index::IndexError;
use std::io;
use std::path::{Path, PathBuf};

/// The reasons why a backup, compaction or restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target exists already.
    #[error("{} already exists; name another path, or move it away", .0.display())]
    Exists(PathBuf),
    /// The directory has no data.
    #[error("{} has no data of a node; name the directory that the node has as --data", .0.display())]
    NoData(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The data cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The node has refused.
    #[error("{0}")]
    Refused(String),
}

impl From<IndexError> for BackupError {
    fn from(error: IndexError) -> BackupError {
        BackupError::Refused(error.to_string())
    }
}

pub(crate) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::File { path, source }
}

/// Returns the temporary path of a backup.
pub(crate) fn part(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

pub(crate) fn begin(to: &Path) -> Result<(), BackupError> {
    match to.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(BackupError::Exists(to.to_owned())),
        Err(source) => Err(unusable(to)(source)),
    }
}

pub(crate) fn finish<T>(
    copied: Result<T, BackupError>,
    part: &Path,
    to: &Path,
) -> Result<T, BackupError> {
    let done = copied.and_then(|copied| {
        std::fs::rename(part, to).map_err(unusable(to))?;
        Ok(copied)
    });
    if done.is_err() {
        let _ = std::fs::remove_file(part);
    }
    done
}
