//! One run over many processes, on MPI.
//!
//! `mpirun`, SLURM or the MPI operator of Kubernetes starts the processes, assigns them to machines and numbers them. A
//! [`Member`] represents one of these processes. It [compares](Member::agree) program and flags with the other
//! processes. As a [`Carrier`](corsair::cluster::Carrier) it exchanges events with them at the end of every window, and
//! sends [mail](Mailbox), such as records, to the first process along with the events. At the end it
//! [collects](Member::end) the outcomes of all processes. `Mpi` (feature `mpi`) is the carrier between processes;
//! [`corsair::cluster::thread_carriers`] connects threads, for tests. [`start`] runs `mpirun`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod launch;
mod mail;
#[cfg(feature = "mpi")]
mod measure;
mod member;
#[cfg(feature = "mpi")]
mod mpi;
mod watch;

#[cfg(feature = "mpi")]
pub use self::mpi::{Mpi, MpiCarrier};
pub use error::ClusterError;
#[cfg(feature = "mpi")]
pub use launch::output;
pub use launch::{INSTALL, is_started, start};
pub use mail::{Mailbox, Topic};
#[cfg(feature = "mpi")]
pub use measure::{ExchangeCost, measure_exchange};
pub use member::{Agreement, ExchangeReport, Member, ProcessEnd, Terms};
pub use watch::{Arrivals, Watch};
