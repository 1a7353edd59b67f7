//! The load that streams are measured with.
//!
//! [`Workload`] is the published benchmark's work in the process itself, without a socket;
//! [`writers`] are clients of a server, over sockets, that write as fast as it takes.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod delivery;
pub mod writers;

pub use delivery::{MeasureError, Workload};
