//! Load generators that measure the speed of streams.
//!
//! [`Workload`] does the work of the published benchmark within the process, without a socket;
//! [`writers`] are clients that write over sockets as fast as the server accepts.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod delivery;
pub mod writers;

pub use delivery::{MeasureError, Workload};
