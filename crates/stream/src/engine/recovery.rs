//! Opens the write-ahead log: writes that are not in the restored state are passed to their tasks again.

use super::Engine;
use super::parse::ParsedWrite;
use super::report::WriteError;
use super::write_log::writer::start;
use super::write_log::{Durability, LogError};
use corsair_journal::{Journal, Recovery, Tail};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

impl Engine {
    /// Opens the write-ahead log in this directory, or creates it. First, the writes that are in the log but not in the
    /// restored state are passed to the tasks. So add tasks before this call, and write points after it. From then on
    /// each write is logged before it is passed to tasks. Returns the number of writes that were passed again.
    ///
    /// # Errors
    /// See [`LogError`].
    ///
    /// # Panics
    /// If the engine has a log already.
    pub async fn open_log(
        &self,
        directory: impl Into<PathBuf>,
        durability: Durability,
    ) -> Result<u64, LogError> {
        let directory = directory.into();
        let (restored, identity) = {
            let place = self.shared.restored.lock();
            (place.position, place.identity)
        };
        let tail = match durability {
            Durability::Always => Tail::Synced,
            _ => Tail::Unsynced,
        };
        let (engine, at) = (self.clone(), directory.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut replay = Replay::new(engine, restored);
            let recovery = Recovery::read(&at, restored, tail, |first, count, bytes| {
                replay.record(first, count, bytes)
            })?;
            while !replay.records.is_empty() {
                let given = replay.give_first();
                let directory = at.display().to_string();
                given.map_err(|reason| LogError::Replay { directory, reason })?;
            }
            Ok::<_, LogError>(recovery)
        });
        let recovery = read.await.map_err(io::Error::other)??;
        let shared = &self.shared;
        let (journal, replayed) = match recovery {
            Some(recovery) => {
                if identity.is_some_and(|identity| identity != recovery.identity()) {
                    return Err(LogError::OtherState {
                        directory: directory.display().to_string(),
                    });
                }
                if recovery.discarded() > 0 {
                    tracing::warn!(
                        "the log {} ends with {} bytes of writes that were not complete on disk; they were not answered, or not synced before the machine stopped, and are left out",
                        directory.display(),
                        recovery.discarded()
                    );
                }
                let replayed = (recovery.next() - 1).saturating_sub(restored);
                (recovery.open(&directory)?, replayed)
            }
            None => (
                Journal::create(&directory, random()?, restored + 1, &[])?,
                0,
            ),
        };
        shared.position.fetch_max(restored, Ordering::SeqCst);
        shared.began_now();
        if durability == Durability::Memory {
            return Ok(replayed);
        }
        let log = start(&Arc::downgrade(shared), journal, durability)?;
        if shared.write_log.set(log).is_err() {
            panic!("the engine has a log already");
        }
        Ok(replayed)
    }
}

/// A write of the log, for the tasks that existed when it was logged.
struct LoggedWrite {
    position: u64,
    parsed: ParsedWrite,
}

/// Passes the records of the log to the tasks, in order. Other threads read them ahead.
struct Replay {
    engine: Engine,
    /// The position of the last write in the restored state.
    after: u64,
    /// Records that are being read, the oldest first.
    records: VecDeque<JoinHandle<Result<Vec<LoggedWrite>, String>>>,
}

impl Replay {
    fn new(engine: Engine, after: u64) -> Replay {
        Replay {
            engine,
            after,
            records: VecDeque::new(),
        }
    }

    /// Takes a record of `count` writes, the first of which has position `first`.
    fn record(&mut self, first: u64, count: u32, bytes: &[u8]) -> Result<(), String> {
        let (engine, after) = (self.engine.clone(), self.after);
        let bytes = bytes.to_vec();
        let positions = first..first + u64::from(count);
        self.records.push_back(tokio::task::spawn_blocking(move || {
            engine.read_record(after, positions, &bytes)
        }));
        match self.records.len() > 2 * self.engine.shared.options.workers.get() {
            true => self.give_first(),
            false => Ok(()),
        }
    }

    /// Passes the writes of the oldest record to their tasks.
    fn give_first(&mut self) -> Result<(), String> {
        let Some(record) = self.records.pop_front() else {
            return Ok(());
        };
        let engine = &self.engine;
        engine.shared.io.block_on(async {
            let writes = record.await.map_err(|error| error.to_string())??;
            for write in writes {
                engine.give_again(write).await?;
            }
            Ok(())
        })
    }
}

impl Engine {
    /// Reads the writes of a record, without those that are in the restored state.
    fn read_record(
        &self,
        after: u64,
        positions: std::ops::Range<u64>,
        mut bytes: &[u8],
    ) -> Result<Vec<LoggedWrite>, String> {
        let mut writes = Vec::new();
        for position in positions {
            let read = self.read_entry(&mut bytes);
            let parsed =
                read.map_err(|reason| format!("entry {position} cannot be read: {reason}"))?;
            if position > after {
                writes.push(LoggedWrite { position, parsed });
            }
        }
        Ok(writes)
    }

    /// Passes a write of the log to its tasks.
    async fn give_again(&self, write: LoggedWrite) -> Result<(), String> {
        let LoggedWrite { position, parsed } = write;
        let generation = parsed.generation;
        parsed.wait_for_dropping_tasks().await;
        while let Err(error) = self.shared.wait_for_capacity(&parsed).await {
            if error == WriteError::Closed {
                return Err(error.to_string());
            }
        }
        let _order = self.shared.order.read();
        self.shared.give(parsed);
        self.shared.position.store(position, Ordering::SeqCst);
        self.shared.raise_generation(generation);
        Ok(())
    }
}

/// Returns a random number that identifies a log.
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
