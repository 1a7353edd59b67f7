//! `window`: collects points by their own time.
//!
//! A window of a group ends at a multiple of `every` and reaches `period` back. It goes on its way
//! when a point of the group comes that is not older than its end. A point that is older than the
//! beginning of the window being filled is late: it is counted and left out. Windows without points
//! are not made. When the stream ends, the window being filled goes on its way as it is.

use super::{Counter, NodeError, Operator};
use crate::batch::{Batch, Flow, Group, Rows, Window as Filled};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) struct Window {
    period: i64,
    every: i64,
    groups: FxHashMap<Arc<Group>, Filling>,
    late: Counter,
}

/// What a group has collected.
#[derive(Default)]
struct Filling {
    /// When the window being filled ends.
    end: i64,
    parts: Vec<Part>,
}

/// Points that came together.
struct Part {
    batch: Batch,
    first: i64,
    last: i64,
}

impl Window {
    pub(crate) fn new(period: Duration, every: Duration) -> Window {
        Window {
            period: saturated(period),
            every: saturated(every),
            groups: FxHashMap::default(),
            late: Counter::default(),
        }
    }
}

impl Operator for Window {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let (period, every) = (self.period, self.every);
        let batch = flow.into_points();
        let times = &batch.block.times;
        let Some(first) = batch.rows.iter().next() else {
            return Ok(());
        };
        let filling = self.groups.entry(batch.group.clone());
        let filling = filling.or_insert_with(|| Filling {
            end: end_after(times[first], every),
            parts: Vec::new(),
        });
        let mut begun = 0;
        for (place, row) in batch.rows.iter().enumerate() {
            let time = times[row];
            if time >= filling.end {
                filling.add(&batch, begun, place, period, &self.late);
                begun = place;
                filling.advance(time, period, every, out);
            }
        }
        filling.add(&batch, begun, batch.rows.len(), period, &self.late);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let mut left: Vec<_> = self.groups.drain().collect();
        left.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, filling) in left {
            out.extend(filling.window(self.period));
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, Counter)> {
        vec![("late", self.late.clone())]
    }
}

impl Filling {
    /// Adds the points from one place of a batch to another, all of them before the end.
    fn add(&mut self, batch: &Batch, from: usize, to: usize, period: i64, late: &Counter) {
        let mut rows = batch.rows.slice(from, to);
        let times = &batch.block.times;
        let Some((mut first, last)) = bounds(times, &rows) else {
            return;
        };
        let begin = self.end.saturating_sub(period);
        if first < begin {
            let on_time = rows.iter().filter(|&row| times[row] >= begin);
            let on_time = Rows::from_iter(on_time.map(|row| row as u32));
            late.add(rows.len() - on_time.len());
            rows = on_time;
            match bounds(times, &rows) {
                Some((earliest, _)) => first = earliest,
                None => return,
            }
        }
        let batch = batch.with_rows(rows);
        self.parts.push(Part { batch, first, last });
    }

    /// Sends the windows on their way that end at or before `time`, and forgets what no later one
    /// reaches back to.
    fn advance(&mut self, time: i64, period: i64, every: i64, out: &mut Vec<Flow>) {
        while self.end <= time {
            out.extend(self.window(period));
            self.end = self.end.saturating_add(every);
            let begin = self.end.saturating_sub(period);
            self.parts.retain(|part| part.last >= begin);
            if self.parts.is_empty() {
                self.end = self.end.max(end_after(time, every));
            }
            if self.end == i64::MAX {
                return;
            }
        }
    }

    /// The points of the window being filled.
    fn window(&self, period: i64) -> Option<Flow> {
        let begin = self.end.saturating_sub(period);
        let batches: Vec<Batch> = self
            .parts
            .iter()
            .filter_map(|part| part.between(begin, self.end))
            .collect();
        (!batches.is_empty()).then_some(Flow::Window(Filled {
            end: self.end,
            period,
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
