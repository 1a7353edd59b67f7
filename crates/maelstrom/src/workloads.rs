//! The workloads, one file for each.

pub(crate) mod counter;
pub(crate) mod echo;
pub(crate) mod kafka;
pub(crate) mod lin_kv;
pub(crate) mod set;
pub(crate) mod unique_ids;
