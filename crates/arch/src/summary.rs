//! Results of runs and searches as JSON, shared by the command and the Python module. Times are in seconds,
//! loads in requests per second and entry point.

mod capacity;
mod compared;
mod gate;
mod learned;
mod services;
mod spent;
mod stability;
mod why;

pub use capacity::{CapacityPoint, CapacitySummary, InstancesPoint, InstancesSummary};
pub use compared::ComparedRow;
pub use gate::{GateSummary, JudgedSummary};
pub use learned::{LearnedSummary, QuantileRow, RequestsSummary};
pub use services::{EntrySummary, ServicesSummary, Slowest, TimesSummary, TopologyNames};
pub use spent::{ServiceSummaries, ServiceSummary};
pub use stability::{MapRow, MapSummary};
pub use why::{ContributionRow, RemedyRow, WhySummary};
