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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::record::What;
    use proptest::prelude::*;

    /// How far a window reaches.
    const WINDOW: u64 = 10;

    /// What is told in a window: by which actor, how much later than the window begins, and
    /// whether the observer looks through the lanes after it.
    #[derive(Clone, Debug)]
    struct Told {
        actor: u32,
        later: u64,
        node: bool,
        looks: bool,
    }

    fn told() -> impl Strategy<Value = Told> {
        (
            0..6u32,
            0..4 * WINDOW,
            prop::bool::weighted(0.1),
            any::<bool>(),
        )
            .prop_map(|(actor, later, node, looks)| Told {
                actor,
                later,
                node,
                looks,
            })
    }

    /// The mark of a record: its number in the order of telling of its actor.
    fn record(at: u64, actor: u32, mark: u32, node: bool) -> Record {
        let what = match node {
            true => What::Node(Box::new(crate::Node {
                name: mark.to_string(),
                full_name: String::new(),
                service: String::new(),
                package: String::new(),
                region: String::new(),
                zone: String::new(),
            })),
            false => What::Edge(mark),
        };
        Record { at, actor, what }
    }

    fn mark(record: &Record) -> (u64, u32, String) {
        let mark = match &record.what {
            What::Node(node) => node.name.clone(),
            What::Edge(mark) => mark.to_string(),
            _ => unreachable!("no other records are made here"),
        };
        (record.at, record.actor, mark)
    }

    proptest! {
        /// Windows of records, told by actors that are dealt over lanes, looked at now and then.
        #[test]
        fn any_interleaving_of_threads_gives_the_same_order(
            windows in prop::collection::vec(prop::collection::vec(told(), 0..30), 1..12),
            lanes in 1..5usize,
            shift in 0..5u32,
        ) {
            let mut merge = Merge::default();
            let mut waiting: Vec<Vec<Record>> = (0..lanes).map(|_| Vec::new()).collect();
            let mut out = Vec::new();
            let mut expected = Vec::new();
            let mut marks = 0;
            for (window, all) in (0u64..).zip(&windows) {
                let begins = window * WINDOW;
                for told in all {
                    marks += 1;
                    let at = begins + told.later;
                    expected.push(record(at, told.actor, marks, told.node));
                    let lane = (told.actor + shift) as usize % lanes;
                    waiting[lane].push(record(at, told.actor, marks, told.node));
                    if told.looks {
                        for lane in &mut waiting {
                            merge.inbox().append(lane);
                        }
                        out.extend(merge.before(begins, false).map(|record| mark(&record)));
                    }
                }
            }
            for lane in &mut waiting {
                merge.inbox().append(lane);
            }
            out.extend(merge.before(u64::MAX, true).map(|record| mark(&record)));
            expected.sort_by_key(Record::key);
            let expected: Vec<_> = expected.iter().map(mark).collect();
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_node_comes_before_what_names_it_at_the_same_instant() {
        let mut merge = Merge::default();
        merge.inbox().push(record(5, 1, 1, false));
        merge.inbox().push(record(5, 2, 2, true));
        let order: Vec<u32> = merge.before(6, false).map(|record| record.actor).collect();
        assert_eq!(order, [2, 1]);
    }
}
