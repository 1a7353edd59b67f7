//! Starts nodes from a snapshot, and makes snapshots for other nodes.

use crate::disk::blocking;
use crate::error::StartError;
use crate::index::OpenedIndex;
use crate::inner::{Inner, wait};
use crate::log::jetstream::{Connected, Snapshot, Snapshots};
use crate::presence::shared::First;
use corsair_journal::private_directory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file name of a snapshot in the data directory while it is written or read.
const FILE: &str = "index.snapshot";
/// The number of attempts of a node to start from the newest snapshot.
const ATTEMPTS: u32 = 3;
/// The pause between two attempts.
const AGAIN: Duration = Duration::from_secs(1);
/// The interval of checks whether a snapshot is due.
const PAUSE: Duration = Duration::from_secs(2);
/// The pause after a failed attempt.
const FAILED: Duration = Duration::from_secs(60);
/// The default number of entries between two snapshots.
pub(crate) const EVERY: u64 = 1 << 20;

/// Replaces an index that is empty, or ends before the stream begins, by the newest snapshot, if there is one.
///
/// # Errors
/// If entries are missing between the index, or the newest snapshot, and the stream.
pub(crate) async fn begin(
    connected: &Connected,
    mut opened: OpenedIndex,
    data: Option<&Path>,
) -> Result<OpenedIndex, StartError> {
    let snapshots = connected.snapshots();
    let mut attempt = 1;
    loop {
        let held = snapshots.held().await;
        let held = held.map_err(|reason| connected.refused(reason))?;
        let applied = opened.applied().position;
        let is_behind = held.first > 1 && applied < held.first;
        if !is_behind && applied > 0 {
            return Ok(opened);
        }
        let needed = if is_behind { held.first } else { 1 };
        let found = snapshots.newest().await;
        let reason = match found.map(|newest| newest.snapshot) {
            Ok(Some(snapshot)) if snapshot.position >= needed => {
                let scratch = Scratch::new(data, connected.origin())?;
                match fetch(connected, &snapshots, &snapshot, &scratch).await {
                    Ok(()) => {
                        let directory = scratch.directory.clone();
                        opened = blocking(move || opened.replace(&directory, FILE)).await?;
                        tracing::info!("starts from a snapshot of entry {}", snapshot.position);
                        // The stream may have been trimmed again since then.
                        continue;
                    }
                    Err(reason) => reason,
                }
            }
            Ok(_) if !is_behind => return Ok(opened),
            Ok(newest) => {
                let newest = newest.map_or(0, |newest| newest.position);
                return Err(connected.refused(format!(
                    "the stream begins at entry {}, this node has applied {applied}, and the newest snapshot has {newest}: entries are missing in between; restore the server's data",
                    held.first
                )));
            }
            Err(reason) => reason,
        };
        if attempt == ATTEMPTS {
            if is_behind {
                return Err(connected.refused(format!(
                    "the stream begins at entry {} and this node has applied {applied}, but the newest snapshot cannot be read: {reason}",
                    held.first
                )));
            }
            tracing::warn!(
                "starts from the stream's first entry, because the newest snapshot cannot be read: {reason}"
            );
            return Ok(opened);
        }
        attempt += 1;
        tokio::time::sleep(AGAIN).await;
    }
}

/// Stores a snapshot of an index on which no node runs.
///
/// # Errors
/// If the index cannot be copied, or the server refuses the copy.
pub(crate) async fn store(
    connected: &Connected,
    opened: OpenedIndex,
    data: &Path,
) -> Result<(), StartError> {
    let snapshots = connected.snapshots();
    let refused = |reason| connected.refused(reason);
    let newest = snapshots.newest().await.map_err(refused)?;
    let scratch = Scratch::new(Some(data), connected.origin())?;
    let (file, position) = (scratch.file(), opened.applied().position);
    let to = file.clone();
    blocking(move || opened.copy_to(to)).await?;
    match snapshots.store(position, &file, &newest).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused("another node has stored a snapshot".to_owned())),
        Err(reason) => Err(refused(reason)),
    }
}

/// Downloads a snapshot and verifies the complete file.
async fn fetch(
    connected: &Connected,
    snapshots: &Snapshots,
    snapshot: &Snapshot,
    scratch: &Scratch,
) -> Result<(), String> {
    snapshots.fetch(snapshot, &scratch.file()).await?;
    let of = (connected.identity(), snapshot.position);
    let directory = scratch.directory.clone();
    let verified = blocking(move || OpenedIndex::verify_copy(&directory, FILE, of)).await;
    verified.map_err(|error| error.to_string())
}

/// The location of a snapshot file, which is removed when this value is dropped.
struct Scratch {
    directory: PathBuf,
    /// True if the directory was created for the snapshot, because the node has no data directory.
    is_own: bool,
}

impl Scratch {
    fn new(data: Option<&Path>, origin: u64) -> Result<Scratch, StartError> {
        if let Some(data) = data {
            return Ok(Scratch {
                directory: data.to_owned(),
                is_own: false,
            });
        }
        let directory = std::env::temp_dir().join(format!("corsair-courier-{origin:016x}"));
        private_directory(&directory).map_err(|source| StartError::Directory {
            path: directory.clone(),
            source,
        })?;
        Ok(Scratch {
            directory,
            is_own: true,
        })
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.file());
        if self.is_own {
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

/// Makes snapshots on the first of the running nodes, whenever enough entries were stored since the last one.
pub(crate) struct Snapshotter {
    pub snapshots: Snapshots,
    /// True if this node is the first of the running nodes.
    pub first: First,
    pub origin: u64,
    /// The number of entries between two snapshots.
    pub every: u64,
}

impl Snapshotter {
    /// Makes snapshots while the node runs.
    pub async fn run(self, node: Arc<Inner>) {
        let mut said = String::new();
        let mut pause = PAUSE;
        while wait(&node, pause).await {
            pause = PAUSE;
            if !self.first.is_here() || !node.is_up() {
                continue;
            }
            if let Err(reason) = self.keep(&node).await {
                pause = FAILED;
                // The same reason is logged only once.
                if reason != said {
                    tracing::warn!("{reason}");
                    said = reason;
                }
            }
        }
    }

    /// Makes a snapshot if one is due, and trims the stream up to the previous one.
    async fn keep(&self, node: &Inner) -> Result<(), String> {
        let newest = self.snapshots.newest().await?;
        let held = self.snapshots.held().await?;
        let last = newest.snapshot.as_ref();
        let (position, length) = last.map_or((0, 0), |last| (last.position, last.length));
        let entries = node.index.applied().saturating_sub(position);
        if !is_due(entries, self.every, held.bytes, length) {
            return Ok(());
        }
        let data = node.options.data.as_deref();
        let scratch = Scratch::new(data, self.origin).map_err(|error| error.to_string())?;
        let file = scratch.file();
        let copied = node.index.copy_to(&file).await;
        let position = copied.map_err(|error| error.to_string())?;
        let stored = self.snapshots.store(position, &file, &newest).await?;
        drop(scratch);
        if stored {
            node.metrics.snapshots.inc();
            if let Some(before) = last {
                let trimmed = self.snapshots.trim(before.position).await;
                trimmed.map_err(|reason| format!("the stream cannot be trimmed: {reason}; a stream that an earlier version has created keeps all entries"))?;
            }
        }
        Ok(())
    }
}

/// True if there are enough entries since the last snapshot. Large snapshots are made less often, so that storing a
/// snapshot is at most as much work as storing the new entries.
fn is_due(entries: u64, every: u64, held: u64, length: u64) -> bool {
    entries >= every && held >= length / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_after_enough_entries_that_are_not_little_beside_it() {
        assert!(!is_due(99, 100, 1000, 0));
        assert!(is_due(100, 100, 0, 0));
        assert!(is_due(100, 100, 500, 1000));
        assert!(!is_due(100, 100, 499, 1000));
    }
}
