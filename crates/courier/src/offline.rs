//! Copies, compacts and restores the data in a directory, with or without a running node.
//!
//! A running node is asked over a [socket](crate::control) in the directory, which only the owner of the directory can
//! use. The log of a restored backup begins after the last entry in the backup.

use crate::backup::{BackupError, begin, finish, part, unusable};
use crate::cluster::MemberRequest;
use crate::disk::blocking;
use crate::error::StartError;
use crate::index::OpenedIndex;
use crate::log::embedded;
use crate::log::replicated::Store;
use crate::node::Node;
use crate::options::Options;
use corsair_journal::{private_directory, private_file};
use std::path::Path;

/// The name of the index during a restore.
const RESTORED: &str = "index.restore";

/// Copies the data in this directory into a new file, with or without a running node. Returns the position of the last
/// entry of the log in the copy.
///
/// # Errors
/// If the file already exists or cannot be written, or there are no data.
pub async fn backup(data: &Path, to: &Path) -> Result<u64, BackupError> {
    let to = std::path::absolute(to).map_err(unusable(to))?;
    match crate::control::ask(data, &crate::control::Request::Backup(to.clone())).await? {
        Some(answer) => answer.parse().map_err(|_| unexpected(&answer)),
        None => match opened(data).await? {
            Offline::Node(node) => {
                let done = node.backup(&to).await;
                node.close().await;
                done
            }
            Offline::Index(index) => {
                begin(&to)?;
                let position = index.applied();
                let part = part(&to);
                let copied = blocking(move || index.copy_to(part)).await;
                let part = crate::backup::part(&to);
                finish(copied.map_err(BackupError::from), &part, &to)?;
                Ok(position)
            }
        },
    }
}

/// Removes unused space from the index. Returns the bytes of the index before and after.
///
/// # Errors
/// If the copy cannot be written, or the directory has no data.
pub async fn compact(data: &Path) -> Result<(u64, u64), BackupError> {
    match crate::control::ask(data, &crate::control::Request::Compact).await? {
        Some(answer) => {
            let mut numbers = answer.split(' ').map(|number| number.parse().ok());
            match (numbers.next().flatten(), numbers.next().flatten()) {
                (Some(before), Some(after)) => Ok((before, after)),
                _ => Err(unexpected(&answer)),
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

/// Serves a request about the members of the cluster, at the node that runs on this directory. Returns the answer.
///
/// # Errors
/// If no node runs on the directory, or it refuses.
pub async fn change_members(data: &Path, request: MemberRequest) -> Result<String, BackupError> {
    let request = crate::control::Request::Members(request);
    crate::control::ask(data, &request).await?.ok_or_else(|| {
        BackupError::Refused(format!(
            "no node runs on {}; start it first",
            data.display()
        ))
    })
}

/// Returns the error for an unexpected answer, which a node of another version may give.
fn unexpected(answer: &str) -> BackupError {
    BackupError::Refused(format!(
        "the node has answered {answer:?}; use the program's version that runs the node"
    ))
}

/// Data on which no node is running.
pub(crate) enum Offline {
    Node(Node),
    /// The index of a member of a cluster, with everything that the member knows to be committed.
    Index(OpenedIndex),
}

pub(crate) async fn opened(data: &Path) -> Result<Offline, BackupError> {
    if !OpenedIndex::is_in(data) {
        return Err(BackupError::NoData(data.to_owned()));
    }
    if embedded::is_in(data) {
        let options = Options {
            data: Some(data.to_owned()),
            ..Options::default()
        };
        return Ok(Offline::Node(Node::start(options).await?));
    }
    let directory = data.to_owned();
    let index = blocking(move || {
        let index = OpenedIndex::open(Some(&directory))?;
        let store = Store::open(&directory)?;
        let Some(store) = store.filter(|_| !index.has_own_log()) else {
            let path = directory.join(crate::index::FILE);
            return Err(StartError::OtherLog { path });
        };
        let entries = store.committed_after(index.applied())?;
        index.apply(entries.into_iter())
    });
    Ok(Offline::Index(index.await?))
}

/// Restores a backup into a directory without data. The complete backup is read, so that damage is found now.
///
/// # Errors
/// If the directory contains data, or the backup cannot be read.
///
/// ```
/// use corsair_courier::{Node, Options, backup, restore};
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("corsair-restore-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let (data, copy, new) = (dir.join("data"), dir.join("copy.redb"), dir.join("new"));
/// let options = Options { data: Some(data.clone()), ..Options::default() };
/// let node = Node::start(options).await?;
/// backup(&data, &copy).await?; // while the node serves
/// node.close().await;
///
/// restore(&copy, &new).await?;
/// let node = Node::start(Options { data: Some(new), ..Options::default() }).await?;
/// node.close().await;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
pub async fn restore(from: &Path, data: &Path) -> Result<(), BackupError> {
    let (from, data) = (from.to_owned(), data.to_owned());
    blocking(move || Ok(bring_back(&from, &data))).await?
}

/// Checks that there are no data in this directory.
pub(crate) fn refuse_data(data: &Path) -> Result<(), BackupError> {
    match OpenedIndex::is_in(data) || embedded::is_in(data) {
        true => Err(BackupError::Exists(data.to_owned())),
        false => Ok(()),
    }
}

fn bring_back(from: &Path, data: &Path) -> Result<(), BackupError> {
    refuse_data(data)?;
    std::fs::File::open(from).map_err(unusable(from))?;
    private_directory(data).map_err(unusable(data))?;
    let restored = data.join(RESTORED);
    // The file of an interrupted attempt is removed, because it may have other permissions.
    let _ = std::fs::remove_file(&restored);
    let brought = (|| {
        copy(from, &restored).map_err(unusable(&restored))?;
        let index = OpenedIndex::copy_in(data, RESTORED)?;
        let (mut log, position) = index.verify()?;
        if !embedded::is_identity(log) {
            // The backup of a member of a cluster becomes a single node.
            log = embedded::random_identity()?;
            let mut index = index;
            index.continue_with(log, position)?;
        } else {
            drop(index);
        }
        embedded::begin(data, log, position)?;
        let index = data.join(crate::index::FILE);
        std::fs::rename(&restored, &index).map_err(unusable(&index))
    })();
    if brought.is_err() {
        let _ = std::fs::remove_file(&restored);
        embedded::remove(data);
    }
    brought
}

/// Copies a file into a new one that only its owner may read.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut from = std::fs::File::open(from)?;
    std::io::copy(&mut from, &mut private_file().truncate(true).open(to)?)?;
    Ok(())
}
