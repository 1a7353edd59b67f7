//! Copies of a node's data: made while it serves, and brought back into a directory of their own.
//!
//! A backup is one file: the index as it stood at one entry of the log, which is all that the service knows
//! then. Restored, it begins a log of its own after that entry; a node of several begins to read their stream
//! there.
//!
//! Another process asks a running node over a socket in the directory of its data, which only the owner of
//! the directory can reach.

use crate::error::StartError;
use crate::index::{IndexError, Opened};
use crate::log::embedded;
use crate::node::{Node, Options, blocking, private_directory};
use std::io;
use std::path::{Path, PathBuf};

/// The index as long as it is being restored.
const RESTORED: &str = "index.restore";

/// Why data were not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// Something is there already.
    #[error("{} is there already; name another place, or move it away", .0.display())]
    Exists(PathBuf),
    /// There is no data.
    #[error("{} holds no data of a node; name the directory that it has as --data", .0.display())]
    NoData(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
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

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::File { path, source }
}

impl Node {
    /// Copies everything that was acknowledged so far into a new file, and goes on meanwhile.
    ///
    /// # Errors
    /// If the file is there already or cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        let path = to.to_owned();
        let part = part(to);
        let begun = blocking(move || Ok(begin(&path))).await?;
        begun?;
        let copied = match self.inner.caught_up().await {
            Ok(()) => self.inner.index.copy_to(&part).await.map_err(Into::into),
            Err(failure) => Err(BackupError::Refused(failure.to_string())),
        };
        finish(copied, &part, to)
    }

    /// Gives the room of removed messages back to the disk, and goes on meanwhile. Returns the bytes of
    /// the index before and after.
    ///
    /// # Errors
    /// If it cannot be written anew.
    pub async fn compact(&self) -> Result<(u64, u64), BackupError> {
        Ok(self.inner.index.compact().await?)
    }
}

/// Where a backup lies until it is whole.
fn part(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

fn begin(to: &Path) -> Result<(), BackupError> {
    match to.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(BackupError::Exists(to.to_owned())),
        Err(source) => Err(unusable(to)(source)),
    }
}

fn finish(copied: Result<(), BackupError>, part: &Path, to: &Path) -> Result<(), BackupError> {
    let done = copied.and_then(|()| std::fs::rename(part, to).map_err(unusable(to)));
    if done.is_err() {
        let _ = std::fs::remove_file(part);
    }
    done
}

/// Copies the data in this directory into a new file, whether a node runs on them or not.
///
/// # Errors
/// If the file is there already or cannot be written, or there are no data.
pub async fn backup(data: &Path, to: &Path) -> Result<(), BackupError> {
    let to = std::path::absolute(to).map_err(unusable(to))?;
    match crate::control::ask(data, &crate::control::Request::Backup(to.clone())).await? {
        Some(_) => Ok(()),
        None => match opened(data).await? {
            Offline::Node(node) => {
                let done = node.backup(&to).await;
                node.close().await;
                done
            }
            Offline::Index(index) => {
                begin(&to)?;
                let part = part(&to);
                let copied = blocking(move || index.copy_to(part)).await;
                let part = self::part(&to);
                finish(copied.map_err(BackupError::from), &part, &to)
            }
        },
    }
}

/// Gives the room of removed messages back to the disk. Returns the bytes of the index before and after.
///
/// # Errors
/// If it cannot be written anew, or there are no data.
pub async fn compact(data: &Path) -> Result<(u64, u64), BackupError> {
    match crate::control::ask(data, &crate::control::Request::Compact).await? {
        Some(answer) => {
            let mut numbers = answer.split(' ').map(|number| number.parse().ok());
            match (numbers.next().flatten(), numbers.next().flatten()) {
                (Some(before), Some(after)) => Ok((before, after)),
                _ => Err(BackupError::Refused(format!(
                    "the node has answered {answer:?}; is it of another version?"
                ))),
            }
        }
        None => match opened(data).await? {
            Offline::Node(node) => {
                let done = node.compact().await;
                node.close().await;
                done
            }
            Offline::Index(index) => Ok(blocking(move || index.compact()).await?),
        },
    }
}

/// Data on which no node runs.
enum Offline {
    Node(Node),
    /// What a node of several has beside their stream.
    Index(Opened),
}

async fn opened(data: &Path) -> Result<Offline, BackupError> {
    if !Opened::is_in(data) {
        return Err(BackupError::NoData(data.to_owned()));
    }
    if embedded::is_in(data) {
        let options = Options {
            data: Some(data.to_owned()),
            ..Options::default()
        };
        return Ok(Offline::Node(Node::start(options).await?));
    }
    let data = data.to_owned();
    let index = blocking(move || Opened::open(Some(&data))).await?;
    Ok(Offline::Index(index))
}

/// Brings a backup back into a directory that holds no data yet. All of it is read, so that a damaged one
/// is found now.
///
/// # Errors
/// If there are data already, or the backup cannot be read.
pub async fn restore(from: &Path, data: &Path) -> Result<(), BackupError> {
    let (from, data) = (from.to_owned(), data.to_owned());
    blocking(move || Ok(bring_back(&from, &data))).await?
}

fn bring_back(from: &Path, data: &Path) -> Result<(), BackupError> {
    if Opened::is_in(data) || embedded::is_in(data) {
        return Err(BackupError::Exists(data.to_owned()));
    }
    std::fs::File::open(from).map_err(unusable(from))?;
    private_directory(data).map_err(unusable(data))?;
    let restored = data.join(RESTORED);
    let brought = (|| {
        std::fs::copy(from, &restored).map_err(unusable(&restored))?;
        let index = Opened::open_file(Some(data), RESTORED)?;
        let (log, position) = index.verify()?;
        drop(index);
        embedded::begin(data, log, position)?;
        let index = data.join(crate::index::FILE);
        std::fs::rename(&restored, &index).map_err(unusable(&index))
    })();
    if brought.is_err() {
        let _ = std::fs::remove_file(&restored);
        let _ = std::fs::remove_file(data.join(embedded::FILE));
    }
    brought
}
