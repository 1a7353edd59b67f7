//! The order of a window's events.
//!
//! Only the order at each receiver matters: (time, sender, sequence). So the events are grouped by receiver through a
//! small hash table, and each group, usually one or two events, is sorted separately. This takes linear time, where a
//! priority queue of all events would take n log n with a cache miss per step.

use super::buffer::Buffer;
use super::stored_event::EventPtr;

const NONE: u32 = u32::MAX;

/// The order of one window's events. Its memory is reused for the next window.
pub(super) struct Order<M> {
    /// The events, buffer after buffer.
    events: Vec<EventPtr<M>>,
    /// The number of leading events that are in order.
    sorted: usize,
    /// True if all events so far are in order.
    in_order: bool,
    /// The last run for each hash of a receiver. While no events are being grouped, all entries are [`NONE`].
    table: Vec<u32>,
    /// Consecutive events of one receiver.
    runs: Vec<Run>,
    /// For each hash with many events, the first run of that hash.
    many: Vec<u32>,
    /// The group being sorted: the key (receiver, time, sender, sequence) and the index of each event.
    group: Vec<(u128, u32)>,
    /// The large group being sorted: the offset in the window in the upper half, and the index in the lower half.
    keys: Vec<u64>,
    /// The working memory of the sort, of the same length as `keys`.
    sorting: Vec<u64>,
    order: Vec<EventPtr<M>>,
}

/// Consecutive events of one receiver, up to the first event of the next run.
#[derive(Clone, Copy)]
struct Run {
    first: u32,
    /// The next run with the same hash.
    next: u32,
}

impl<M> Order<M> {
    pub(super) fn new() -> Order<M> {
        Order {
            events: Vec::new(),
            sorted: 0,
            in_order: true,
            table: Vec::new(),
            runs: Vec::new(),
            many: Vec::new(),
            group: Vec::new(),
            keys: Vec::new(),
            sorting: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Clears the order at the beginning of a window.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.sorted = 0;
        self.in_order = true;
    }

    /// Adds the events of a buffer.
    ///
    /// # Safety
    /// The chunks of the buffer exist until the order is [cleared](Order::clear).
    #[inline]
    pub(super) unsafe fn add(&mut self, buffer: &Buffer<M>) {
        let from = self.events.len();
        // SAFETY: the chunks exist as long as the order has the pointers.
        let sorted = unsafe { buffer.append_to(&mut self.events) };
        let (before, added) = self.events.split_at(from);
        if !self.in_order || added.is_empty() {
            return;
        }
        let joins = before.last().is_none_or(|last| last.is_before(added[0]));
        let sorted = if joins { sorted } else { 0 };
        self.in_order = sorted == added.len();
        self.sorted = from + sorted;
    }

    /// Returns the events, buffer after buffer.
    pub(super) fn events(&self) -> &[EventPtr<M>] {
        &self.events
    }

    /// Removes the events for which `keep` is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(EventPtr<M>) -> bool) {
        self.events.retain(|&event| keep(event));
        // Removing events does not change the order of the others.
        self.sorted = self.sorted.min(self.events.len());
        let pairs = self.events[..self.sorted].windows(2);
        let sorted = pairs.take_while(|pair| pair[0].is_before(pair[1]));
        self.sorted = self.events.len().min(sorted.count() + 1);
    }

    /// Returns the events grouped by receiver and ordered, and whether they are scattered in memory.
    pub(super) fn arrange(&mut self) -> (&[EventPtr<M>], bool) {
        let Order { events, sorted, .. } = self;
        let (count, sorted) = (events.len(), *sorted);
        assert!(
            count < NONE as usize,
            "a window holds fewer than 2^32 events"
        );
        if sorted == count {
            return (&self.events, false);
        }
        if count - sorted <= sorted / 8 {
            return (self.merge(), false);
        }
        self.gather();
        (&self.order, true)
    }

    /// Groups the events by receiver and orders each group.
    fn gather(&mut self) {
        let bits = (self.events.len().ilog2() + 3).clamp(8, 24);
        if self.table.len() < 1 << bits {
            self.table.resize(1 << bits, NONE);
        }
        self.link_runs(bits);
        let Order {
            events,
            table,
            runs,
            many,
            group,
            order,
            ..
        } = self;
        let table = &mut table[..1 << bits];
        order.clear();
        group.clear();
        many.clear();
        for (number, pair) in runs.windows(2).enumerate() {
            let (Run { first, next }, end) = (pair[0], pair[1].first);
            let event = events[first as usize];
            // Only the first run of a hash finds an entry in the table; it handles all runs of that hash.
            if std::mem::replace(&mut table[hash(event.label().to, bits)], NONE) == NONE {
                continue;
            }
            if next == NONE && end == first + 1 {
                order.push(event);
                continue;
            }
            let mut at = number;
            let all = loop {
                let Run { first, next } = runs[at];
                let run = first as usize..runs[at + 1].first as usize;
                if group.len() + run.len() > LARGE {
                    break false;
                }
                let events = events[run].iter().zip(first..);
                group.extend(events.map(|(&event, index)| (event.label().order(), index)));
                if next == NONE {
                    break true;
                }
                at = next as usize;
            };
            if all {
                match group.len() {
                    0..=16 => insert(group),
                    _ => group.sort_unstable(),
                }
                let group = group.iter();
                order.extend(group.map(|&(_, index)| events[index as usize]));
            } else {
                many.push(number as u32);
            }
            group.clear();
        }
        // The order of receivers does not affect the result.
        for index in 0..self.many.len() {
            self.gather_many(self.many[index] as usize);
        }
    }

    /// Finds the runs, links runs with equal hashes, and puts the last run of each hash into the table.
    fn link_runs(&mut self, bits: u32) {
        let table = &mut self.table[..1 << bits];
        self.runs.clear();
        let mut last = None;
        for (&event, index) in self.events.iter().zip(0..) {
            let to = event.label().to;
            if last == Some(to) {
                continue;
            }
            last = Some(to);
            let number = self.runs.len() as u32;
            let before = std::mem::replace(&mut table[hash(to, bits)], number);
            self.runs.push(Run {
                first: index,
                next: NONE,
            });
            if before != NONE {
                self.runs[before as usize].next = number;
            }
        }
        let end = self.events.len() as u32;
        self.runs.push(Run {
            first: end,
            next: NONE,
        });
    }

    /// Sorts the many events of one hash, from run `number` on; usually one receiver gets them from many senders. They
    /// are sorted by time in linear time, because few events have equal times.
    #[cold]
    fn gather_many(&mut self, number: usize) {
        let Order {
            events,
            runs,
            group,
            keys,
            sorting,
            order,
            ..
        } = self;
        let label = |index: u32| events[index as usize].label();
        let first = label(runs[number].first);
        let (to, offset) = (first.to, first.offset());
        let (mut differ, mut alike, mut at) = (0, true, number);
        keys.clear();
        loop {
            let Run { first, next } = runs[at];
            alike &= label(first).to == to;
            let run = &events[first as usize..runs[at + 1].first as usize];
            keys.extend(run.iter().zip(first..).map(|(&event, index)| {
                let this = event.label().offset();
                differ |= this ^ offset;
                u64::from(this) << 32 | u64::from(index)
            }));
            if next == NONE {
                break;
            }
            at = next as usize;
        }
        if !alike {
            // Two receivers with many events share a hash, which is rare.
            group.clear();
            group.extend(
                keys.iter()
                    .map(|&key| (label(key as u32).order(), key as u32)),
            );
            group.sort_unstable();
            order.extend(group.iter().map(|&(_, index)| events[index as usize]));
            return;
        }
        sort_by_digits(keys, sorting, differ);
        let mut done = 0;
        while done < keys.len() {
            let time = keys[done] >> 32;
            let mut end = done + 1;
            while end < keys.len() && keys[end] >> 32 == time {
                end += 1;
            }
            if end > done + 1 {
                let same = &mut keys[done..end];
                group.clear();
                group.extend(
                    same.iter()
                        .map(|&key| (label(key as u32).order(), key as u32)),
                );
                group.sort_unstable();
                for (key, &(_, index)) in same.iter_mut().zip(&*group) {
                    *key = u64::from(index);
                }
            }
            done = end;
        }
        order.extend(keys.iter().map(|&key| events[key as u32 as usize]));
    }

    /// Arranges the events of a frequent kind of window: one sender has addressed its receivers in the order of their
    /// addresses, so almost all events are in order. The remaining events, such as timers of the sender, are merged.
    fn merge(&mut self) -> &[EventPtr<M>] {
        let order = |event: EventPtr<M>| event.label().order();
        let to = |event: EventPtr<M>| event.label().to;
        let (sorted, rest) = self.events.split_at_mut(self.sorted);
        let numbered = rest.iter().zip(0..);
        self.group.clear();
        self.group
            .extend(numbered.map(|(&event, index)| (order(event), index)));
        self.group.sort_unstable();
        self.order.clear();
        let in_order = self.group.iter().map(|&(_, index)| rest[index as usize]);
        self.order.extend(in_order);
        rest.copy_from_slice(&self.order);
        let has = |receiver: u32| {
            let place = sorted.partition_point(|&event| to(event) < receiver);
            sorted
                .get(place)
                .is_some_and(|&event| to(event) == receiver)
        };
        let mut receivers = rest.chunk_by(|&a, &b| to(a) == to(b));
        if !receivers.any(|events| has(to(events[0]))) {
            return &self.events;
        }
        self.order.clear();
        let mut done = 0;
        for &mut this in rest {
            let place = order(this);
            let next = done + sorted[done..].partition_point(|&event| order(event) <= place);
            self.order.extend_from_slice(&sorted[done..next]);
            self.order.push(this);
            done = next;
        }
        self.order.extend_from_slice(&sorted[done..]);
        &self.order
    }
}

/// Returns the index of a receiver in a table of 2^`bits` entries.
#[inline(always)]
fn hash(to: u32, bits: u32) -> usize {
    (to.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize
}

/// The maximum size of a group that is not sorted by radix sort.
const LARGE: usize = 256;

/// Sorts a small group by insertion.
#[inline]
fn insert(group: &mut [(u128, u32)]) {
    for i in 1..group.len() {
        let mut j = i;
        while j > 0 && group[j - 1] > group[j] {
            group.swap(j - 1, j);
            j -= 1;
        }
    }
}

/// Sorts by the upper half of the keys, by radix sort. `differ` has the bits in which keys differ. The sort is stable.
fn sort_by_digits(keys: &mut Vec<u64>, memory: &mut Vec<u64>, differ: u32) {
    const DIGIT: u32 = 10;
    // The previous contents are overwritten.
    memory.resize(keys.len(), 0);
    for shift in (0..u32::BITS).step_by(DIGIT as usize) {
        let digit = |key: u64| (key >> 32 >> shift) as usize & ((1 << DIGIT) - 1);
        if digit(u64::from(differ) << 32) == 0 {
            continue;
        }
        let mut ends = [0u32; 1 << DIGIT];
        for &key in &*keys {
            ends[digit(key)] += 1;
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        for &key in keys.iter().rev() {
            let place = &mut ends[digit(key)];
            *place -= 1;
            memory[*place as usize] = key;
        }
        std::mem::swap(keys, memory);
    }
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Pool;
    use super::super::event::{Head, Kind, Label, ScheduledEvent};
    use super::*;
    use crate::contract::Random;

    fn event(to: u32, offset: u32, from: u32, seq: u32) -> ScheduledEvent<()> {
        ScheduledEvent::bare(Head::new(offset, Kind::Stop, to, from, seq, 0))
    }

    /// Returns the labels of `events` in order, with their previous indices.
    fn arrange(order: &mut Order<()>, events: Vec<ScheduledEvent<()>>) -> Vec<(usize, Label)> {
        let (mut buffer, mut pool) = (Buffer::new(), Pool::new());
        let before: Vec<u128> = events.iter().map(|event| event.head.order()).collect();
        events
            .into_iter()
            .for_each(|event| buffer.push(&mut pool, event));
        order.clear();
        // SAFETY: the buffer exists as long as the events are used.
        unsafe { order.add(&buffer) };
        let place = |label: &Label| before.iter().position(|order| *order == label.order());
        let (arranged, _) = order.arrange();
        let labels = arranged.iter().map(|event| *event.label());
        labels
            .map(|label| (place(&label).unwrap(), label))
            .collect()
    }

    fn check(order: &mut Order<()>, events: Vec<ScheduledEvent<()>>) {
        let count = events.len();
        let arranged = arrange(order, events);
        let mut all: Vec<_> = arranged.iter().map(|(place, _)| *place).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..count), "every event once");
        let mut seen = std::collections::HashSet::new();
        for pair in arranged.windows(2) {
            let (a, b) = (pair[0].1, pair[1].1);
            if a.to == b.to {
                assert!(a.order() <= b.order());
            } else {
                assert!(seen.insert(a.to), "receiver {} in two places", a.to);
            }
        }
    }

    // Guarantee: core-2.
    #[test]
    fn groups_by_receiver_and_orders_by_time_sender_sequence() {
        let mut random = Random::new(3);
        let mut order = Order::new();
        let most = if cfg!(miri) { 6 } else { 3000 };
        for receivers in [1, 2, 7, 300, 100_000] {
            for times in [1, 50, 5_000, 1 << 28] {
                let count = 1 + random.below(most);
                let events: Vec<_> = (0..count)
                    .map(|seq| {
                        let (to, time) = (random.below(receivers), random.below(times));
                        event(to, time, random.below(9), seq)
                    })
                    .collect();
                check(&mut order, events);
            }
        }
    }

    #[test]
    fn many_events_of_two_receivers_that_share_a_hash_are_two_groups() {
        // More bits than the table has for this number of events.
        let bits = 16;
        let twin = (8..).find(|&to| hash(to, bits) == hash(7, bits)).unwrap();
        let mut random = Random::new(3);
        let mut order = Order::new();
        for times in [1, 3000] {
            let few = if cfg!(miri) { 0 } else { 700 };
            let events = (0..LARGE as u32 + few + 1).map(|seq| {
                let to = if random.below(2) == 0 { 7 } else { twin };
                event(to, random.below(times), random.below(9), seq)
            });
            check(&mut order, events.collect());
        }
    }

    /// Thirty receivers with three events each, and three stragglers.
    fn stragglers() -> Vec<ScheduledEvent<()>> {
        let mut events: Vec<_> = (0..90).map(|i| event(i / 3, 2 * (i % 3), 9, i)).collect();
        events.extend([event(0, 3, 7, 0), event(29, 9, 7, 1), event(12, 0, 7, 2)]);
        events
    }

    // Guarantee: core-2.
    #[test]
    fn puts_stragglers_between_what_is_in_order() {
        let mut order = Order::new();
        check(&mut order, stragglers());
        let places: Vec<_> = arrange(&mut order, stragglers())
            .iter()
            .map(|(place, _)| *place)
            .collect();
        assert_eq!(
            places[2], 90,
            "between the second and third event of receiver 0"
        );
        assert_eq!(places[92], 91);
    }

    #[test]
    fn what_is_for_others_than_those_in_order_comes_behind_them() {
        let mut order = Order::new();
        let events = || {
            let mut events: Vec<_> = (3..93).map(|i| event(i / 3, 2 * (i % 3), 9, i)).collect();
            events.extend([event(77, 3, 7, 0), event(0, 9, 7, 1), event(0, 3, 7, 2)]);
            events
        };
        check(&mut order, events());
        let arranged = arrange(&mut order, events());
        let places = arranged.iter().map(|(place, _)| *place);
        assert!(places.eq((0..91).chain([92, 91])));
        // One straggler is for a receiver that has other events.
        let events = events().into_iter().chain([event(30, 1, 7, 3)]).collect();
        check(&mut order, events);
    }

    #[test]
    fn runs_of_one_receiver_between_others_are_one_group() {
        let mut order = Order::new();
        let mut random = Random::new(8);
        for length in [1, 3, 40, LARGE as u32 + 9] {
            let hub = |at: u32| event(7, 100 - at % 100, 1 + at % 3, at);
            let mut events = Vec::new();
            for run in 0..4 {
                events.extend((0..length).map(|at| hub(run * length + at)));
                events.extend((0..3).map(|at| event(8 + random.below(20), at, 9, run)));
            }
            check(&mut order, events);
        }
    }

    #[test]
    fn leaves_what_is_in_order_as_it_is() {
        let mut order = Order::new();
        for count in [0, 1, 40, 5] {
            let events: Vec<_> = (0..count).map(|i| event(i / 5, 3, 9, i)).collect();
            let arranged = arrange(&mut order, events);
            let places = arranged.iter().map(|(place, _)| *place);
            assert!(places.eq(0..count as usize));
        }
    }

    #[test]
    fn what_is_left_when_some_are_taken_out_is_in_order() {
        let (mut buffer, mut pool) = (Buffer::new(), Pool::new());
        stragglers()
            .into_iter()
            .for_each(|event| buffer.push(&mut pool, event));
        let mut order = Order::new();
        for keep in [0, 1, 5, 50, 89, 91] {
            order.clear();
            // SAFETY: the buffer exists until the end of the test.
            unsafe { order.add(&buffer) };
            order.retain(|event| event.label().seq < keep);
            let (arranged, _) = order.arrange();
            let labels: Vec<_> = arranged.iter().map(|event| *event.label()).collect();
            let mut pairs = labels.windows(2).filter(|pair| pair[0].to == pair[1].to);
            assert!(pairs.all(|pair| pair[0].order() < pair[1].order()));
            assert!(labels.iter().all(|label| label.seq < keep));
        }
    }
}
