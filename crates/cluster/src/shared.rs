//! Memory that two processes of one machine share, instead of a socket between them.
//!
//! Who connects makes it and says with its hello where it is; who listens opens it, or leaves it, and then the socket carries
//! everything. It has a ring of bytes for each direction, with one side that writes and one that reads. The socket is still
//! there: a byte wakes a side that sleeps, and its end tells that the other process is gone.

#[cfg(target_os = "linux")]
mod memory;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(target_os = "linux")]
pub(crate) use memory::Memory;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::Memory;

use serde::{Deserialize, Serialize};

/// Where a process has memory for itself and another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// A hash of what no two machines, and no two spaces of process numbers, have in common.
    machine: [u8; 32],
    process: u32,
    file: i32,
    /// A random number that the memory begins with.
    key: u64,
}
