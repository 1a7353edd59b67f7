//! Copies of a node's data, made while the node is running.
//!
//! A backup is one file: the index at one entry of the log, which contains all data of the service at that point.

use crate::disk::blocking;
use crate::error::StartError;
use crate::index::IndexError;
use crate::inner::Inner;
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

impl Inner {
    /// Copies everything acknowledged so far into a new file while the node serves. Returns the position of
    /// the last entry of the log in the copy.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<u64, BackupError> {
        let path = to.to_owned();
        let part = part(to);
        let begun = blocking(move || Ok(begin(&path))).await?;
        begun?;
        let copied = match self.caught_up().await {
            Ok(()) => {
                let copied = self.index.copy_to(&part).await;
                copied.map_err(Into::into)
            }
            Err(failure) => Err(BackupError::Refused(failure.to_string())),
        };
        finish(copied, &part, to)
    }

    /// Removes unused space from the index while the node serves. Returns the bytes of the index before and after.
    ///
    /// # Errors
    /// If the copy cannot be written.
    pub async fn compact(&self) -> Result<(u64, u64), BackupError> {
        Ok(self.index.compact().await?)
    }
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
