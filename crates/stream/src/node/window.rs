//! `window`: collects points by their own time.
//!
//! A window of a group ends at a multiple of `every` and reaches `period` back. It goes on its way
//! when a point of the group comes that is not older than its end. A point that is older than the
//! beginning of the window being filled is late: it is counted and left out, unless it lies in the
//! gap between two windows, where it belongs to none. Windows without points are not made. When the
//! stream ends, the window being filled goes on its way as it is; when the engine is suspended, it is
//! saved. A group that is idle for longer than groups may be is emitted as it is and forgotten.

use super::retain::Retained;
use super::series::{Limits, Series};
use super::{Counter, Counters, Kept, Operator};
use crate::batch::{Batch, Flow, Group, Rows, Window as Filled};
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) struct Window {
    shape: Shape,
    groups: Series<Filling>,
    /// Points in all groups.
    points: usize,
    /// Parts in all groups.
    parts: usize,
    limits: Limits,
    retained: Retained,
    counts: Counts,
}

/// How long windows are, and how far apart, in nanoseconds.
#[derive(Clone, Copy)]
struct Shape {
    period: i64,
    every: i64,
}

#[derive(Clone, Default)]
struct Counts {
    late: Counter,
    between: Counter,
    over_max_points: Counter,
    over_memory: Counter,
}

/// For how many more points there is room, and what counts those that are left out.
struct Room<'a> {
    points: usize,
    over: &'a Counter,
}

/// What a group has collected.
struct Filling {
    /// When the window being filled ends.
    end: i64,
    parts: Vec<Part>,
    /// Points in all parts.
    points: usize,
}

/// Points that came together.
struct Part {
    batch: Batch,
    first: i64,
    last: i64,
}

impl Window {
    pub(crate) fn new(period: Duration, every: Duration, limits: Limits) -> Window {
        let groups = Series::new(Limits {
            // A window that may still be filled is not idle.
            idle: limits.idle.max((period + every).saturating_mul(2)),
            ..limits
        });
        let counts = Counts {
            over_memory: groups.over_memory().clone(),
            ..Counts::default()
        };
        Window {
            shape: Shape {
                period: saturated(period),
                every: saturated(every),
            },
            groups,
            points: 0,
            parts: 0,
            limits,
            retained: Retained::new(limits.bytes),
            counts,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![
            ("late", self.counts.late.clone()),
            ("between_windows", self.counts.between.clone()),
            ("over_max_points", self.counts.over_max_points.clone()),
        ];
        counters.extend(self.groups.counters());
        counters
    }
}

impl Operator for Window {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let shape = self.shape;
        for (_, filling) in self.groups.expired() {
            self.points -= filling.points;
            self.parts -= filling.parts.len();
            out.extend(filling.window(shape));
        }
        let batch = flow.into_points();
        let times = &batch.block.times;
        let Some(first) = batch.rows.iter().next() else {
            return;
        };
        let new = || Filling {
            end: end_after(times[first], shape.every),
            parts: Vec::new(),
            points: 0,
        };
        let parts = self.parts * size_of::<Part>() * 2;
        let beside = parts + self.retained.held();
        let rows = batch.rows.len();
        let Some(filling) = self.groups.entry_beside(&batch.group, rows, beside, new) else {
            return self.compact();
        };
        let (points, parts_before) = (self.points - filling.points, filling.parts.len());
        let (most, over) = match self.retained.note(&batch.block, parts) {
            true => (self.limits.points, &self.counts.over_max_points),
            // Windows that are full go on their way nevertheless.
            false => (0, &self.counts.over_memory),
        };
        let room = |filling: &Filling| Room {
            points: most.saturating_sub(points + filling.points),
            over,
        };
        let mut begun = 0;
        for (place, row) in batch.rows.iter().enumerate() {
            let time = times[row];
            if time >= filling.end {
                let room = room(filling);
                filling.add(&batch, begun, place, shape, room, &self.counts);
                begun = place;
                filling.advance(time, shape, out);
            }
        }
        let room = room(filling);
        filling.add(&batch, begun, rows, shape, room, &self.counts);
        self.points = points + filling.points;
        self.parts = self.parts - parts_before + filling.parts.len();
        drop(batch);
        self.compact();
    }

    fn finish(&mut self, out: &mut Vec<Flow>) {
        for (_, filling) in self.groups.take() {
            out.extend(filling.window(self.shape));
        }
    }

    fn save(&self) -> Option<Kept> {
        let windows = self.groups.iter().map(|(group, filling)| {
            let parts = filling.parts.iter().map(|part| part.batch.to_block());
            ((**group).clone(), filling.end, parts.collect())
        });
        Some(Kept::Windows(windows.collect()))
    }

    fn restore(&mut self, kept: Kept) {
        let Kept::Windows(windows) = kept else {
            return;
        };
        for (group, end, blocks) in windows {
            let group: Arc<Group> = group.into();
            let parts = blocks.into_iter().filter_map(|block| {
                let batch = Batch::all(block.into(), group.clone());
                let (first, last) = bounds(&batch.block.times, &batch.rows)?;
                Some(Part { batch, first, last })
            });
            let parts: Vec<Part> = parts.collect();
            let points = parts.iter().map(|part| part.batch.rows.len()).sum();
            let kept = parts.len();
            let new = || Filling { end, parts, points };
            if self.groups.entry(&group, points, new).is_some() {
                self.points += points;
                self.parts += kept;
            }
        }
    }
}

impl Window {
    /// Lets go of blocks of which little is kept, when it is time.
    fn compact(&mut self) {
        if self.retained.is_due() {
            let groups = &mut self.groups;
            self.retained.compact(|each| {
                for part in groups.values_mut().flat_map(|filling| &mut filling.parts) {
                    each(&mut part.batch);
                }
            });
        }
    }
}

impl Filling {
    /// Adds the points from one place of a batch to another, all of them before the end, as far as
    /// there is room.
    fn add(
        &mut self,
        batch: &Batch,
        from: usize,
        to: usize,
        shape: Shape,
        room: Room<'_>,
        counts: &Counts,
    ) {
        let mut rows = batch.rows.slice(from, to);
        let times = &batch.block.times;
        let Some((first, _)) = bounds(times, &rows) else {
            return;
        };
        let begin = self.end.saturating_sub(shape.period);
        if first < begin {
            let end_before = self.end.saturating_sub(shape.every);
            let late = rows
                .iter()
                .filter(|&row| times[row] < begin.min(end_before));
            let late = late.count();
            let on_time = rows.iter().filter(|&row| times[row] >= begin);
            let on_time = Rows::from_iter(on_time.map(|row| row as u32));
            counts.late.add(late);
            counts.between.add(rows.len() - on_time.len() - late);
            rows = on_time;
        }
        if rows.len() > room.points {
            room.over.add(rows.len() - room.points);
            rows = rows.slice(0, room.points);
        }
        let Some((first, last)) = bounds(times, &rows) else {
            return;
        };
        self.points += rows.len();
        let batch = batch.with_rows(rows);
        self.parts.push(Part { batch, first, last });
    }

    /// Sends the windows on their way that end at or before `time`, and forgets what no later one
    /// reaches back to.
    fn advance(&mut self, time: i64, shape: Shape, out: &mut Vec<Flow>) {
        while self.end <= time {
            out.extend(self.window(shape));
            self.end = self.end.saturating_add(shape.every);
            let begin = self.end.saturating_sub(shape.period);
            self.parts.retain(|part| part.last >= begin);
            self.points = self.parts.iter().map(|part| part.batch.rows.len()).sum();
            if self.parts.is_empty() {
                self.end = self.end.max(end_after(time, shape.every));
            }
            if self.end == i64::MAX {
                return;
            }
        }
    }

    /// The points of the window being filled.
    fn window(&self, shape: Shape) -> Option<Flow> {
        let begin = self.end.saturating_sub(shape.period);
        let batches: Vec<Batch> = self
            .parts
            .iter()
            .filter_map(|part| part.between(begin, self.end))
            .collect();
        (!batches.is_empty()).then_some(Flow::Window(Filled {
            end: self.end,
            period: shape.period,
            batches,
        }))
    }
}

impl Part {
    /// Its points from `begin` to before `end`.
    fn between(&self, begin: i64, end: i64) -> Option<Batch> {
        if self.first >= begin && self.last < end {
            return Some(self.batch.clone());
        }
        if self.last < begin || self.first >= end {
            return None;
        }
        let times = &self.batch.block.times;
        let inside = |&row: &usize| (begin..end).contains(&times[row]);
        let rows = self.batch.rows.iter().filter(inside);
        let rows = Rows::from_iter(rows.map(|row| row as u32));
        (!rows.is_empty()).then(|| self.batch.with_rows(rows))
    }
}

/// The earliest and the latest time.
fn bounds(times: &[i64], rows: &Rows) -> Option<(i64, i64)> {
    rows.iter().map(|row| times[row]).fold(None, |known, time| {
        let (first, last) = known.unwrap_or((time, time));
        Some((first.min(time), last.max(time)))
    })
}

/// The first multiple of `every` after `time`.
fn end_after(time: i64, every: i64) -> i64 {
    time.div_euclid(every)
        .saturating_add(1)
        .saturating_mul(every)
}

fn saturated(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).max(1)
}
