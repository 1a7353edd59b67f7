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
mod invariant;
mod network;
mod node;
mod plan;
mod program;
mod properties;
mod search;
mod shrink;

pub use corsair;
pub use disk::Disk;
pub use explain::{Cause, Explanation, MOST_STEPS, Step, explain};
pub use invariant::Guarded;
pub use node::{Input, Machine, Node};
pub use plan::{Crash, Delay, FaultPlan, Partition, PlanError};
pub use program::{HuntError, Observer, Program, RunResult, Subject};
pub use properties::{BUGGIFY, Properties, Property};
pub use search::{Failure, Hunt, Hunted, hunt, hunt_with};
pub use shrink::{Replay, ReplayError, Shrunk, shrink};
