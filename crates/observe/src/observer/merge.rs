//! Merges the records of all lanes into one order.

use crate::recorder::record::Record;
use std::collections::BTreeMap;
use std::vec::Drain;

/// Records that have been taken from lanes but cannot be written yet.
///
/// The order of the output depends neither on the distribution of the records over lanes nor on the times at which they
/// are taken from the lanes. This holds as long as each actor's records of one instant are in order in one lane, and
/// all actors have passed the times with which [`Merge::before`] is called.
///
/// Each record is sorted only once, together with the records that are written at the same time. Until then it is
/// stored with other records of about the same time, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Merge {
    /// True if no later record can be earlier than the time of the last call of [`Merge::before`].
    in_order: bool,
    /// Records received since the last effective call of [`Merge::before`].
    arrived: Vec<Record>,
    /// Later records, by slice of time.
    later: BTreeMap<u64, Vec<Record>>,
    ready: Vec<Record>,
    /// The time of the last call of [`Merge::before`].
    seen: u64,
    /// The time of the latest record so far.
    newest: u64,
}

/// The binary logarithm of a slice's length: a slice is 2^20 ns, about as long as a window.
const SLICE: u32 = 20;

impl Merge {
    /// Creates an empty merge. `in_order` says that records received after a call of [`Merge::before`] are never
    /// earlier than the time of this call.
    pub(crate) fn new(in_order: bool) -> Merge {
        Merge {
            in_order,
            arrived: Vec::new(),
            later: BTreeMap::new(),
            ready: Vec::new(),
            seen: 0,
            newest: 0,
        }
    }

    /// Returns true if no records are waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.later.is_empty() && self.arrived.is_empty()
    }

    /// Returns the buffer for new records.
    pub(crate) fn inbox(&mut self) -> &mut Vec<Record> {
        &mut self.arrived
    }

    /// Returns a time just after the latest record that [`Merge::before`] has seen. On the wall clock, all records of
    /// earlier times are taken when the observer next looks through the lanes.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Takes all records earlier than `time`, in order. If `all` is true, also takes the records with the largest
    /// possible time. The cost is O(n log n) in the number of taken records, and O(1) for each other record.
    pub(crate) fn before(&mut self, time: u64, all: bool) -> Drain<'_, Record> {
        // Until time advances, no earlier record can arrive.
        if time == self.seen && self.in_order && !all {
            return self.ready.drain(..);
        }
        self.seen = time;
        let is_due = |record: &Record| all || record.at < time;
        // Slices that begin before the time come first, and new records follow in the order of arrival, so that an
        // actor's records of one instant stay in order.
        let due = match all {
            true => std::mem::take(&mut self.later),
            false => {
                let not_due = self.later.split_off(&((time >> SLICE).saturating_add(1)));
                std::mem::replace(&mut self.later, not_due)
            }
        };
        let arrived = due.into_values().flatten().chain(self.arrived.drain(..));
        for record in arrived {
            self.newest = self.newest.max(record.at.saturating_add(1));
            match is_due(&record) {
                true => self.ready.push(record),
                false => {
                    let slice = self.later.entry(record.at >> SLICE).or_default();
                    slice.push(record);
                }
            }
        }
        self.ready.sort_by_key(Record::key);
        self.ready.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::record::RecordedEvent;
    use proptest::prelude::*;

    /// The length of a window: either a slice contains several windows, or a window contains several slices.
    const WINDOW: u64 = 1 << (SLICE - 2);

    /// A record of a window: its actor, its offset from the start of the window, whether it is a
    /// node, and whether the observer looks through the lanes after it.
    #[derive(Clone, Debug)]
    struct Step {
        actor: u32,
        later: u64,
        node: bool,
        looks: bool,
    }

    fn told() -> impl Strategy<Value = Step> {
        (
            0..6u32,
            prop_oneof![0..4 * WINDOW, Just(0), Just(WINDOW)],
            prop::bool::weighted(0.1),
            any::<bool>(),
        )
            .prop_map(|(actor, later, node, looks)| Step {
                actor,
                later,
                node,
                looks,
            })
    }

    /// Creates a record. `mark` is the number of the record among the records of its actor.
    fn record(at: u64, actor: u32, mark: u32, node: bool) -> Record {
        let what = match node {
            true => RecordedEvent::Node(Box::new(crate::Node {
                name: mark.to_string(),
                container: None,
                full_name: String::new(),
                service: String::new(),
                package: String::new(),
                region: String::new(),
                zone: String::new(),
            })),
            false => RecordedEvent::Edge(mark),
        };
        Record { at, actor, what }
    }

    fn mark(record: &Record) -> (u64, u32, String) {
        let mark = match &record.what {
            RecordedEvent::Node(node) => node.name.clone(),
            RecordedEvent::Edge(mark) => mark.to_string(),
            _ => unreachable!("no other records are made here"),
        };
        (record.at, record.actor, mark)
    }

    proptest! {
        // Guarantee: observe-1.
        /// Actors in different lanes record events, window by window. The observer takes records from the lanes at
        /// random times.
        #[test]
        fn any_interleaving_of_threads_gives_the_same_order(
            windows in prop::collection::vec(prop::collection::vec(told(), 0..30), 1..12),
            lanes in 1..5usize,
            shift in 0..5u32,
        ) {
            let mut merge = Merge::new(true);
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

    // Guarantee: observe-3.
    #[test]
    fn a_node_comes_before_what_names_it_at_the_same_instant() {
        let mut merge = Merge::new(true);
        merge.inbox().push(record(5, 1, 1, false));
        merge.inbox().push(record(5, 2, 2, true));
        let order: Vec<u32> = merge.before(6, false).map(|record| record.actor).collect();
        assert_eq!(order, [2, 1]);
    }
    #[test]
    fn without_an_order_what_has_come_waits_for_what_was_recorded_before_it() {
        let mut merge = Merge::new(false);
        let mut pass = |arrived: &[u64]| -> Vec<u64> {
            let time = merge.newest();
            for &at in arrived {
                merge.inbox().push(record(at, 1, 1, false));
            }
            merge.before(time, false).map(|record| record.at).collect()
        };
        // The observer took the records of actor 3's lane before 3 was recorded, and the records of actor 7's lane
        // after 7 was recorded.
        assert!(pass(&[7, 5]).is_empty());
        assert_eq!(pass(&[3, 9]), [3, 5, 7]);
        assert_eq!(pass(&[8]), [8, 9]);
        // A record that arrives after its time has passed is written at once.
        assert_eq!(pass(&[4]), [4]);
        assert!(pass(&[]).is_empty());
    }
}
