//! Nodes that are corsair actors, one for each workload.

mod broadcast;
mod crdt;
mod echo;
mod kafka;
mod lin_kv;
mod unique_ids;

use crate::{Report, Test, TestError};

/// Runs a test with the node of this module that solves its workload.
///
/// # Errors
/// Returns a [`TestError`] if the test cannot be run or fails.
pub fn run(test: &Test) -> Result<Report, TestError> {
    match &*test.workload {
        "echo" => test.run(|_, _| echo::Echo),
        "unique-ids" => test.run(|index, _| unique_ids::UniqueIds::new(index)),
        "broadcast" => test.run(broadcast::Broadcast::new),
        "g-set" => test.run(crdt::Replica::<crdt::Set>::new),
        "g-counter" | "pn-counter" => test.run(crdt::Replica::<crdt::Counter>::new),
        "kafka" => test.run(kafka::Kafka::new),
        "lin-kv" => test.run(lin_kv::LinKv::new),
        other => Err(TestError::Workload(other.to_owned())),
    }
}
