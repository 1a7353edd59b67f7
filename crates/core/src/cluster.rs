//! A run whose actors are in several processes, with the result of one process.
//!
//! All processes run the same program with the same configuration. Each [runs its part](run_part), in which a [`Carrier`]
//! exchanges bytes with the other processes at the end of every window, and reports the outcome to the first process, which
//! [combines the reports](conclude_parts). The crate `corsair-cluster` has a carrier on MPI; [`thread_carriers`] are for tests.
//!
//! All actors are spawned [by kind](crate::Kind), and messages can be serialized.

pub use crate::virtual_time::{
    Beginning, Carrier, ProcessLost, ProcessPart, SavedPart, Saving, ThreadCarrier, conclude_parts,
    course, run_part, thread_carriers,
};
