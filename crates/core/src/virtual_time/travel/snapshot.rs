//! A saved run: a head, which is equal on all shards, and a part for each shard.
//!
//! All data in a part names its actor, so the contents can be divided among any number of shards.

use super::part::{AnyPart, StoredPart};
use super::{CodecError, SnapshotError, get};
use crate::contract::{Config, DeadLetters, Message, Panics, Time};
use crate::virtual_time::addresses::AddressesCheckpoint;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The version of the format.
const FORMAT: u32 = 4;

/// A run in virtual time that was saved while it was paused:
/// [`Simulation::snapshot`](crate::Simulation::snapshot).
///
/// The parts of a snapshot are in memory, or in [external storage](Snapshot::stored_in), from which only the needed
/// bytes are read.
#[derive(Clone)]
pub struct Snapshot {
    head: Vec<u8>,
    parts: Vec<AnyPart>,
}

impl Snapshot {
    pub(in super::super) fn new(head: &Head, parts: Vec<Vec<u8>>) -> Result<Snapshot, CodecError> {
        let head = encoded(head)?;
        let parts = in_memory(parts);
        Ok(Snapshot { head, parts })
    }

    /// Creates a snapshot from the result of [`Snapshot::into_parts`].
    ///
    /// # Errors
    /// If the head is invalid, or belongs to another number of parts.
    pub fn from_parts(head: Vec<u8>, parts: Vec<Vec<u8>>) -> Result<Snapshot, SnapshotError> {
        Snapshot::checked(head, in_memory(parts))
    }

    /// Creates a snapshot whose parts are in external storage, in their order.
    ///
    /// # Errors
    /// If the head is invalid, or belongs to another number of parts.
    pub fn stored_in(
        head: Vec<u8>,
        parts: Vec<Arc<dyn StoredPart>>,
    ) -> Result<Snapshot, SnapshotError> {
        Snapshot::checked(head, parts.into_iter().map(AnyPart::StoredEvent).collect())
    }

    fn checked(head: Vec<u8>, parts: Vec<AnyPart>) -> Result<Snapshot, SnapshotError> {
        let snapshot = Snapshot { head, parts };
        let saved = snapshot.read_head()?.shards as usize;
        if saved != snapshot.parts.len() {
            return Err(SnapshotError::Differs {
                what: "parts:",
                saved: saved.to_string(),
                given: snapshot.parts.len().to_string(),
            });
        }
        Ok(snapshot)
    }

    /// Returns the head, and a part for each worker of the saved run, in memory.
    ///
    /// # Errors
    /// If an external part cannot be read.
    pub fn into_parts(self) -> Result<(Vec<u8>, Vec<Vec<u8>>), SnapshotError> {
        let parts = (1..).zip(self.parts).map(|(number, part)| {
            part.into_bytes()
                .map_err(|error| SnapshotError::corrupt(number, error))
        });
        Ok((self.head, parts.collect::<Result<_, _>>()?))
    }

    pub(super) fn stored(&self) -> &[AnyPart] {
        &self.parts
    }

    /// Returns the size of the snapshot in bytes.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.iter().map(AnyPart::bytes);
        self.head.len() as u64 + parts.sum::<u64>()
    }

    /// Returns the virtual time of the snapshot.
    ///
    /// # Errors
    /// If the head cannot be read.
    pub fn time(&self) -> Result<Time, SnapshotError> {
        Ok(Time::from_nanos(self.read_head()?.now))
    }

    /// Turns the snapshot into a branch: random numbers after the snapshot come from another seed. The latencies of
    /// pairs of actors stay, so that no message overtakes another.
    ///
    /// # Errors
    /// If the head cannot be read.
    pub fn reseed(&mut self, seed: u64) -> Result<(), SnapshotError> {
        let mut head = self.read_head()?;
        head.stream_seed = seed;
        self.head.clear();
        super::put(&mut self.head, &head).map_err(|error| SnapshotError::corrupt(0, error))
    }

    pub(in super::super) fn read_head(&self) -> Result<Head, SnapshotError> {
        let input = &mut self.head.as_slice();
        let format: u32 = get(input).map_err(|error| SnapshotError::corrupt(0, error))?;
        if format != FORMAT {
            return Err(SnapshotError::Differs {
                what: "format",
                saved: format.to_string(),
                given: FORMAT.to_string(),
            });
        }
        get(&mut self.head.as_slice()).map_err(|error| SnapshotError::corrupt(0, error))
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("parts", &self.parts.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

/// Encodes a head.
pub(in super::super) fn encoded(head: &Head) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    super::put(&mut bytes, head)?;
    Ok(bytes)
}

fn in_memory(parts: Vec<Vec<u8>>) -> Vec<AnyPart> {
    let parts = parts.into_iter().map(Arc::new);
    parts.map(AnyPart::Memory).collect()
}

/// The state that all shards agree on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Head {
    format: u32,
    pub(in super::super) shards: u32,
    pub(in super::super) now: u64,
    pub(in super::super) injected: u32,
    pub(in super::super) stream_seed: u64,
    settings: Vec<(String, String)>,
    pub(in super::super) common: Common,
}

/// The part of a head that any shard can provide, because it is equal on all shards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Common {
    pub(in super::super) window: u64,
    pub(in super::super) spawns_wait_from: u64,
    pub(in super::super) spawned: u64,
    pub(in super::super) windows: u64,
    pub(in super::super) counted: bool,
    pub(in super::super) addresses: AddressesCheckpoint,
}

impl Head {
    pub(in super::super) fn new<M: Message>(
        config: &Config,
        now: u64,
        injected: u32,
        stream_seed: u64,
        common: Common,
    ) -> Head {
        let settings = settings::<M>(config).into_iter();
        Head {
            format: FORMAT,
            shards: config.workers.get() as u32,
            now,
            injected,
            stream_seed,
            settings: settings
                .map(|(what, value)| (what.to_owned(), value))
                .collect(),
            common,
        }
    }

    /// Returns an error if a run of this configuration cannot continue from the snapshot.
    pub(in super::super) fn check<M: Message>(&self, config: &Config) -> Result<(), SnapshotError> {
        for (what, given) in settings::<M>(config) {
            let saved = self.settings.iter().find(|(name, _)| name == what);
            let saved = saved.map_or("nothing", |(_, saved)| saved);
            if saved != given {
                let saved = saved.to_owned();
                return Err(SnapshotError::Differs { what, saved, given });
            }
        }
        Ok(())
    }
}

/// Returns the names and values of the settings that determine the result of a run.
pub(in super::super) fn settings<M: Message>(config: &Config) -> Vec<(&'static str, String)> {
    let (min, max) = (config.latency.min(), config.latency.max());
    let bits = config.lookahead_nanos().ilog2();
    let end = (config.end).map_or("never".to_owned(), |end| format!("{} ns", end.as_nanos()));
    let dead_letters = match config.dead_letters {
        DeadLetters::Count => "counted",
        DeadLetters::ToRoot => "to the root",
    };
    let panics = match config.panics {
        Panics::ByExecutor => "by executor",
        Panics::EndRun => "end the run",
        Panics::EndActor => "end the actor",
    };
    vec![
        ("the seed", config.seed.to_string()),
        (
            "latencies",
            format!("{} to {} ns", min.as_nanos(), max.as_nanos()),
        ),
        ("windows of", format!("2^{bits} ns")),
        ("the end", end),
        ("totals per actor", config.per_actor.to_string()),
        ("traces", config.traces.to_string()),
        ("dead letters", dead_letters.to_owned()),
        ("panics", panics.to_owned()),
        ("a warm-up of", format!("{} ns", config.warm_up.as_nanos())),
        ("a network", config.network.is_some().to_string()),
        ("messages", M::KINDS.join(", ")),
    ]
}
