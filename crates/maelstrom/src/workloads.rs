//! The workloads, one file for each, and the list of all of them.

mod counter;
mod echo;
mod kafka;
mod lin_kv;
mod set;
mod unique_ids;

use crate::workload::Workload;

/// The list of all workloads.
pub(crate) const WORKLOADS: [&dyn Workload; 8] = [
    &echo::Echo,
    &unique_ids::UniqueIds,
    &set::BROADCAST,
    &set::GROW_ONLY,
    &counter::GROW_ONLY,
    &counter::POSITIVE_NEGATIVE,
    &kafka::Kafka,
    &lin_kv::LinKv,
];

/// Returns the names of all workloads.
///
/// ```
/// assert!(corsair_maelstrom::workloads().contains(&"lin-kv"));
/// ```
pub fn workloads() -> Vec<&'static str> {
    WORKLOADS.iter().map(|workload| workload.name()).collect()
}
