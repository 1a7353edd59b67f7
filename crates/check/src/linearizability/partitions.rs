//! Independent parts of a history.

use crate::{Model, Operation};
use std::collections::BTreeMap;

/// The operations of one object.
#[derive(Debug)]
pub(super) struct Partition<K> {
    pub(super) key: Option<K>,
    /// Indices of the history, in the order of the calls.
    pub(super) operations: Vec<usize>,
}

/// Divides the history by object; it stays undivided if any operation may concern several objects.
pub(super) fn partitions<M: Model>(
    model: &M,
    history: &[Operation<M::Input, M::Output>],
) -> Vec<Partition<M::Key>> {
    let mut by_key: BTreeMap<M::Key, Vec<usize>> = BTreeMap::new();
    let mut separate = true;
    for (index, operation) in history.iter().enumerate() {
        match model.key(&operation.input, operation.output()) {
            Some(key) => by_key.entry(key).or_default().push(index),
            None => {
                separate = false;
                break;
            }
        }
    }
    let mut partitions: Vec<Partition<M::Key>> = if separate {
        let parts = by_key.into_iter();
        let part = |(key, operations)| Partition {
            key: Some(key),
            operations,
        };
        parts.map(part).collect()
    } else {
        vec![Partition {
            key: None,
            operations: (0..history.len()).collect(),
        }]
    };
    for partition in &mut partitions {
        partition
            .operations
            .sort_by_key(|index| history[*index].call);
    }
    partitions
}
