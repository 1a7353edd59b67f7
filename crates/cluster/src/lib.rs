//! One run over many processes, on one machine or on many.
//!
//! Processes [find each other](Membership::meet) by a list of hosts, prove to each other that they know a
//! secret, and compare what program and configuration they have. From then on they watch over each other: if one
//! ends, is stopped or hangs, all end, with the same sentence and in a stated time.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod carrier;
mod error;
mod handshake;
mod hosts;
mod limits;
mod lines;
mod link;
mod listening;
mod local;
mod measure;
#[cfg(feature = "mpi")]
mod mpi;
mod origin;
mod relay;
mod rendezvous;
mod secret;
mod shared;
mod supervisor;
mod tcp;
mod told;
mod wire;

#[cfg(feature = "mpi")]
pub use self::mpi::{Introduction, Mpi};
pub use carrier::{CarrierBuilder, ClusterCarrier, ClusterRun, ExchangeReport, ExchangeTime};
pub use error::ClusterError;
pub use hosts::{DEFAULT_PORT, Host, Hosts, MOST_PROCESSES};
pub use limits::Limits;
pub use local::{Ended, Inherited, LOST, Lineage, LocalProcesses};
pub use measure::{ExchangeCost, measure_exchange};
pub use origin::Origin;
pub use relay::RelaySocket;
pub use rendezvous::{Membership, Mesh};
pub use secret::Secret;
pub use supervisor::{Health, Supervisor};
pub use told::ProcessEnd;

/// A hash of what must be the same in all processes, for [`Membership::configuration`].
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    blake3::hash(bytes).into()
}
