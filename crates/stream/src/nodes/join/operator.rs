//! The work of a `join`: points that wait for partners, and the joining of complete sets.

use super::matching::{self, Matching};
use super::{Fill, Join};
use crate::nodes::buffer::nearest;
use crate::Value;
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Column, Data, Origin, Words};
use crate::node::retain::RetainedBlocks;
use crate::node::saved_batches::{BatchSaver, SavedBatch, SavedBlocks};
use crate::node::series::{Limits, Series};
use crate::node::{Counter, Counters, Operator, State};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The maximum number of cells of a block of joined points, besides [`CELLS_PER_VALUE`] for each value, because points
/// without common fields would make a block of quadratic size.
const FREE_CELLS: usize = 1024;
const CELLS_PER_VALUE: usize = 4;
/// The number of field names that are cached with their prefix.
const NAMES: usize = 4096;

/// See the [module](self).
pub(super) struct JoinOperator {
    join: Join,
    /// The tolerance in nanoseconds, at least 1.
    tolerance: i64,
    inputs: usize,
    groups: Series<WaitingPoints>,
    /// Waiting points, the oldest first: group, time, input and number. Points that have been removed stay in the list
    /// until they are more than half of it.
    order: VecDeque<(Arc<Group>, i64, u32, u64)>,
    waiting: usize,
    next: u64,
    matching: Option<Matching>,
    limits: Limits,
    /// `<prefix>.<field>` by input and field.
    names: Vec<FxHashMap<Arc<str>, Arc<str>>>,
    retained: RetainedBlocks,
    unmatched: Counter,
}

/// The points of a group that wait for partners.
#[derive(Default)]
struct WaitingPoints {
    /// The waiting points by time, and then by input.
    times: BTreeMap<i64, Box<[VecDeque<Point>]>>,
    /// The progress of each input.
    heads: Box<[Option<i64>]>,
}

struct Point {
    number: u64,
    /// A batch of one row.
    batch: Batch,
}

/// A set of points to be joined, by input.
struct Set {
    time: i64,
    points: Vec<Option<Batch>>,
}

/// The saved state of a join.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct JoinState {
    /// The progress of the inputs of each group.
    heads: Vec<(Group, Vec<Option<i64>>)>,
    /// Waiting points: input, time, group and values.
    waiting: Vec<(u32, i64, Group, SavedBatch)>,
    blocks: SavedBlocks,
    /// Points that may still get a partner from another group.
    matching: matching::MatchingState,
}

impl JoinOperator {
    pub(super) fn new(join: Join, limits: Limits) -> JoinOperator {
        let inputs = join.names.len();
        JoinOperator {
            tolerance: i64::try_from(join.tolerance.as_nanos())
                .unwrap_or(i64::MAX)
                .max(1),
            inputs,
            groups: Series::new(limits),
            order: VecDeque::new(),
            waiting: 0,
            next: 0,
            matching: (!join.on.is_empty()).then(|| Matching::new(&join.on, inputs, limits)),
            limits,
            names: vec![FxHashMap::default(); inputs],
            retained: RetainedBlocks::new(limits.bytes),
            unmatched: Counter::default(),
            join,
        }
    }

    /// Adds a point to the waiting points of its group.
    fn keep(&mut self, input: usize, point: Batch, time: i64) {
        let inputs = self.inputs;
        let new = || WaitingPoints {
            times: BTreeMap::new(),
            heads: vec![None; inputs].into(),
        };
        let group = point.group.clone();
        let Some(waiting) = self.groups.entry(&group, 1, new) else {
            return;
        };
        waiting.heads[input] = Some(time);
        let slot = waiting.times.entry(time);
        let slot = slot.or_insert_with(|| (0..inputs).map(|_| VecDeque::new()).collect());
        self.next += 1;
        let (number, batch) = (self.next, point);
        slot[input].push_back(Point { number, batch });
        self.order.push_back((group, time, input as u32, number));
        self.waiting += 1;
    }

    /// Takes the sets of a group that are complete or can never become complete; all sets, if the stream has ended.
    fn take_ready(&mut self, group: &Arc<Group>, all: bool) -> Vec<Set> {
        let mut sets = Vec::new();
        let Some(waiting) = self.groups.get_mut(group) else {
            return sets;
        };
        while let Some(mut entry) = waiting.times.first_entry() {
            let time = *entry.key();
            let past = waiting
                .heads
                .iter()
                .all(|head| head.is_some_and(|head| head > time));
            let slot = entry.get_mut();
            let complete = |slot: &[VecDeque<Point>]| slot.iter().all(|points| !points.is_empty());
            while complete(slot) || (past || all) && slot.iter().any(|points| !points.is_empty()) {
                let points = slot.iter_mut().map(VecDeque::pop_front);
                let points: Vec<Option<Batch>> =
                    points.map(|point| point.map(|point| point.batch)).collect();
                let found = points.iter().flatten().count();
                self.waiting -= found;
                if found == points.len() || self.join.fill != Fill::None {
                    sets.push(Set { time, points });
                } else {
                    self.unmatched.add(found);
                }
            }
            if slot.iter().any(|points| !points.is_empty()) {
                break;
            }
            entry.remove();
        }
        sets
    }

    /// Joins all sets of a group that are ready.
    fn pair(&mut self, group: &Arc<Group>, all: bool, out: &mut Vec<Flow>) {
        let sets = self.take_ready(group, all);
        let mut sets = sets.into_iter().peekable();
        while sets.peek().is_some() {
            let joined = self.joined(group, &mut sets);
            out.push(Flow::Points(joined));
        }
    }

    /// Joins as many sets as fit into one block. Its points have the tags of the group, and the fields of all inputs
    /// with their prefixes.
    fn joined(
        &mut self,
        group: &Arc<Group>,
        sets: &mut std::iter::Peekable<impl Iterator<Item = Set>>,
    ) -> Batch {
        let mut fields: Vec<Fields> = (0..self.inputs).map(|_| Fields::default()).collect();
        let mut times: Vec<i64> = Vec::new();
        let mut origin: Option<Arc<Origin>> = None;
        let mut values = 0;
        while let Some(set) = sets.peek() {
            let row = times.len();
            let first = set.points.iter().flatten().next();
            let Some(first) = first else {
                sets.next();
                continue;
            };
            let of = &first.block.origin;
            // Joined points have the measurement of the first point.
            let renamed = self.join.stream_name.is_none()
                && origin
                    .as_ref()
                    .is_some_and(|origin| origin.measurement != of.measurement);
            let names: Vec<Arc<str>> = fields_of(first).map(|(name, _)| name).collect();
            let cells: Vec<Vec<(Arc<str>, Option<Value>)>> = set
                .points
                .iter()
                .map(|point| match point {
                    Some(point) => fields_of(point).map(|(n, v)| (n, Some(v))).collect(),
                    None => {
                        let value = match &self.join.fill {
                            Fill::Value(value) => Some(value.clone()),
                            _ => None,
                        };
                        names
                            .iter()
                            .map(|name| (name.clone(), value.clone()))
                            .collect()
                    }
                })
                .collect();
            let more: usize = cells.iter().map(Vec::len).sum();
            let columns = fields
                .iter()
                .map(|fields| fields.cells.len())
                .sum::<usize>()
                + more;
            let most = FREE_CELLS + CELLS_PER_VALUE * (values + more);
            if row > 0 && ((row + 1).saturating_mul(columns) > most || renamed) {
                break;
            }
            values += more;
            for (fields, cells) in fields.iter_mut().zip(cells) {
                for (name, value) in cells {
                    fields.put(row, name, value);
                }
            }
            times.push(set.time);
            origin.get_or_insert_with(|| of.clone());
            sets.next();
        }
        let rows = times.len();
        let mut columns: Vec<Column> = group.tags.iter().map(|tag| tag_column(tag, rows)).collect();
        for (input, fields) in fields.into_iter().enumerate() {
            for (name, mut cells) in fields.cells {
                cells.resize(rows, None);
                columns.push(Column {
                    name: self.name(input, &name),
                    data: Arc::new(Data::from(cells)),
                });
            }
        }
        let mut origin = origin.expect("there is at least one set");
        if let Some(name) = &self.join.stream_name {
            origin = Arc::new(Origin {
                measurement: name.clone(),
                ..(*origin).clone()
            });
        }
        let block = Block {
            origin,
            times: times.into(),
            columns,
        };
        Batch::all(Arc::new(block), group.clone())
    }

    /// Drops the oldest points until no more than this number wait.
    fn limit(&mut self, most: usize) {
        while self.waiting > most {
            let Some((group, time, input, number)) = self.order.pop_front() else {
                return;
            };
            let Some(waiting) = self.groups.get_mut(&group) else {
                continue;
            };
            let std::collections::btree_map::Entry::Occupied(mut entry) = waiting.times.entry(time)
            else {
                continue;
            };
            let points = &mut entry.get_mut()[input as usize];
            if points.front().is_some_and(|point| point.number == number) {
                points.pop_front();
                self.waiting -= 1;
                self.unmatched.add(1);
                if entry.get().iter().all(VecDeque::is_empty) {
                    entry.remove();
                }
            }
        }
        // Removed points are deleted from the list before they are the majority.
        if self.order.len() > 1024 + 2 * self.waiting {
            let groups = &mut self.groups;
            self.order.retain(|(group, time, input, number)| {
                let waiting = groups.get_mut(group);
                let slot = waiting.and_then(|waiting| waiting.times.get(time));
                let first = slot.and_then(|slot| slot[*input as usize].front());
                first.is_some_and(|first| first.number <= *number)
            });
        }
    }

    /// Returns the bytes that the join stores in addition to the blocks of points.
    fn bytes(&self) -> usize {
        // For each point, its own size, its entry in `order`, and its share of a tree node.
        let each = size_of::<Point>() + size_of::<(Arc<Group>, i64, u32, u64)>() + 128;
        let matching = self.matching.as_ref().map_or(0, Matching::bytes);
        self.groups.bytes() + self.waiting * each * 2 + matching
    }

    /// Copies rows out of blocks of which few are retained.
    fn compact(&mut self) {
        let (groups, matching) = (&mut self.groups, &mut self.matching);
        self.retained.compact(|each| {
            let slots = groups
                .values_mut()
                .flat_map(|waiting| waiting.times.values_mut());
            for point in slots.flat_map(|slot| slot.iter_mut()).flatten() {
                each(&mut point.batch);
            }
            if let Some(matching) = matching {
                matching.each(each);
            }
        });
    }

    fn name(&mut self, input: usize, field: &Arc<str>) -> Arc<str> {
        let (prefix, delimiter) = (&self.join.names[input], &self.join.delimiter);
        let names = &mut self.names[input];
        if names.len() >= NAMES {
            names.clear();
        }
        let name = names.entry(field.clone());
        name.or_insert_with(|| format!("{prefix}{delimiter}{field}").into())
            .clone()
    }
}

/// Returns the fields of the point in this batch of one row.
fn fields_of(point: &Batch) -> impl Iterator<Item = (Arc<str>, Value)> + '_ {
    let row = point.rows.get(0);
    let fields = point.block.fields();
    fields.filter_map(move |field| Some((field.name.clone(), field.data.get(row)?)))
}

/// Columns that grow, in order of first appearance.
#[derive(Default)]
struct Fields {
    cells: Vec<(Arc<str>, Vec<Option<Value>>)>,
    places: FxHashMap<Arc<str>, usize>,
}

impl Fields {
    fn put(&mut self, row: usize, name: Arc<str>, value: Option<Value>) {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.cells.push((name.clone(), Vec::new()));
            self.cells.len() - 1
        });
        let cells = &mut self.cells[place].1;
        cells.resize(row, None);
        cells.push(value);
    }
}

fn tag_column((name, value): &(Arc<str>, Arc<str>), rows: usize) -> Column {
    let code = if value.is_empty() { Words::MISSING } else { 0 };
    Column {
        name: name.clone(),
        data: Arc::new(Data::Tag(Words {
            codes: vec![code; rows],
            words: vec![value.clone()],
        })),
    }
}

impl Operator for JoinOperator {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) {
        for (_, waiting) in self.groups.expired() {
            let slots = waiting.times.values().flat_map(|slot| slot.iter());
            let points = slots.map(VecDeque::len).sum();
            self.waiting -= points;
            self.unmatched.add(points);
        }
        let batch = flow.into_points();
        let fits = self.retained.note(&batch.block, self.bytes());
        for row in batch.rows.iter() {
            let time = nearest(batch.block.times[row], self.tolerance);
            let one = batch.with_rows(Rows::Range(row as u32, row as u32 + 1));
            let Some(matching) = &mut self.matching else {
                self.keep(input, one, time);
                continue;
            };
            for (input, point, time) in matching.take(input, one, time) {
                let group = point.group.clone();
                self.keep(input, point, time);
                self.pair(&group, false, out);
            }
        }
        self.pair(&batch.group, false, out);
        self.limit(match fits {
            true => self.limits.points,
            // The older half of the waiting points is removed.
            false => self.waiting / 2,
        });
        drop(batch);
        if !fits || self.retained.is_due() {
            self.compact();
        }
    }

    fn finish(&mut self, out: &mut Vec<Flow>) {
        let rest = self.matching.as_mut().map(Matching::rest);
        for (input, point, time) in rest.into_iter().flatten() {
            self.keep(input, point, time);
        }
        let groups = self.groups.iter().map(|(group, _)| group.clone());
        let mut groups: Vec<Arc<Group>> = groups.collect();
        groups.sort_unstable();
        for group in groups {
            self.pair(&group, true, out);
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("unmatched", self.unmatched.clone())];
        counters.extend(self.groups.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        let mut saved = JoinState::default();
        // The points are saved in the order of arrival.
        let mut points = Vec::new();
        for (group, waiting) in self.groups.iter() {
            let heads = waiting.heads.to_vec();
            saved.heads.push(((**group).clone(), heads));
            for (time, slot) in &waiting.times {
                for (input, queue) in slot.iter().enumerate() {
                    points.extend(queue.iter().map(|point| (point, input, *time)));
                }
            }
        }
        points.sort_unstable_by_key(|(point, ..)| point.number);
        let mut saver = BatchSaver::default();
        for (point, input, time) in points {
            let group = (*point.batch.group).clone();
            let batch = saver.add(&point.batch);
            saved.waiting.push((input as u32, time, group, batch));
        }
        saved.blocks = saver.finish();
        if let Some(matching) = &self.matching {
            saved.matching = matching.save();
        }
        let points = saved.waiting.len() + saved.matching.points();
        Some(State::new(points, &saved))
    }

    fn restore(&mut self, state: &State) {
        let Some(saved) = state.read::<JoinState>() else {
            return;
        };
        for (input, time, group, batch) in saved.waiting {
            if let Some(batch) = saved.blocks.batch(batch, &group.into())
                && (input as usize) < self.inputs
            {
                self.keep(input as usize, batch, time);
            }
        }
        let inputs = self.inputs;
        for (group, heads) in saved.heads {
            let new = || WaitingPoints {
                times: BTreeMap::new(),
                heads: vec![None; inputs].into(),
            };
            if let Some(waiting) = self.groups.entry(&group.into(), 0, new)
                && heads.len() == inputs
            {
                waiting.heads = heads.into();
            }
        }
        if let Some(matching) = &mut self.matching {
            matching.restore(saved.matching);
        }
    }
}
