//! The beginning of a member: a new cluster, a join, a copy of the index, and a node without its cluster.

use super::link::{self, Link};
use super::request::{Credentials, PATIENCE, ask, hello};
use super::wire::{Answer, Hello, Request};
use crate::backup::BackupError;
use crate::disk::blocking;
use crate::error::StartError;
use crate::index::OpenedIndex;
use crate::log::embedded::{self, OpenedLog};
use crate::log::replicated::{self, Base, Change, Member, Store};
use crate::seal::Key;
use crate::tls::Secure;
use corsair_journal::private_file;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

/// The name of a copy of the index that is sent.
pub(crate) const OUTGOING: &str = "index.outgoing";
/// The name of a copy of the index that was received.
const INCOMING: &str = "index.incoming";
/// The name of the file that describes a complete copy.
const DESCRIPTION: &str = "index.base";
/// The time limit for the next part of a copy.
const STALLED: Duration = Duration::from_secs(40);

/// The description of a complete copy of the index.
#[derive(Serialize, Deserialize)]
struct Copied {
    base: Base,
    node: u64,
    /// The term of this node, and its vote in that term.
    vote: (u64, u64),
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    move |error| StartError::Log {
        path,
        reason: error.to_string(),
    }
}

/// Returns a random identity of a node or a cluster.
fn random() -> Result<u64, StartError> {
    // The identity of a log with one node has another highest bit.
    Ok((embedded::random_identity()? & !(1 << 63)) | 1)
}

/// Writes a file that replaces an older one when it is on disk.
fn describe(data: &Path, copied: &Copied) -> Result<(), StartError> {
    let path = data.join(DESCRIPTION);
    let part = path.with_extension("part");
    let written = (|| {
        let mut bytes = postcard::to_allocvec(copied).map_err(io::Error::other)?;
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let mut file = private_file().truncate(true).open(&part)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, &path)?;
        std::fs::File::open(data)?.sync_all()
    })();
    written.map_err(failed(&path))
}

fn described(data: &Path) -> Result<Option<Copied>, StartError> {
    let path = data.join(DESCRIPTION);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&path)(error)),
    };
    let copied = bytes.split_last_chunk().and_then(|(copied, check)| {
        let is_whole = crc32fast::hash(copied).to_le_bytes() == *check;
        is_whole
            .then(|| postcard::from_bytes(copied).ok())
            .flatten()
    });
    match copied {
        Some(copied) => Ok(Some(copied)),
        None => Err(failed(&path)(io::Error::other("it is damaged"))),
    }
}

/// Removes a copy of the index that is not needed.
pub(crate) fn forget(data: &Path) {
    let _ = std::fs::remove_file(data.join(DESCRIPTION));
    let _ = std::fs::remove_file(data.join(INCOMING));
}

/// Replaces the index and the log by a complete copy, if there is one. A kill at any time is harmless.
fn install(data: &Path) -> Result<(), StartError> {
    let Some(mut copied) = described(data)? else {
        let _ = std::fs::remove_file(data.join(INCOMING));
        return Ok(());
    };
    let incoming = data.join(INCOMING);
    if incoming.exists() {
        let index = data.join(crate::index::FILE);
        // Keeps other processes out.
        let locked = OpenedIndex::open(Some(data))?;
        let store = Store::open(data)?;
        if store
            .as_ref()
            .is_none_or(|store| *store.base() != copied.base)
        {
            if let Some(store) = store {
                copied.vote = store.vote();
                describe(data, &copied)?;
                drop(store);
                replicated::remove(data).map_err(failed(data))?;
            }
            Store::create(data, copied.node, copied.base, copied.vote)?;
        }
        drop(locked);
        std::fs::rename(&incoming, &index).map_err(failed(&index))?;
        std::fs::File::open(data)
            .and_then(|data| data.sync_all())
            .map_err(failed(data))?;
    }
    forget(data);
    Ok(())
}

/// Copies the index of the member at an address, and verifies the copy. The next start uses it.
///
/// # Errors
/// The member cannot be reached, or the copy cannot be written or is damaged.
pub(crate) async fn fetch(
    address: &str,
    secure: Option<&Secure>,
    key: &Key,
    hello: Hello,
    data: &Path,
    node: u64,
) -> io::Result<Base> {
    let path = data.join(INCOMING);
    let Link {
        mut writer,
        mut reader,
        ..
    } = link::connect(address, secure, key, hello).await?;
    writer.send(&Request::Snapshot).await?;
    let base = match timeout(2 * STALLED, reader.receive())
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??
    {
        Answer::Base(base) => base,
        Answer::Refused(reason) => return Err(io::Error::other(reason)),
        _ => return Err(io::Error::other("the answer is of another kind")),
    };
    let options: tokio::fs::OpenOptions = {
        let mut options = private_file();
        options.truncate(true);
        options.into()
    };
    let mut file = options.open(&path).await?;
    loop {
        let part = timeout(STALLED, reader.receive())
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
        let Answer::Part(part) = part else {
            return Err(io::Error::other("the answer is of another kind"));
        };
        if part.is_empty() {
            break;
        }
        file.write_all(&part).await?;
    }
    file.sync_all().await?;
    drop(file);
    let (directory, of) = (data.to_owned(), base.clone());
    let checked = blocking(move || {
        OpenedIndex::verify_copy(&directory, INCOMING, (of.cluster, of.position))?;
        describe(
            &directory,
            &Copied {
                base: of,
                node,
                vote: (0, 0),
            },
        )
    });
    checked.await.map_err(io::Error::other)?;
    Ok(base)
}

/// Prepares the data directory of a member: begins a cluster with the data of a single node, joins one, or continues.
///
/// # Errors
/// The directory has other data, or the cluster refuses this node.
pub(crate) async fn prepare(
    data: &Path,
    credentials: &Credentials,
    join: Option<&str>,
) -> Result<(), StartError> {
    let directory = data.to_owned();
    blocking(move || install(&directory)).await?;
    let directory = data.to_owned();
    let is_member = blocking(move || is_member(&directory)).await?;
    match join {
        _ if is_member => Ok(()),
        Some(_) if OpenedIndex::is_in(data) || embedded::is_in(data) => {
            Err(StartError::Setting(format!(
                "{} has the data of another node; a node that joins needs an empty --data directory",
                data.display()
            )))
        }
        Some(address) => join_at(data, credentials, address).await,
        None => {
            let (directory, address) = (data.to_owned(), credentials.address.clone());
            blocking(move || found(&directory, address)).await
        }
    }
}

/// True if the index belongs to the replicated log. What an interrupted beginning has left is removed.
fn is_member(data: &Path) -> Result<bool, StartError> {
    if !replicated::is_in(data) {
        return Ok(false);
    }
    let index = OpenedIndex::open(Some(data))?;
    if index.has_own_log() || index.applied() == 0 {
        drop(index);
        replicated::remove(data).map_err(failed(data))?;
        return Ok(false);
    }
    embedded::remove(data);
    Ok(true)
}

/// Checks that the data in a directory do not belong to a member of a cluster.
///
/// # Errors
/// The data belong to a member, or cannot be read.
pub(crate) fn refuse_member(data: &Path) -> Result<(), StartError> {
    let is_described = data.join(DESCRIPTION).exists();
    match is_described || (replicated::is_in(data) && is_member(data)?) {
        true => Err(StartError::Setting(format!(
            "{} has the data of a member of a cluster; give --cluster-key FILE, or make it a single node with `corsair-courier recover`",
            data.display()
        ))),
        false => Ok(()),
    }
}

/// Begins a cluster of one member, with the data of a single node, if there are any.
fn found(data: &Path, address: String) -> Result<(), StartError> {
    let mut index = OpenedIndex::open(Some(data))?;
    if index.applied() > 0 && !embedded::is_in(data) {
        let path = data.join(crate::index::FILE);
        return Err(StartError::OtherLog { path });
    }
    let log = OpenedLog::open(Some(data), index.applied())?;
    index.adopt(log.identity())?;
    index.follows(log.last())?;
    index = index.apply(log.into_entries())?;
    let (cluster, node) = (random()?, random()?);
    let position = index.applied() + 1;
    let member = Member {
        id: node,
        address,
        is_learner: false,
    };
    let base = Base {
        cluster,
        position,
        term: 1,
        members: vec![member],
    };
    Store::create(data, node, base, (1, 0))?;
    index.continue_with(cluster, position)?;
    drop(index);
    embedded::remove(data);
    Ok(())
}

/// Joins the cluster of the member at this address: as a learner, which gets a vote when it has caught up.
async fn join_at(data: &Path, credentials: &Credentials, address: &str) -> Result<(), StartError> {
    let Credentials {
        key,
        secure,
        address: own,
    } = credentials;
    let node = random()?;
    let refused = |reason: String| {
        StartError::Setting(format!("cannot join the cluster at {address}: {reason}"))
    };
    let end = Instant::now() + PATIENCE;
    let mut leader = address.to_owned();
    let change = Change::Join {
        id: node,
        address: own.clone(),
    };
    loop {
        let first = hello(0, node, own).map_err(|error| refused(error.to_string()))?;
        let asked = ask(
            &leader,
            secure.as_ref(),
            key,
            first,
            &Request::Change(change.clone()),
        )
        .await;
        let reason = match asked {
            Ok(Answer::Accepted) => break,
            Ok(Answer::Refused(reason)) => return Err(refused(reason)),
            Ok(Answer::NotLeader(Some(other))) if other != leader => {
                leader = other;
                "the leader is being replaced".to_owned()
            }
            Ok(_) => {
                "it has no leader, because a majority of its members cannot be reached".to_owned()
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(refused(error.to_string()));
            }
            Err(error) => {
                leader = address.to_owned();
                error.to_string()
            }
        };
        if Instant::now() >= end {
            return Err(refused(reason));
        }
        sleep(Duration::from_millis(200)).await;
    }
    let first = hello(0, node, own).map_err(|error| refused(error.to_string()))?;
    let fetched = fetch(&leader, secure.as_ref(), key, first, data, node).await;
    fetched.map_err(|error| refused(error.to_string()))?;
    let directory = data.to_owned();
    blocking(move || install(&directory)).await
}

/// Turns the data of a member into the data of a single node, with everything in its log. Other members cannot be
/// reached any more.
///
/// # Errors
/// The directory has no data of a member, or a node runs on it.
pub async fn recover(data: &Path) -> Result<u64, BackupError> {
    let data = data.to_owned();
    Ok(blocking(move || alone(&data)).await?)
}

fn alone(data: &Path) -> Result<u64, StartError> {
    install(data)?;
    if !is_member(data)? {
        return Err(StartError::Setting(format!(
            "{} has no data of a member of a cluster",
            data.display()
        )));
    }
    let Some(mut store) = Store::open(data)? else {
        return Err(StartError::Setting(format!(
            "the log in {} has no beginning; restore a backup",
            data.display()
        )));
    };
    let index = OpenedIndex::open(Some(data))?;
    let last = store.last();
    store.commit(last);
    let entries = store.committed_after(index.applied())?;
    let mut index = index.apply(entries.into_iter())?;
    drop(store);
    let log = embedded::random_identity()?;
    let position = index.applied();
    embedded::begin(data, log, position)?;
    index.continue_with(log, position)?;
    replicated::remove(data).map_err(failed(data))?;
    Ok(position)
}
