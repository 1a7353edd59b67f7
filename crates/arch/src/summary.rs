//! What runs and searches have found, as JSON says it: the command and the Python module share these names.
//! Times are in seconds, loads in requests per second and entry point.

mod capacity;
mod compared;
mod learned;
mod services;
mod spent;

pub use capacity::{CapacityPoint, CapacitySummary, InstancesPoint, InstancesSummary};
pub use compared::ComparedRow;
pub use learned::{LearnedSummary, QuantileRow, RequestsSummary};
pub use services::{EntrySummary, Named, ServicesSummary, Slowest, TimesSummary};
pub use spent::{ServiceSummary, Spent};
