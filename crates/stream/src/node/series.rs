//! The state of a node for each group, bounded in number, bytes and time.

use super::counter::Counter;
use super::state::State;
use crate::batch::{Batch, Flow, Group, Watermark};
use crate::hash::HashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The limits of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The maximum number of groups.
    pub(crate) series: usize,
    /// The time without points after which a group is removed.
    pub(crate) idle: Duration,
    /// The maximum number of points in all groups.
    pub(crate) points: usize,
    /// The maximum number of bytes of groups and points.
    pub(crate) bytes: usize,
}

/// A value for each group. The hasher is seeded, so that no sender can make groups collide.
#[derive(Debug)]
pub(crate) struct Series<V> {
    entries: HashMap<Arc<Group>, Entry<V>>,
    limits: Limits,
    /// The memory of all entries, without what their values allocate.
    bytes: usize,
    /// The total of [`PerGroup::numbers`] over all values.
    numbers: usize,
    refused: Counter,
    over_memory: Counter,
    expired: Counter,
    now: Instant,
    /// The number of look-ups since the clock was read.
    asked: u32,
    swept: Instant,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: Instant,
}

/// The number of look-ups after which the clock is read.
const READS: u32 = 64;

impl<V> Series<V> {
    pub(crate) fn new(limits: Limits) -> Series<V> {
        let now = Instant::now();
        Series {
            entries: HashMap::default(),
            limits,
            bytes: 0,
            numbers: 0,
            refused: Counter::default(),
            over_memory: Counter::default(),
            expired: Counter::default(),
            now,
            asked: 0,
            swept: now,
        }
    }

    /// Returns the value of a group, which is created if there is none. Returns `None`, and counts the points, if the
    /// number or the memory of groups is at its limit.
    pub(crate) fn entry(
        &mut self,
        group: &Arc<Group>,
        points: usize,
        make: impl FnOnce() -> V,
    ) -> Option<&mut V> {
        self.entry_beside(group, points, 0, make)
    }

    /// Returns the value like [`Series::entry`], for a node that uses this many bytes besides the groups.
    pub(crate) fn entry_beside(
        &mut self,
        group: &Arc<Group>,
        points: usize,
        beside: usize,
        make: impl FnOnce() -> V,
    ) -> Option<&mut V> {
        self.asked += 1;
        if self.asked >= READS {
            self.asked = 0;
            self.now = Instant::now();
        }
        let full = self.entries.len() >= self.limits.series;
        match self.entries.entry_ref(group) {
            hashbrown::hash_map::EntryRef::Occupied(entry) => {
                let entry = entry.into_mut();
                entry.used = self.now;
                Some(&mut entry.value)
            }
            hashbrown::hash_map::EntryRef::Vacant(_) if full => {
                self.refused.add(points);
                None
            }
            hashbrown::hash_map::EntryRef::Vacant(entry) => {
                let bytes = self.bytes + weight::<V>(group);
                if bytes.saturating_add(beside) > self.limits.bytes {
                    self.over_memory.add(points);
                    return None;
                }
                self.bytes = bytes;
                let used = self.now;
                let value = make();
                Some(&mut entry.insert(Entry { value, used }).value)
            }
        }
    }

    pub(crate) fn get_mut(&mut self, group: &Arc<Group>) -> Option<&mut V> {
        self.entries.get_mut(group).map(|entry| &mut entry.value)
    }

    /// Removes the groups that have been idle for too long, and returns them. Checks four times within the idle time.
    pub(crate) fn expired(&mut self) -> Vec<(Arc<Group>, V)> {
        let idle = self.limits.idle;
        if self.now - self.swept < idle / 4 {
            return Vec::new();
        }
        self.swept = self.now;
        let now = self.now;
        let gone = self.entries.extract_if(|_, entry| now - entry.used >= idle);
        let gone: Vec<_> = gone.map(|(group, entry)| (group, entry.value)).collect();
        self.expired.add(gone.len());
        for (group, _) in &gone {
            self.bytes -= weight::<V>(group);
        }
        gone
    }

    /// Returns the approximate memory of the groups in bytes, without what their values allocate.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Iterates over all groups and their values, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<Group>, &V)> {
        self.entries
            .iter()
            .map(|(group, entry)| (group, &entry.value))
    }

    /// Iterates over all groups and their values, in no particular order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<Group>, &mut V)> {
        self.entries
            .iter_mut()
            .map(|(group, entry)| (group, &mut entry.value))
    }

    /// Calls `each` for the groups of a watermark, in order. Afterwards removes the groups if the watermark requests
    /// this.
    pub(crate) fn watermark(&mut self, watermark: &Watermark, mut each: impl FnMut(&mut V)) {
        let groups = match self.entries.contains_key(&watermark.group) {
            true => vec![watermark.group.clone()],
            false => {
                let groups = self.entries.keys().filter(|group| watermark.is_of(group));
                let mut groups: Vec<Arc<Group>> = groups.cloned().collect();
                groups.sort_unstable();
                groups
            }
        };
        for group in groups {
            if let Some(value) = self.get_mut(&group) {
                each(value);
            }
            if watermark.delete {
                self.remove(&group);
            }
        }
    }

    /// Forgets a group, if it is known.
    pub(crate) fn remove(&mut self, group: &Arc<Group>) {
        if self.entries.remove(group).is_some() {
            self.bytes -= weight::<V>(group);
        }
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut().map(|entry| &mut entry.value)
    }

    /// Removes and returns all groups, in order.
    pub(crate) fn take(&mut self) -> Vec<(Arc<Group>, V)> {
        let mut all: Vec<_> = self
            .entries
            .drain()
            .map(|(group, entry)| (group, entry.value))
            .collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.bytes = 0;
        all
    }

    /// Returns the counters of points whose groups were refused, and of groups that were removed.
    pub(crate) fn counters(&self) -> super::counter::Counters {
        vec![
            ("over_max_series", self.refused.clone()),
            ("expired_series", self.expired.clone()),
            ("over_node_memory", self.over_memory.clone()),
        ]
    }

    /// Returns the counter of points that were dropped because the node used too much memory.
    pub(crate) fn over_memory(&self) -> &Counter {
        &self.over_memory
    }
}

impl<V: Serialize> Series<V> {
    /// Returns all groups and their values, in the saved form of a node.
    pub(crate) fn save(&self) -> State {
        let groups: Vec<(&Group, &V)> = self
            .iter()
            .map(|(group, value)| (&**group, value))
            .collect();
        State::new(self.numbers, &groups)
    }
}

/// An operator whose result for a point depends on the previous points of the same group.
pub(crate) trait PerGroup {
    /// The state that it stores for a group.
    type Value: Default;

    /// Returns the state of all groups.
    fn series(&mut self) -> &mut Series<Self::Value>;

    /// Returns the results of a batch; `value` is the state of the batch's group.
    fn results(&self, batch: &Batch, value: &mut Self::Value) -> Batch;

    /// Returns the count of numbers that a value stores in separate memory.
    fn numbers(_: &Self::Value) -> usize {
        0
    }

    /// Restores the groups that [`save`](Series::save) returned.
    fn restore_groups(&mut self, state: &State)
    where
        Self::Value: DeserializeOwned,
    {
        let groups: Option<Vec<(Group, Self::Value)>> = state.read();
        let series = self.series();
        for (group, value) in groups.into_iter().flatten() {
            series.numbers += Self::numbers(&value);
            series.entry(&group.into(), 0, || value);
        }
    }

    /// Maps a flow and appends the results to `out`. Points continue with their group's value. Each window begins
    /// with a new value, which is dropped at the window's end.
    fn map(&mut self, flow: Flow, out: &mut Vec<Flow>) {
        if let Flow::Window(_) = flow {
            let mut value = Self::Value::default();
            out.extend(flow.map(|batch| self.results(&batch, &mut value)));
            return;
        }
        let series = self.series();
        for (_, value) in series.expired() {
            series.numbers -= Self::numbers(&value);
        }
        let group = flow.group().clone();
        let beside = series.numbers * size_of::<f64>();
        let entry = series.entry_beside(&group, flow.points(), beside, Self::Value::default);
        let Some(mut value) = entry.map(std::mem::take) else {
            return;
        };
        series.numbers -= Self::numbers(&value);
        out.extend(flow.map(|batch| self.results(&batch, &mut value)));
        let series = self.series();
        series.numbers += Self::numbers(&value);
        if let Some(entry) = series.get_mut(&group) {
            *entry = value;
        }
    }
}

/// Returns the approximate memory of an entry in bytes: its slot, the group, and the values of its tags.
fn weight<V>(group: &Group) -> usize {
    size_of::<(Arc<Group>, Entry<V>)>() * 2 + group.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: usize) -> Arc<Group> {
        Arc::new(Group {
            tags: vec![("host".into(), number.to_string().into())],
            ..Group::default()
        })
    }

    fn series(number: usize, idle: Duration) -> Series<usize> {
        Series::new(Limits {
            series: number,
            idle,
            points: usize::MAX,
            bytes: usize::MAX,
        })
    }

    #[test]
    fn groups_of_more_bytes_than_a_node_may_keep_are_refused() {
        let long = |number: usize| {
            Arc::new(Group {
                tags: vec![("host".into(), format!("{number:01000}").into())],
                ..Group::default()
            })
        };
        let mut series: Series<usize> = Series::new(Limits {
            series: usize::MAX,
            idle: Duration::from_millis(1),
            points: usize::MAX,
            bytes: 10_000,
        });
        let taken = |series: &mut Series<usize>| {
            let taken = (0..100).filter(|&at| series.entry(&long(at), 1, || 0).is_some());
            taken.count()
        };
        let count = taken(&mut series);
        assert!((5..10).contains(&count), "{count} groups of a kilobyte");
        assert_eq!(series.counters()[2].1.get(), 100 - count as u64);
        // Expired groups free memory for other groups.
        series.now += Duration::from_millis(2);
        assert_eq!(series.expired().len(), count);
        assert_eq!(series.bytes(), 0);
        assert_eq!(taken(&mut series), count);
    }

    #[test]
    fn one_group_more_than_there_may_be_is_refused_and_the_others_go_on() {
        let mut series = series(2, Duration::MAX);
        for number in [1, 2, 1] {
            *series.entry(&group(number), 1, || 0).unwrap() += 1;
        }
        assert!(series.entry(&group(3), 5, || 0).is_none());
        assert_eq!(series.counters()[0].1.get(), 5);
        assert_eq!(*series.get_mut(&group(1)).unwrap(), 2);
    }

    #[test]
    fn a_group_without_points_for_too_long_is_taken_out() {
        let mut series = series(9, Duration::from_millis(1));
        series.entry(&group(1), 1, || 0);
        series.now += Duration::from_millis(2);
        series.entry(&group(2), 1, || 0);
        assert_eq!(series.expired(), [(group(1), 0)]);
        assert!(series.expired().is_empty());
        assert!(series.get_mut(&group(2)).is_some());
        assert_eq!(series.counters()[1].1.get(), 1);
    }
}
