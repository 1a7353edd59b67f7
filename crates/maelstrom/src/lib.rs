//! The workloads of Jepsen's [Maelstrom](https://github.com/jepsen-io/maelstrom): clients, network, faults, services and
//! checkers.
//!
//! There are two kinds of nodes. A corsair actor whose messages are [`Packet`]s runs in virtual time ([`Test::run`]). A
//! process in any language exchanges lines of JSON through standard input and output, and runs at the speed of the wall
//! clock ([`Test::run_processes`]). Both kinds use the same network and the same checkers.
//!
//! ```
//! use corsair::{Actor, Context, Event, Flow};
//! use corsair_maelstrom::{Body, Packet, Test};
//!
//! /// Returns what it is sent.
//! struct Echo;
//!
//! impl Actor<Packet> for Echo {
//!     fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
//!         if let Event::Message { from, body: Packet::Body(mut request) } = event {
//!             let echo = request.take("echo").unwrap_or_default();
//!             let reply = Body::new("echo_ok").with("echo", echo).reply_to(&request);
//!             cx.send(from, Packet::Body(reply));
//!         }
//!         Flow::Continue
//!     }
//! }
//!
//! let report = Test::new("echo").run(|_, _| Echo)?;
//! assert!(report.is_valid(), "{report}");
//! # Ok::<(), corsair_maelstrom::TestError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod body;
mod client;
mod cluster;
mod history;
mod network;
pub mod nodes;
mod process;
mod report;
mod service;
mod test;
mod topology;
mod workload;
mod workloads;

pub use body::{Body, LineError, Packet};
pub use cluster::{Cluster, SERVICES};
pub use history::Record;
pub use network::LatencyShape;
pub use process::Program;
pub use report::{Messages, Report};
pub use test::{Test, TestError};
pub use topology::{TOPOLOGIES, Topology};
pub use workload::Findings;
pub use workloads::workloads;
