//! `window().period(…)` and `window().periodCount(…)`: windows as in Kapacitor.
//!
//! The first window by time ends `every` after the first point of its group, or at a multiple of `every` if windows are
//! aligned. A window is sent when a point arrives that is not before the window's end. The next window ends `every`
//! after that point. Every point goes into the window being filled, even an old one; points older than the period are
//! dropped from the front. A window by count contains the last points. The window being filled when the stream ends is
//! not sent; when the engine is suspended, it is saved.

mod filling;

pub(super) use filling::{nearest, truncated};

use crate::batch::{Batch, Flow, Group, Watermark};
use crate::language::{Call, Parsed, Parser, set};
use crate::node::retain::RetainedBlocks;
use crate::node::saved_batches::{BatchSaver, SavedBatch, SavedBlocks};
use crate::node::series::{Limits, Series};
use crate::node::{Built, Context, Counter, Counters, Definition, Input, Operator, State};
use crate::pipeline::{Chain, MAX_COUNT, Rule, Time, Writer, fits, overlap, positive};
use filling::{Capacity, Filling, Shape, nanos};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The properties of a window whose period is not in the parentheses.
pub(super) const PROPERTIES: &[&str] = &[
    "period",
    "every",
    "align",
    "fillPeriod",
    "periodCount",
    "everyCount",
];

/// A window as in Kapacitor: it begins with the first point of its group, and is sent when a point arrives that is
/// beyond its end. The window being filled when the stream ends is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The points of a period of time.
    Time {
        /// The length of a window.
        period: Duration,
        /// The distance between two windows. With zero a window is sent for every point.
        every: Duration,
        /// True if windows end at multiples of `every`.
        align: bool,
        /// True if the first window waits until its period is full.
        fill_period: bool,
    },
    /// The last points, by number.
    Count {
        /// The number of points in a window.
        period: u64,
        /// The number of points between two windows.
        every: u64,
        /// True if the first window waits until it is full.
        fill_period: bool,
    },
}

impl<'p> Chain<'p> {
    /// Adds a `window().period(…)` or `window().periodCount(…)`: windows as in Kapacitor.
    pub fn buffer(self, buffer: Buffer) -> Chain<'p> {
        self.then(buffer)
    }
}

/// Parses the properties of a `window` without a period in its parentheses; `every` is the content of the parentheses.
pub(super) fn parse(
    parser: &mut Parser<'_>,
    call: &Call<'_>,
    mut every: Option<Duration>,
) -> Parsed<Buffer> {
    let (mut period, mut align, mut fill_period) = (None, false, false);
    let (mut period_count, mut every_count) = (None, None);
    while let Some((property, span)) = parser.property(PROPERTIES)? {
        match property {
            "align" | "fillPeriod" => {
                parser.nothing()?;
                align |= property == "align";
                fill_period |= property == "fillPeriod";
            }
            "periodCount" | "everyCount" => {
                let slot = match property {
                    "periodCount" => &mut period_count,
                    _ => &mut every_count,
                };
                set(slot, parser.argument(Parser::count)?, property, span)?;
            }
            _ => {
                let slot = match property {
                    "period" => &mut period,
                    _ => &mut every,
                };
                set(slot, parser.argument(Parser::duration)?, property, span)?;
            }
        }
    }
    match (period, period_count) {
        (Some(period), None) if every_count.is_none() => Ok(Buffer::Time {
            period,
            every: every.unwrap_or_default(),
            align,
            fill_period,
        }),
        (None, Some(period)) if every.is_none() && !align => Ok(Buffer::Count {
            period,
            every: every_count.unwrap_or(1),
            fill_period,
        }),
        (None, None) => call.missing("a period: `window(10s)` or `.period(10s)`"),
        _ => call.missing(
            "either `.period(…)` and `.every(…)`, or `.periodCount(…)` and `.everyCount(…)`",
        ),
    }
}

impl Buffer {
    /// Checks that the input sends points, because a window cannot contain windows.
    pub(super) fn check_inputs(inputs: &[Input<'_>]) -> Result<(), Rule> {
        match Input::of_windows(inputs) {
            Some(input) => Err(Rule::WindowOfWindows { input }),
            None => Ok(()),
        }
    }
}

impl Definition for Buffer {
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
        match *self {
            Buffer::Time { period, every, .. } => {
                positive("period", period)?;
                fits("every", every)?;
                match every.is_zero() {
                    true => Ok(()),
                    false => overlap(period, every),
                }
            }
            Buffer::Count { period, every, .. } => {
                for (property, count) in [("periodCount", period), ("everyCount", every)] {
                    if count == 0 {
                        return Err(Rule::NotPositive { property });
                    }
                    if count > MAX_COUNT {
                        let most = MAX_COUNT;
                        return Err(Rule::TooMany {
                            property,
                            count,
                            most,
                        });
                    }
                }
                Ok(())
            }
        }
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        let fill_period = match self {
            Buffer::Time {
                period,
                every,
                align,
                fill_period,
            } => {
                out.property("period", &[&Time(*period)])?;
                out.property("every", &[&Time(*every)])?;
                out.flag("align", *align)?;
                fill_period
            }
            Buffer::Count {
                period,
                every,
                fill_period,
            } => {
                out.property("periodCount", &[period])?;
                out.property("everyCount", &[every])?;
                fill_period
            }
        };
        out.flag("fillPeriod", *fill_period)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let (shape, span) = match *self {
            Buffer::Time {
                period,
                every,
                align,
                fill_period,
            } => {
                let shape = Shape::Time {
                    period: nanos(period),
                    every: nanos(every),
                    align,
                    fill: fill_period,
                };
                (shape, period + every)
            }
            Buffer::Count {
                period,
                every,
                fill_period,
            } => {
                let shape = Shape::Count {
                    period: period as usize,
                    every: every as i64,
                    fill: fill_period,
                };
                (shape, Duration::ZERO)
            }
        };
        // A window that may still be filled is not idle.
        let idle = context.limits.idle.max(span.saturating_mul(2));
        let limits = Limits {
            idle,
            ..context.limits
        };
        Built::from(BufferOperator::of(shape, limits))
    }
}

/// The operator of a [`Buffer`].
pub(super) struct BufferOperator {
    shape: Shape,
    groups: Series<Filling>,
    /// The number of points in all groups.
    points: usize,
    /// The number of parts in all groups.
    parts: usize,
    limits: Limits,
    retained: RetainedBlocks,
    over_max_points: Counter,
}

impl BufferOperator {
    /// Collects points with the same time.
    pub(crate) fn moments(limits: Limits) -> BufferOperator {
        BufferOperator::of(Shape::Moment, limits)
    }

    fn of(shape: Shape, limits: Limits) -> BufferOperator {
        BufferOperator {
            shape,
            groups: Series::new(limits),
            points: 0,
            parts: 0,
            limits,
            retained: RetainedBlocks::new(limits.bytes),
            over_max_points: Counter::default(),
        }
    }

    fn compact(&mut self) {
        if self.retained.is_due() {
            let groups = &mut self.groups;
            self.retained.compact(|each| {
                for batch in groups.values_mut().flat_map(|filling| &mut filling.parts) {
                    each(batch);
                }
            });
        }
    }
}

impl Operator for BufferOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        for (_, filling) in self.groups.expired() {
            self.points -= filling.points;
            self.parts -= filling.parts.len();
        }
        let batch = flow.into_points();
        let rows = batch.rows.len();
        let Some(first) = batch.rows.iter().next() else {
            return;
        };
        let shape = self.shape;
        let new = || Filling {
            next: shape.first(batch.block.times[first]),
            parts: VecDeque::new(),
            points: 0,
        };
        let parts = self.parts * size_of::<Batch>() * 2;
        let beside = parts + self.retained.held();
        let Some(filling) = self.groups.entry_beside(&batch.group, rows, beside, new) else {
            return self.compact();
        };
        let (points_before, parts_before) = (filling.points, filling.parts.len());
        let others = self.points - points_before;
        let (most, over) = match self.retained.note(&batch.block, parts) {
            true => (
                self.limits.points.saturating_sub(others),
                &self.over_max_points,
            ),
            // Without capacity the point is not stored, but full windows are sent nevertheless.
            false => (0, self.groups.over_memory()),
        };
        // The counters belong to the same structure as the groups.
        let over = over.clone();
        let filling = self.groups.get_mut(&batch.group).expect("it is there");
        let room = Capacity { most, over };
        filling.take(&batch, shape, &room, out);
        self.points = others + filling.points;
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
            filling.complete(watermark.time, shape, out);
            if !watermark.delete {
                points += filling.points;
                parts += filling.parts.len();
            }
        });
        (self.points, self.parts) = (points, parts);
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("over_max_points", self.over_max_points.clone())];
        counters.extend(self.groups.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        let mut saver = BatchSaver::default();
        let windows = self.groups.iter().map(|(group, filling)| {
            let parts = filling.parts.iter().map(|batch| saver.add(batch));
            (&**group, filling.next, parts.collect())
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
        for (group, next, parts) in windows {
            let group: Arc<Group> = group.into();
            let parts = parts.into_iter();
            let parts: VecDeque<Batch> = parts
                .filter_map(|part| blocks.batch(part, &group))
                .collect();
            let points = parts.iter().map(|batch| batch.rows.len()).sum();
            let restored = parts.len();
            let new = || Filling {
                next,
                parts,
                points,
            };
            if self.groups.entry(&group, points, new).is_some() {
                self.points += points;
                self.parts += restored;
            }
        }
    }
}
