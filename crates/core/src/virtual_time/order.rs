//! The order of a window's events.
//!
//! Only the order at each receiver matters: (time, sender, sequence). So the events are grouped by
//! receiver through a small hash table, and each group, usually one or two events, is ordered by
//! itself. That is linear in the number of events, where a priority queue of all of them would be
//! n log n with a cache miss per step.

use super::scheduled::Scheduled;

const NONE: u32 = u32::MAX;

/// The order of one window's events, and memory for the next one's.
#[derive(Default)]
pub(super) struct Order {
    /// The last event of each hash of a receiver, while grouping; else all [`NONE`].
    table: Vec<u32>,
    /// The event before with the same hash.
    before: Vec<u32>,
    /// One group: (receiver, time, sender, sequence) and index.
    group: Vec<(u128, u32)>,
    /// 0, 1, 2, …
    identity: Vec<u32>,
    order: Vec<u32>,
}

impl Order {
    /// Indices of the events such that those of one receiver are next to each other and in order.
    pub(super) fn of<M>(&mut self, events: &[Scheduled<M>]) -> &[u32] {
        assert!(
            events.len() < NONE as usize,
            "a window holds fewer than 2^32 events"
        );
        let sorted = sorted_prefix(events);
        if events.len() - sorted <= sorted / 8 {
            return self.merge(events, sorted);
        }
        let bits = (events.len().ilog2() + 3).clamp(8, 24);
        if self.table.len() < 1 << bits {
            self.table.resize(1 << bits, NONE);
        }
        let table = &mut self.table[..1 << bits];
        let hash = |to: u32| (to.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize;
        self.before.clear();
        for (index, event) in events.iter().enumerate() {
            let last = &mut table[hash(event.head.to)];
            self.before.push(std::mem::replace(last, index as u32));
        }
        self.order.clear();
        for event in events {
            let last = std::mem::replace(&mut table[hash(event.head.to)], NONE);
            if last == NONE {
                continue;
            }
            if self.before[last as usize] == NONE {
                self.order.push(last);
                continue;
            }
            let mut index = last;
            while index != NONE {
                self.group
                    .push((events[index as usize].head.order(), index));
                index = self.before[index as usize];
            }
            sort(&mut self.group);
            self.order
                .extend(self.group.drain(..).map(|(_, index)| index));
        }
        &self.order
    }

    /// The usual window of one sender that addresses its receivers in turn: all but a few events
    /// are in order. The others, such as that sender's timers, are put between them.
    fn merge<M>(&mut self, events: &[Scheduled<M>], sorted: usize) -> &[u32] {
        let known = self.identity.len();
        self.identity
            .extend(known as u32..events.len().max(known) as u32);
        if sorted == events.len() {
            return &self.identity[..sorted];
        }
        let rest = sorted as u32..events.len() as u32;
        self.group
            .extend(rest.map(|index| (events[index as usize].head.order(), index)));
        self.group.sort_unstable();
        self.order.clear();
        let mut done = 0;
        for (order, index) in self.group.drain(..) {
            let before = |event: &Scheduled<M>| event.head.order() <= order;
            let next = done + events[done..sorted].partition_point(before);
            self.order.extend_from_slice(&self.identity[done..next]);
            self.order.push(index);
            done = next;
        }
        self.order.extend_from_slice(&self.identity[done..sorted]);
        &self.order
    }
}

/// How many events from the first one on are in order.
#[inline]
fn sorted_prefix<M>(events: &[Scheduled<M>]) -> usize {
    let ordered = |pair: &[Scheduled<M>]| {
        let (a, b) = (&pair[0].head, &pair[1].head);
        // Most pairs are decided by their receivers, or have the same sender at the same time.
        a.to < b.to || a.to == b.to && a.order() <= b.order()
    };
    match events.windows(2).position(|pair| !ordered(pair)) {
        Some(last) => last + 1,
        None => events.len(),
    }
}

/// Insertion sort for the usual group of a few, the standard one beyond.
#[inline]
fn sort(group: &mut [(u128, u32)]) {
    if group.len() > 16 {
        return group.sort_unstable();
    }
    for i in 1..group.len() {
        let mut j = i;
        while j > 0 && group[j - 1] > group[j] {
            group.swap(j - 1, j);
            j -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::{Head, Kind};
    use super::*;
    use crate::contract::Random;

    fn event(to: u32, offset: u32, from: u32, seq: u32) -> Scheduled<()> {
        Scheduled::bare(Head::new(offset, Kind::Stop, to, from, seq, 0))
    }

    fn check(order: &mut Order, events: &[Scheduled<()>]) {
        let indices = order.of(events).to_vec();
        let mut all = indices.clone();
        all.sort_unstable();
        assert!(
            all.iter().copied().eq(0..events.len() as u32),
            "every event once"
        );
        let mut seen = std::collections::HashSet::new();
        for pair in indices.windows(2) {
            let (a, b) = (
                &events[pair[0] as usize].head,
                &events[pair[1] as usize].head,
            );
            if a.to == b.to {
                assert!(a.order() <= b.order());
            } else {
                assert!(seen.insert(a.to), "receiver {} in two places", a.to);
            }
        }
    }

    #[test]
    fn groups_by_receiver_and_orders_by_time_sender_sequence() {
        let mut random = Random::new(3);
        let mut order = Order::default();
        let most = if cfg!(miri) { 60 } else { 3000 };
        for receivers in [1, 2, 7, 300, 100_000] {
            let count = 1 + random.below(most);
            let events: Vec<_> = (0..count)
                .map(|seq| {
                    event(
                        random.below(receivers),
                        random.below(50),
                        random.below(9),
                        seq,
                    )
                })
                .collect();
            check(&mut order, &events);
        }
    }

    #[test]
    fn puts_stragglers_between_what_is_in_order() {
        let mut order = Order::default();
        let mut events: Vec<_> = (0..90).map(|i| event(i / 3, 2 * (i % 3), 9, i)).collect();
        events.extend([event(0, 3, 7, 0), event(29, 9, 7, 1), event(12, 0, 7, 2)]);
        check(&mut order, &events);
        let indices = order.of(&events);
        assert_eq!(
            indices[2], 90,
            "between the second and third event of receiver 0"
        );
        assert_eq!(indices[92], 91);
    }

    #[test]
    fn leaves_what_is_in_order_as_it_is() {
        let mut order = Order::default();
        for count in [0, 1, 40, 5] {
            let events: Vec<_> = (0..count).map(|i| event(i / 5, 3, 9, i)).collect();
            assert!(order.of(&events).iter().copied().eq(0..count));
        }
    }
}
