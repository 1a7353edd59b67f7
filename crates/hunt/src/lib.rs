//! Finds faults in systems of actors, given only the properties that have to hold.
//!
//! A [`Program`] is a number of [`Node`]s, which state properties with [`always!`], [`sometimes!`], [`never!`] and
//! [`eventually!`]. A [`FaultPlan`] makes its nodes crash and lose the data that their [`Disk`] has not synced, and
//! makes its network lose, duplicate, delay and partition messages. A plan is data: together with a seed it gives the
//! same run, bit by bit, on any number of workers. [`hunt`] draws plans until a property is violated, [`shrink`]
//! removes faults that the violation does not need, and a [`Replay`] stores the result in a file.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod disk;
mod explain;
mod fault;
mod guarded;
mod invariant;
mod network;
mod node;
mod plan;
mod program;
mod properties;
mod replay;
mod search;
mod shrink;
mod step;
mod swarm;

pub use corsair;
pub use disk::Disk;
pub use explain::{Explanation, MOST_STEPS, explain};
pub use fault::{Fault, Nodes};
pub use guarded::Guarded;
pub use network::PlanLinks;
pub use node::{Change, Input, Machine, Node};
pub use plan::{Absence, FaultPlan, PlanError, Transmission};
pub use program::{HuntError, Observer, Program, RunResult, Subject, Trace};
pub use properties::{BUGGIFY, Properties, Property};
pub use replay::{Replay, ReplayError};
pub use search::{Failure, Hunt, Hunted, hunt, hunt_with};
pub use shrink::{Shrunk, shrink, shrink_within};
pub use step::{Cause, Step};
