//! Pirates that are saved while they run, or that are resumed.

use super::watch::Stages;
use crate::checkpoint;
use anyhow::Result;
use corsair::{Addr, AddrRange, Snapshot};
use corsair_observe::checkpoint::Checkpoint;
use serde::Deserialize;
use serde_json::{Value, json};

/// The data saved in addition to the simulation itself.
#[derive(Debug, Deserialize)]
struct Details {
    /// The addresses of the FSM and of the first pirate, and the number of pirates.
    addresses: Option<(u32, u32, u32)>,
}

/// Returns the data of pirates that are saved in addition to the simulation.
pub(super) fn details(stages: &Stages) -> Value {
    let addresses = stages.addresses().map(|(fsm, pirates)| {
        let first = pirates.iter().next().unwrap_or(Addr::NONE);
        (fsm.as_u32(), first.as_u32(), pirates.len())
    });
    json!({ "addresses": addresses })
}

/// Restores the stages from this checkpoint.
///
/// # Errors
/// If the checkpoint does not contain pirates.
pub(super) fn restore_addresses(stages: &Stages, from: &Checkpoint) -> Result<()> {
    if let Some((fsm, first, count)) = checkpoint::details::<Details>(from)?.addresses {
        let pirates = AddrRange::new(Addr::from_u32(first), count);
        stages.set_addresses(Addr::from_u32(fsm), pirates);
    }
    Ok(())
}

/// Returns the snapshot from which pirates resume, with the requested seed.
///
/// # Errors
/// If the checkpoint has no snapshot.
pub(super) fn snapshot(from: &Checkpoint, reseed: Option<u64>) -> Result<Snapshot> {
    let mut snapshot = checkpoint::snapshot_of(from)?;
    if let Some(seed) = reseed {
        snapshot.reseed(seed)?;
    }
    Ok(snapshot)
}
