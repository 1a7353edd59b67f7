//! `window`: collects points by their own time.
//!
//! A window of a group ends at a multiple of `every` and covers the `period` before it. It is sent when a point of the
//! group arrives that is not before its end. A point that is older than the beginning of the window being filled is
//! late: it is counted and left out. A point in the gap between two windows belongs to no window. Windows without
//! points are not created. When the stream ends, the window being filled is sent as it is. When the engine is
//! suspended, that window is saved. If a group is idle for too long, its window is sent as it is and the group is
//! removed.

use super::buffer::{self, Buffer};
use crate::batch::{Batch, Flow, Group, Rows, Watermark, Window as Filled};
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::retain::RetainedBlocks;
use crate::node::saved_batches::{BatchSaver, SavedBatch, SavedBlocks};
use crate::node::series::{Limits, Series};
use crate::node::{Built, Context, Counter, Counters, Definition, Input, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Time, Writer, overlap, positive};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["window"],
    properties: buffer::PROPERTIES,
    parse,
};

/// The properties of a window whose period is in the parentheses.
const PROPERTIES: &[&str] = &["period", "every"];

/// Collects the points of `period`, ending at each multiple of `every`, by the points' own time.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The length of a window.
    pub period: Duration,
    /// The distance between the ends of two windows.
    pub every: Duration,
}

impl<'p> Chain<'p> {
    /// Adds a `window`: the points of `period`, at each multiple of `every`.
    pub fn window(self, period: Duration, every: Duration) -> Chain<'p> {
        self.then(Window { period, every })
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let (mut period, mut every) = (None, None);
    parser.arguments(|parser| {
        let span = parser.span;
        if parser.is_word("every") {
            parser.advance();
            return set(&mut every, parser.duration()?, "every", span);
        }
        set(&mut period, parser.duration()?, "period", span)
    })?;
    let Some(given) = period else {
        return buffer::parse(parser, call, every).map(AnyDefinition::from);
    };
    while let Some((property, span)) = parser.property(PROPERTIES)? {
        let slot = match property {
            "period" => &mut period,
            _ => &mut every,
        };
        set(slot, parser.argument(Parser::duration)?, property, span)?;
    }
    Ok(AnyDefinition::from(Window {
        period: given,
        every: every.unwrap_or(given),
    }))
}

impl Definition for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn gives_windows(&self, _: bool) -> bool {
        true
    }

    fn check_inputs(&self, inputs: &[Input<'_>]) -> Result<(), Rule> {
        Buffer::check_inputs(inputs)
    }

    fn check(&mut self) -> Result<(), Rule> {
        positive("period", self.period)?;
        positive("every", self.every)?;
        overlap(self.period, self.every)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let every = format_args!("every {}", Time(self.every));
        out.arguments(&[&Time(self.period), &every])
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let limits = context.limits;
        let groups = Series::new(Limits {
            // A window that may still be filled is not idle.
            idle: limits.idle.max((self.period + self.every).saturating_mul(2)),
            ..limits
        });
        let counts = Counts {
            over_memory: groups.over_memory().clone(),
            ..Counts::default()
        };
        Built::from(WindowOperator {
            shape: Shape {
                period: saturated(self.period),
                every: saturated(self.every),
            },
            groups,
            points: 0,
            parts: 0,
            limits,
            retained: RetainedBlocks::new(limits.bytes),
            counts,
        })
    }
}

/// The operator of a `window`.
struct WindowOperator {
    shape: Shape,
    groups: Series<Filling>,
    /// The number of points in all groups.
    points: usize,
    /// The number of parts in all groups.
    parts: usize,
    limits: Limits,
    retained: RetainedBlocks,
    counts: Counts,
}

/// The length of windows and the distance between their ends, in nanoseconds.
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

/// The capacity left for points, and the counter of points beyond it.
struct Capacity<'a> {
    points: usize,
    over: &'a Counter,
}

/// The points that a group has collected.
struct Filling {
    /// The end of the window that is being filled.
    end: i64,
    parts: Vec<Chunk>,
    /// The number of points in all parts.
    points: usize,
}

/// Points that arrived in one batch.
struct Chunk {
    batch: Batch,
    first: i64,
    last: i64,
}

impl Operator for WindowOperator {
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
        let parts = self.parts * size_of::<Chunk>() * 2;
        let beside = parts + self.retained.held();
        let rows = batch.rows.len();
        let Some(filling) = self.groups.entry_beside(&batch.group, rows, beside, new) else {
            return self.compact();
        };
        let (points, parts_before) = (self.points - filling.points, filling.parts.len());
        let (most, over) = match self.retained.note(&batch.block, parts) {
            true => (self.limits.points, &self.counts.over_max_points),
            // Without capacity the point is not stored, but full windows are sent nevertheless.
            false => (0, &self.counts.over_memory),
        };
        let room = |filling: &Filling| Capacity {
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

    fn watermark(&mut self, watermark: &Watermark, out: &mut Vec<Flow>) {
        let shape = self.shape;
        let (mut points, mut parts) = (self.points, self.parts);
        self.groups.watermark(watermark, |filling| {
            points -= filling.points;
            parts -= filling.parts.len();
            filling.advance(watermark.time, shape, out);
            if !watermark.delete {
                points += filling.points;
                parts += filling.parts.len();
            }
        });
        (self.points, self.parts) = (points, parts);
    }

    fn finish(&mut self, out: &mut Vec<Flow>) {
        for (_, filling) in self.groups.take() {
            out.extend(filling.window(self.shape));
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![
            ("late", self.counts.late.clone()),
            ("between_windows", self.counts.between.clone()),
            ("over_max_points", self.counts.over_max_points.clone()),
        ];
        counters.extend(self.groups.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        let mut saver = BatchSaver::default();
        let windows = self.groups.iter().map(|(group, filling)| {
            let parts = filling.parts.iter().map(|part| saver.add(&part.batch));
            (&**group, filling.end, parts.collect())
        });
        let windows: Vec<(&Group, i64, Vec<SavedBatch>)> = windows.collect();
        Some(State::new(self.points, &(saver.finish(), windows)))
    }

    fn restore(&mut self, state: &State) {
        type Windows = Vec<(Group, i64, Vec<SavedBatch>)>;
        let Some((blocks, windows)) = state.read::<(SavedBlocks, Windows)>() else {
            return;
        };
        for block in blocks.iter() {
            self.retained.note(block, 0);
        }
        for (group, end, parts) in windows {
            let group: Arc<Group> = group.into();
            let parts = parts.into_iter().filter_map(|part| {
                let batch = blocks.batch(part, &group)?;
                let (first, last) = bounds(&batch.block.times, &batch.rows)?;
                Some(Chunk { batch, first, last })
            });
            let parts: Vec<Chunk> = parts.collect();
            let points = parts.iter().map(|part| part.batch.rows.len()).sum();
            let restored = parts.len();
            let new = || Filling { end, parts, points };
            if self.groups.entry(&group, points, new).is_some() {
                self.points += points;
                self.parts += restored;
            }
        }
    }
}

impl WindowOperator {
    /// If necessary, releases blocks of which only few rows are retained.
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
    /// Adds the points of a range of a batch, all of which are before the end, up to the capacity.
    fn add(
        &mut self,
        batch: &Batch,
        from: usize,
        to: usize,
        shape: Shape,
        room: Capacity<'_>,
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
        self.parts.push(Chunk { batch, first, last });
    }

    /// Sends the windows that end at or before `time`, and drops points that no later window contains.
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

    /// Returns the points of the window being filled.
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

impl Chunk {
    /// Returns the points from `begin` up to, but not including, `end`.
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

/// Returns the earliest and the latest time.
fn bounds(times: &[i64], rows: &Rows) -> Option<(i64, i64)> {
    rows.iter().map(|row| times[row]).fold(None, |known, time| {
        let (first, last) = known.unwrap_or((time, time));
        Some((first.min(time), last.max(time)))
    })
}

/// Returns the first multiple of `every` after `time`.
fn end_after(time: i64, every: i64) -> i64 {
    time.div_euclid(every)
        .saturating_add(1)
        .saturating_mul(every)
}

fn saturated(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).max(1)
}
