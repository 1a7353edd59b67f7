//! The points that a group has collected, and the times at which its windows are sent.

use crate::batch::{Batch, Flow, Window};
use crate::node::Counter;
use std::collections::VecDeque;
use std::time::Duration;

/// The times at which windows are sent, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Time {
        period: i64,
        every: i64,
        align: bool,
        fill: bool,
    },
    Count {
        period: usize,
        every: i64,
        fill: bool,
    },
    /// Points with the same time, complete when another time has arrived.
    Moment,
}

/// The collected points of a group.
pub(super) struct Filling {
    /// The end of the window being filled, or the number of points until it is full.
    pub(super) next: i64,
    /// The points, in the order of arrival.
    pub(super) parts: VecDeque<Batch>,
    pub(super) points: usize,
}

/// The number of points that a group may hold, and the counter of points beyond it.
pub(super) struct Capacity {
    pub(super) most: usize,
    pub(super) over: Counter,
}

impl Filling {
    pub(super) fn take(
        &mut self,
        batch: &Batch,
        shape: Shape,
        room: &Capacity,
        out: &mut Vec<Flow>,
    ) {
        let mut begun = 0;
        for (place, row) in batch.rows.iter().enumerate() {
            let time = batch.block.times[row];
            match shape {
                Shape::Count { period, every, .. } => {
                    self.next -= 1;
                    if self.next <= 0 {
                        self.add(batch, begun, place + 1, room);
                        begun = place + 1;
                        self.keep_last(period);
                        out.extend(self.window(time, 0));
                        self.next = every;
                    }
                }
                Shape::Time { every: 0, .. } => {
                    self.add(batch, begun, place + 1, room);
                    begun = place + 1;
                    self.complete(time, shape, out);
                }
                Shape::Time { .. } if time >= self.next => {
                    self.add(batch, begun, place, room);
                    begun = place;
                    self.complete(time, shape, out);
                }
                Shape::Time { .. } => {}
                Shape::Moment => {
                    if time != self.next {
                        self.add(batch, begun, place, room);
                        begun = place;
                        out.extend(self.window(self.next, 0));
                        self.keep_last(0);
                        self.next = time;
                    }
                }
            }
        }
        self.add(batch, begun, batch.rows.len(), room);
        if let Shape::Count { period, .. } = shape {
            self.keep_last(period);
        }
    }

    /// Sends the window that is complete at a time.
    pub(super) fn complete(&mut self, time: i64, shape: Shape, out: &mut Vec<Flow>) {
        match shape {
            Shape::Time {
                period, every: 0, ..
            } if time >= self.next => {
                self.keep_from(time.saturating_sub(period).saturating_add(1));
                out.extend(self.window(time, period));
                self.next = time;
            }
            Shape::Time {
                period,
                every,
                align,
                ..
            } if time >= self.next => self.end(time, period, every, align, out),
            _ => {}
        }
    }

    /// Sends the window that is being filled. The next one ends `every` after `time`.
    fn end(&mut self, time: i64, period: i64, every: i64, align: bool, out: &mut Vec<Flow>) {
        self.keep_from(self.next.saturating_sub(period));
        out.extend(self.window(self.next, period));
        self.next = time.saturating_add(every);
        if align {
            self.next = truncated(self.next, every);
        }
    }

    fn add(&mut self, batch: &Batch, from: usize, to: usize, room: &Capacity) {
        let fits = (to - from).min(room.most.saturating_sub(self.points));
        if fits < to - from {
            room.over.add(to - from - fits);
        }
        if fits > 0 {
            let rows = batch.rows.slice(from, from + fits);
            self.points += fits;
            self.parts.push_back(batch.with_rows(rows));
        }
    }

    /// Drops the points at the front that are before this time.
    fn keep_from(&mut self, oldest: i64) {
        while let Some(part) = self.parts.pop_front() {
            let times = &part.block.times;
            match part.rows.iter().position(|row| times[row] >= oldest) {
                None => self.points -= part.rows.len(),
                Some(place) => {
                    self.points -= place;
                    let rows = part.rows.slice(place, part.rows.len());
                    self.parts.push_front(part.with_rows(rows));
                    return;
                }
            }
        }
    }

    /// Drops all but the last points.
    fn keep_last(&mut self, count: usize) {
        while self.points > count
            && let Some(part) = self.parts.pop_front()
        {
            let surplus = (self.points - count).min(part.rows.len());
            self.points -= surplus;
            if surplus < part.rows.len() {
                let rows = part.rows.slice(surplus, part.rows.len());
                self.parts.push_front(part.with_rows(rows));
            }
        }
    }

    fn window(&self, end: i64, period: i64) -> Option<Flow> {
        let batches: Vec<Batch> = self.parts.iter().cloned().collect();
        (!batches.is_empty()).then_some(Flow::Window(Window {
            end,
            period,
            batches,
        }))
    }
}

impl Shape {
    /// Returns the end of a group's first window, which begins with a point of this time.
    pub(super) fn first(self, time: i64) -> i64 {
        match self {
            Shape::Count {
                every, fill: false, ..
            } => every,
            Shape::Count { period, .. } => period as i64,
            Shape::Moment => time,
            Shape::Time {
                every,
                align,
                fill: false,
                ..
            } => {
                let next = time.saturating_add(every);
                if align && every > 0 {
                    truncated(next, every)
                } else {
                    next
                }
            }
            Shape::Time {
                period,
                every,
                align,
                ..
            } => {
                let full = time.saturating_add(period);
                if !align || every == 0 {
                    return full;
                }
                let next = truncated(full, every);
                // The first points are not part of any window.
                if next > full {
                    next
                } else {
                    next.saturating_add(every)
                }
            }
        }
    }
}

/// The nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// The seconds from the beginning of year 1 to 1970. Multiples are counted from year 1.
const SINCE_YEAR_1: i128 = 62_135_596_800;

/// Returns the last multiple of `every` that is not after `time`.
pub(in crate::nodes) fn truncated(time: i64, every: i64) -> i64 {
    let every = every.max(1);
    let over = match DAY % every {
        // Year 1 and 1970 begin at midnight.
        0 => time.rem_euclid(every),
        _ => {
            let since = i128::from(time) + SINCE_YEAR_1 * 1_000_000_000;
            since.rem_euclid(i128::from(every)) as i64
        }
    };
    time.saturating_sub(over)
}

pub(super) fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the multiple of `step` nearest to `time`, counted from year 1.
pub(in crate::nodes) fn nearest(time: i64, step: i64) -> i64 {
    let below = truncated(time, step);
    let above = time - below >= step - (time - below);
    below.saturating_add(if above && step > 1 { step } else { 0 })
}
