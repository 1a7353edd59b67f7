//! Snapshots of the index, stored on the server of the stream. New nodes start from a snapshot, so the complete stream
//! need not be kept.
//!
//! A snapshot is the file of an index in its state after one entry of the stream. The file is in an object store beside
//! the stream. The last message of another stream names the newest snapshot, with its length and its keyed hash, sealed
//! with a key that only the nodes have. A node replaces that message only if the message has not changed since the node
//! read it, and only by a later snapshot. So two nodes that store snapshots at the same time cannot replace a later
//! snapshot by an earlier one.
//!
//! Then the stream is trimmed up to the snapshot *before* the newest, whose last entry stays. So nodes that are behind
//! by less than a snapshot continue to read; others start from the newest snapshot. The object of the previous snapshot
//! also stays, for nodes that are reading it.

use super::{ACK, Names};
use crate::seal::{FIRST, Key, UnsealResult};
use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, StorageType, Stream};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// The purpose of the key, so that data sealed with it cannot be mistaken for other data.
const CONTEXT: &str = "corsair-courier 2026-11 snapshots of nodes";
/// The time limit for the next part of a snapshot.
const STALLED: Duration = Duration::from_secs(10);
/// The number of bytes that are read at a time.
const PART: usize = 128 << 10;

/// A snapshot on the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The identity of the stream.
    identity: u64,
    /// The last applied entry.
    pub position: u64,
    /// The length of the file in bytes.
    pub length: u64,
    hash: [u8; 32],
    object: String,
    /// The object of the previous snapshot.
    before: Option<String>,
}

/// The newest snapshot, and the revision that a newer one must replace.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewestSnapshot {
    pub snapshot: Option<Snapshot>,
    revision: u64,
}

/// The range of entries in the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRange {
    /// The first entry in the stream; 1 or less if it was never trimmed.
    pub first: u64,
    pub bytes: u64,
}

/// The snapshots of a stream. See the [module](self).
#[derive(Clone)]
pub(crate) struct Snapshots {
    context: Context,
    stream: Stream,
    names: Names,
    replicas: usize,
    key: Key,
    identity: u64,
}

impl Snapshots {
    pub fn new(
        context: Context,
        stream: Stream,
        names: Names,
        replicas: usize,
        key: &Key,
        identity: u64,
    ) -> Snapshots {
        Snapshots {
            context,
            stream,
            names,
            replicas,
            key: key.of(CONTEXT),
            identity,
        }
    }

    /// Returns the range of entries in the stream.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn held(&self) -> Result<StreamRange, String> {
        let info = timeout(ACK, self.stream.get_info()).await;
        let info = info.map_err(|_| "the NATS server does not answer".to_owned())?;
        let info = info.map_err(|error| error.to_string())?;
        Ok(StreamRange {
            first: info.state.first_sequence,
            bytes: info.state.bytes,
        })
    }

    /// Removes the entries of the stream before the entry `first`.
    ///
    /// # Errors
    /// If the server fails.
    pub async fn trim(&self, first: u64) -> Result<(), String> {
        let purged = timeout(STALLED, async { self.stream.purge().sequence(first).await }).await;
        let purged = purged.map_err(|_| "the NATS server does not answer".to_owned())?;
        purged.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the newest snapshot of the stream, if there is one.
    ///
    /// # Errors
    /// If the server does not answer, or a newer version has stored the snapshot.
    pub async fn newest(&self) -> Result<NewestSnapshot, String> {
        let announcements = self.announcements().await?;
        let last = announcements.get_last_raw_message_by_subject(&self.names.newest);
        let last = timeout(ACK, last).await;
        let last = match last.map_err(|_| "the NATS server does not answer".to_owned())? {
            Ok(last) => last,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                return Ok(NewestSnapshot::default());
            }
            Err(error) => return Err(error.to_string()),
        };
        let snapshot = match self.key.open::<Snapshot>(&last.payload) {
            UnsealResult::Read(snapshot) => Some(snapshot),
            // The next snapshot replaces the announcement.
            UnsealResult::Foreign | UnsealResult::Unreadable(_) => {
                tracing::warn!(
                    "the newest announcement in {} was not sealed by a node with this key",
                    self.names.snapshots
                );
                None
            }
            UnsealResult::Newer(version) => {
                return Err(format!(
                    "the snapshot was stored by a node of version {version}; upgrade this node"
                ));
            }
        };
        Ok(NewestSnapshot {
            // The announcement may belong to an earlier stream of the same name.
            snapshot: snapshot.filter(|snapshot| snapshot.identity == self.identity),
            revision: last.sequence,
        })
    }

    /// Stores the file of an index that has applied everything up to this position, unless there is a later snapshot.
    /// Returns true if it was stored.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn store(
        &self,
        position: u64,
        file: &Path,
        newest: &NewestSnapshot,
    ) -> Result<bool, String> {
        let said = |error: std::io::Error| format!("{}: {error}", file.display());
        let (length, hash) = self.hash(file).await.map_err(said)?;
        let objects = self.objects().await?;
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
        let object = format!("{position}-{:016x}", u64::from_le_bytes(nonce));
        let mut data = File::open(file).await.map_err(said)?;
        let put = objects.put(object.as_str(), &mut data).await;
        if let Err(error) = put {
            return Err(error.to_string());
        }
        let before = newest.snapshot.as_ref();
        let snapshot = Snapshot {
            identity: self.identity,
            position,
            length,
            hash,
            object: object.clone(),
            before: before.map(|before| before.object.clone()),
        };
        match self.announce(&snapshot, newest.revision).await {
            Ok(()) => {
                if let Some(oldest) = before.and_then(|before| before.before.as_ref()) {
                    // If the removal fails, the old object takes space but does no harm.
                    let _ = objects.delete(oldest).await;
                }
                Ok(true)
            }
            Err(error) => {
                // Another node has stored a snapshot first, or the answer about this snapshot was lost.
                let found = self.newest().await?.snapshot;
                if found.as_ref().is_some_and(|found| found.object == object) {
                    return Ok(true);
                }
                let _ = objects.delete(&object).await;
                match found {
                    Some(found) if found.position >= position => Ok(false),
                    _ => Err(error),
                }
            }
        }
    }

    /// Announces a snapshot as the newest, if there was no other announcement since `revision`.
    async fn announce(&self, snapshot: &Snapshot, revision: u64) -> Result<(), String> {
        let sealed = self.key.seal(FIRST, snapshot);
        let sealed = sealed.map_err(|error| error.to_string())?;
        let message = PublishMessage::build()
            .payload(sealed.into())
            .expected_last_subject_sequence(revision);
        let subject = self.names.newest.clone();
        let sent = self.context.send_publish(subject, message).await;
        let told = sent.map_err(|error| error.to_string())?.await;
        told.map(drop).map_err(|error| error.to_string())
    }

    /// Reads a snapshot into a file, and verifies its hash.
    ///
    /// # Errors
    /// If the snapshot cannot be read or written, or has another hash.
    pub async fn fetch(&self, snapshot: &Snapshot, to: &Path) -> Result<(), String> {
        let said = |error: std::io::Error| format!("{}: {error}", to.display());
        let objects = self.objects().await?;
        let object = timeout(ACK, objects.get(&snapshot.object)).await;
        let object = object.map_err(|_| "the NATS server does not answer".to_owned())?;
        let mut object = object.map_err(|error| error.to_string())?;
        let mut options: tokio::fs::OpenOptions = corsair_journal::private_file().into();
        let file = options.truncate(true).open(to).await;
        let mut file = file.map_err(said)?;
        let mut hasher = self.key.hasher();
        let mut bytes = vec![0; PART];
        let mut left = snapshot.length;
        while left > 0 {
            let read = timeout(STALLED, object.read(&mut bytes)).await;
            let read =
                read.map_err(|_| "the NATS server has stopped sending the snapshot".to_owned())?;
            let read = read.map_err(|error| error.to_string())?;
            if read == 0 || read as u64 > left {
                return Err("the snapshot does not have the announced length".to_owned());
            }
            hasher.update(&bytes[..read]);
            file.write_all(&bytes[..read]).await.map_err(said)?;
            left -= read as u64;
        }
        if *hasher.finalize().as_bytes() != snapshot.hash {
            return Err("the snapshot does not have the announced hash".to_owned());
        }
        file.sync_all().await.map_err(said)
    }

    /// Returns the length of a file and its keyed hash.
    async fn hash(&self, file: &Path) -> std::io::Result<(u64, [u8; 32])> {
        let mut file = File::open(file).await?;
        let mut hasher = self.key.hasher();
        let mut bytes = vec![0; PART];
        let mut length = 0;
        loop {
            match file.read(&mut bytes).await? {
                0 => return Ok((length, *hasher.finalize().as_bytes())),
                read => {
                    hasher.update(&bytes[..read]);
                    length += read as u64;
                }
            }
        }
    }

    /// Returns the stream that names the newest snapshot.
    async fn announcements(&self) -> Result<Stream, String> {
        let config = Config {
            name: self.names.snapshots.clone(),
            subjects: vec![self.names.newest.clone()],
            max_messages_per_subject: 1,
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..Config::default()
        };
        let made = self.context.get_or_create_stream(config).await;
        made.map_err(|error| error.to_string())
    }

    async fn objects(&self) -> Result<ObjectStore, String> {
        if let Ok(objects) = self.context.get_object_store(&self.names.snapshots).await {
            return Ok(objects);
        }
        let config = object_store::Config {
            bucket: self.names.snapshots.clone(),
            num_replicas: self.replicas,
            ..object_store::Config::default()
        };
        let made = self.context.create_object_store(config).await;
        made.map_err(|error| error.to_string())
    }
}
