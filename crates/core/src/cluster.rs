//! A run whose actors are distributed over several processes, with the same result as a run in one process.
//!
//! All processes run the same program with the same configuration. Each process [runs its part](run_part) and reports
//! the outcome to the first process, which [combines the reports](conclude_parts). At the end of every window a
//! [`Carrier`] exchanges bytes with the other processes. The crate `corsair-cluster` has a carrier that uses MPI;
//! [`thread_carriers`] creates carriers between threads, for tests.
//!
//! All actors must be spawned [by kind](crate::Kind), and messages must be serializable.

pub use crate::virtual_time::{
    Beginning, Carrier, ProcessLost, ProcessPart, SavedPart, Saving, ThreadCarrier, conclude_parts,
    run_inputs, run_part, thread_carriers,
};
