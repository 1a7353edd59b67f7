//! Brings the records of all lanes into one order.

use crate::recorder::record::Record;
use std::vec::Drain;

/// Records that have been taken from lanes, and cannot be written yet.
///
/// What comes out is the same for any distribution of the records over lanes and any times at
/// which they are taken, as long as each actor's records of one instant are told in their order
/// in one lane, and [`Merge::before`] is called with times that everybody has passed.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// What is left from before, in order, and behind it what has come since.
    records: Vec<Record>,
}

impl Merge {
    /// Where new records go, behind those that are there.
    pub(crate) fn inbox(&mut self) -> &mut Vec<Record> {
        &mut self.records
    }

    /// Takes out, in order, all records that are earlier than `time`; with `all` also those at
    /// the end of time. O(n log n) in what waits, and less the more of it is in order.
    pub(crate) fn before(&mut self, time: u64, all: bool) -> Drain<'_, Record> {
        // Stable: what one actor tells of one instant keeps its order.
        self.records.sort_by_key(Record::key);
        let ready = match all {
            true => self.records.len(),
            false => self.records.partition_point(|record| record.at < time),
        };
        self.records.drain(..ready)
    }
}
