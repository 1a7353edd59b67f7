//! `join`: points of two inputs that belong to one time.
//!
//! A time belongs to the multiple of the tolerance nearest to it. Points of one group whose times
//! belong to the same multiple are joined, the first with the first, the second with the second. A
//! point without a partner is counted and left out once the other input has gone past its time, or
//! has ended, or when too many wait. Within an input, the points of a group are expected in the order
//! of time.

use super::retain::Retained;
use super::series::{Limits, Series};
use super::{Counter, Counters, Kept, Operator};
use crate::Value;
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Column, Data, Words};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A block of joined points has at most so many cells, and [`CELLS_PER_VALUE`] for each value: points
/// that have no fields in common would make a block of the square of their number.
const FREE_CELLS: usize = 1024;
const CELLS_PER_VALUE: usize = 4;
/// Names of fields that are remembered under their prefix.
const NAMES: usize = 4096;

/// See the [module](self).
pub(crate) struct Join {
    prefixes: [Arc<str>; 2],
    /// At least 1.
    tolerance: i64,
    groups: Series<[Side; 2]>,
    /// The points of each input that have no partner yet, the oldest first.
    unpaired: [Unpaired; 2],
    limits: Limits,
    /// `<prefix>.<field>` by side and field.
    names: [FxHashMap<Arc<str>, Arc<str>>; 2],
    retained: Retained,
    unmatched: Counter,
}

/// The points of one input and group that have no partner yet.
#[derive(Default)]
struct Side {
    points: VecDeque<Point>,
    /// The latest time so far.
    latest: Option<i64>,
}

struct Point {
    time: i64,
    /// Its place among all points of the input.
    number: u64,
    /// One row.
    batch: Batch,
}

/// Which points of an input have no partner yet. Points that have found one stay on the list until
/// they are most of it.
#[derive(Default)]
struct Unpaired {
    count: usize,
    next: u64,
    order: VecDeque<(Arc<Group>, u64)>,
}

impl Unpaired {
    fn push(&mut self, group: &Arc<Group>) -> u64 {
        self.count += 1;
        self.next += 1;
        self.order.push_back((group.clone(), self.next));
        self.next
    }
}

impl Join {
    pub(crate) fn new(prefixes: [Arc<str>; 2], tolerance: Duration, limits: Limits) -> Join {
        Join {
            prefixes,
            tolerance: i64::try_from(tolerance.as_nanos())
                .unwrap_or(i64::MAX)
                .max(1),
            groups: Series::new(limits),
            unpaired: Default::default(),
            limits,
            names: Default::default(),
            retained: Retained::new(limits.bytes),
            unmatched: Counter::default(),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![("unmatched", self.unmatched.clone())];
        counters.extend(self.groups.counters());
        counters
    }

    /// Joins what can be joined of a group, and forgets what cannot be any more.
    fn pair(&mut self, group: &Arc<Group>, out: &mut Vec<Flow>) {
        let Some(sides) = self.groups.get_mut(group) else {
            return;
        };
        let mut pairs = Vec::new();
        loop {
            let [left, right] = sides;
            match (left.points.front(), right.points.front()) {
                (Some(a), Some(b)) if a.time == b.time => {
                    pairs.extend(left.points.pop_front().zip(right.points.pop_front()));
                    self.unpaired[0].count -= 1;
                    self.unpaired[1].count -= 1;
                }
                (a, b) => {
                    let past = |point: Option<&Point>, other: &Side| {
                        point.is_some_and(|point| other.latest.is_some_and(|t| t > point.time))
                    };
                    let side = match (past(a, right), past(b, left)) {
                        (true, true) => usize::from(a.map(|a| a.time) > b.map(|b| b.time)),
                        (true, false) => 0,
                        (false, true) => 1,
                        (false, false) => break,
                    };
                    sides[side].points.pop_front();
                    self.unpaired[side].count -= 1;
                    self.unmatched.add(1);
                }
            }
        }
        let mut pairs = pairs.into_iter().peekable();
        while pairs.peek().is_some() {
            let joined = self.joined(group, &mut pairs);
            out.push(Flow::Points(joined));
        }
    }

    /// A block of as many of the pairs as may be in one: the tags of the group, the fields of both
    /// under their prefixes.
    fn joined(
        &mut self,
        group: &Arc<Group>,
        pairs: &mut std::iter::Peekable<impl Iterator<Item = (Point, Point)>>,
    ) -> Batch {
        let mut fields: [Fields; 2] = Default::default();
        let mut times: Vec<i64> = Vec::new();
        let mut origin = None;
        let mut values = 0;
        while let Some((left, right)) = pairs.peek() {
            let row = times.len();
            let points = [left, right].map(|point| {
                let (block, row) = (&point.batch.block, point.batch.rows.get(0));
                let fields = block.fields();
                let cell = move |field: &Column| Some((field.name.clone(), field.data.get(row)?));
                fields.filter_map(cell).collect::<Vec<_>>()
            });
            let more: usize = points.iter().map(Vec::len).sum();
            let columns = fields[0].cells.len() + fields[1].cells.len() + more;
            let most = FREE_CELLS + CELLS_PER_VALUE * (values + more);
            if row > 0 && (row + 1).saturating_mul(columns) > most {
                break;
            }
            values += more;
            for (fields, point) in fields.iter_mut().zip(points) {
                for (name, value) in point {
                    fields.put(row, name, value);
                }
            }
            times.push(left.time);
            origin.get_or_insert_with(|| left.batch.block.origin.clone());
            pairs.next();
        }
        let rows = times.len();
        let mut columns: Vec<Column> = group.tags.iter().map(|tag| tag_column(tag, rows)).collect();
        for (side, fields) in fields.into_iter().enumerate() {
            for (name, mut cells) in fields.cells {
                cells.resize(rows, None);
                columns.push(Column {
                    name: self.name(side, &name),
                    data: Arc::new(Data::from(cells)),
                });
            }
        }
        let block = Block {
            origin: origin.expect("there is at least one pair"),
            times: times.into(),
            columns,
        };
        Batch::all(Arc::new(block), group.clone())
    }

    /// Leaves out the oldest points of an input until no more than this wait.
    fn limit(&mut self, side: usize, most: usize) {
        let unpaired = &mut self.unpaired[side];
        while unpaired.count > most {
            let Some((group, number)) = unpaired.order.pop_front() else {
                return;
            };
            let waiting = self
                .groups
                .get_mut(&group)
                .map(|sides| &mut sides[side].points);
            if let Some(points) = waiting
                && points.front().is_some_and(|point| point.number == number)
            {
                points.pop_front();
                unpaired.count -= 1;
                self.unmatched.add(1);
            }
        }
        // What has found a partner is taken off the list before it is most of it.
        if unpaired.order.len() > 1024 + 2 * unpaired.count {
            let groups = &mut self.groups;
            unpaired.order.retain(|(group, number)| {
                let sides = groups.get_mut(group);
                let first = sides.and_then(|sides| sides[side].points.front());
                first.is_some_and(|first| first.number <= *number)
            });
        }
    }

    /// Bytes that it keeps beside the blocks of points.
    fn bytes(&self) -> usize {
        let points = self.unpaired.iter().map(|unpaired| unpaired.count);
        let each = size_of::<Point>() + size_of::<(Arc<Group>, u64)>();
        self.groups.bytes() + points.sum::<usize>() * each * 2
    }

    /// Lets go of blocks of which little is kept.
    fn compact(&mut self) {
        let groups = &mut self.groups;
        self.retained.compact(|each| {
            let sides = groups.values_mut().flatten();
            for point in sides.flat_map(|side| &mut side.points) {
                each(&mut point.batch);
            }
        });
    }

    fn name(&mut self, side: usize, field: &Arc<str>) -> Arc<str> {
        let prefix = &self.prefixes[side];
        let names = &mut self.names[side];
        if names.len() >= NAMES {
            names.clear();
        }
        let name = names.entry(field.clone());
        name.or_insert_with(|| format!("{prefix}.{field}").into())
            .clone()
    }

    /// Keeps a point until it finds its partner.
    fn keep(&mut self, input: usize, point: Batch, time: i64) {
        let Some(sides) = self.groups.entry(&point.group, 1, Default::default) else {
            return;
        };
        let number = self.unpaired[input].push(&point.group);
        let side = &mut sides[input];
        side.latest = side.latest.max(Some(time));
        side.points.push_back(Point {
            time,
            number,
            batch: point,
        });
    }
}

/// Columns that grow, in order of first appearance.
#[derive(Default)]
struct Fields {
    cells: Vec<(Arc<str>, Vec<Option<Value>>)>,
    places: FxHashMap<Arc<str>, usize>,
}

impl Fields {
    fn put(&mut self, row: usize, name: Arc<str>, value: Value) {
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.cells.push((name.clone(), Vec::new()));
            self.cells.len() - 1
        });
        let cells = &mut self.cells[place].1;
        cells.resize(row, None);
        cells.push(Some(value));
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

impl Operator for Join {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) {
        for (_, sides) in self.groups.expired() {
            for (side, unpaired) in sides.iter().zip(&mut self.unpaired) {
                unpaired.count -= side.points.len();
                self.unmatched.add(side.points.len());
            }
        }
        let batch = flow.into_points();
        for row in batch.rows.iter() {
            let time = nearest(batch.block.times[row], self.tolerance);
            let one = Rows::Range(row as u32, row as u32 + 1);
            self.keep(input, batch.with_rows(one), time);
        }
        self.pair(&batch.group, out);
        self.limit(input, self.limits.points);
        if !self.retained.note(&batch.block, self.bytes()) {
            // The older half of all that waits makes room.
            for side in 0..2 {
                self.limit(side, self.unpaired[side].count / 2);
            }
            drop(batch);
            self.compact();
        } else if self.retained.is_due() {
            drop(batch);
            self.compact();
        }
    }

    fn finish(&mut self, _: &mut Vec<Flow>) {
        for unpaired in &mut self.unpaired {
            self.unmatched.add(unpaired.count);
            *unpaired = Unpaired::default();
        }
        drop(self.groups.take());
    }

    fn save(&self) -> Option<Kept> {
        let saved = |side: &Side| {
            let points = side.points.iter();
            let points = points.map(|point| (point.time, point.batch.to_block()));
            (side.latest, points.collect())
        };
        let groups = self
            .groups
            .iter()
            .map(|(group, [left, right])| ((**group).clone(), [saved(left), saved(right)]));
        Some(Kept::Join(groups.collect()))
    }

    fn restore(&mut self, kept: Kept) {
        let Kept::Join(groups) = kept else {
            return;
        };
        for (group, sides) in groups {
            let group: Arc<Group> = group.into();
            for (input, (latest, points)) in sides.into_iter().enumerate() {
                for (time, block) in points {
                    self.keep(input, Batch::all(block.into(), group.clone()), time);
                }
                if let Some(sides) = self.groups.entry(&group, 0, Default::default) {
                    sides[input].latest = latest;
                }
            }
        }
    }
}

/// The multiple of `step` nearest to `time`.
fn nearest(time: i64, step: i64) -> i64 {
    let below = time.div_euclid(step) * step;
    let above = time - below >= step - (time - below);
    below.saturating_add(if above && step > 1 { step } else { 0 })
}
