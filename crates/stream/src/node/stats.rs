//! `stats`: how many points have come in each group, by the clock on the wall.
//!
//! Every interval each group gives a point of the measurement `stats`, whose field `emitted` is the
//! number of its points since the start. As long as there has been no point at all, one without tags
//! says so. What comes is not handed on.

use super::series::{Limits, Series};
use super::{Counters, Kept, Operator};
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Cells, Column, Data, Origin, Words};
use crate::now::now;
use hashbrown::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

/// See the [module](self).
pub(crate) struct Stats {
    counts: Series<i64>,
    clock: Option<Clock>,
}

/// A group has a row in a block of at most this many.
const ROWS: usize = 65_536;

impl Stats {
    pub(crate) fn new(interval: Duration, align: bool, limits: Limits, io: &Handle) -> Stats {
        Stats {
            counts: Series::new(Limits {
                // A group is not idle before its silence can be told.
                idle: limits.idle.max(interval.saturating_mul(2)),
                ..limits
            }),
            clock: Some(Clock::new(interval, align, io)),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counts.counters()
    }
}

impl Operator for Stats {
    fn take(&mut self, _: usize, flow: Flow, _: &mut Vec<Flow>) {
        drop(self.counts.expired());
        let points = flow.points();
        if let Some(count) = self.counts.entry(flow.group(), points, || 0) {
            *count += points as i64;
        }
    }

    fn clock(&mut self) -> Option<Clock> {
        self.clock.take()
    }

    fn strike(&mut self, time: i64, out: &mut Vec<Flow>) {
        let mut counts: Vec<(Arc<Group>, i64)> = self
            .counts
            .iter()
            .map(|(group, count)| (group.clone(), *count))
            .collect();
        if counts.is_empty() {
            counts.push((Arc::default(), 0));
        }
        counts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let origin = Arc::new(Origin {
            database: "".into(),
            policy: "".into(),
            measurement: "stats".into(),
        });
        for counts in counts.chunks(ROWS) {
            let block = Arc::new(block(&origin, time, counts));
            let rows = (0..).zip(counts).map(|(row, (group, _))| {
                Flow::Points(Batch {
                    block: block.clone(),
                    rows: Rows::Range(row, row + 1),
                    group: group.clone(),
                })
            });
            out.extend(rows);
        }
    }

    /// A group that falls silent during a stop is told of after it.
    fn save(&self) -> Option<Kept> {
        let counts = self.counts.iter();
        let counts = counts.map(|(group, count)| ((**group).clone(), *count));
        Some(Kept::Counts(counts.collect()))
    }

    fn restore(&mut self, kept: Kept) {
        let Kept::Counts(counts) = kept else {
            return;
        };
        for (group, count) in counts {
            self.counts.entry(&group.into(), 0, || count);
        }
    }
}

/// The name of a tag, its words, and the code of each.
type Tag = (Arc<str>, Words, HashMap<Arc<str>, u32>);

/// A row for each group.
fn block(origin: &Arc<Origin>, time: i64, counts: &[(Arc<Group>, i64)]) -> Block {
    let mut tags: Vec<Tag> = Vec::new();
    for (row, (group, _)) in counts.iter().enumerate() {
        for (name, value) in group.tags.iter().filter(|(_, value)| !value.is_empty()) {
            let known = tags.iter().position(|(known, ..)| known == name);
            let place = known.unwrap_or_else(|| {
                tags.push((name.clone(), Words::default(), HashMap::new()));
                tags.len() - 1
            });
            let (_, Words { codes, words }, places) = &mut tags[place];
            codes.resize(row, Words::MISSING);
            codes.push(*places.entry_ref(value).or_insert_with(|| {
                words.push(value.clone());
                words.len() as u32 - 1
            }));
        }
    }
    let tags = tags.into_iter().map(|(name, mut words, _)| {
        words.codes.resize(counts.len(), Words::MISSING);
        (name, Data::Tag(words))
    });
    let emitted = Cells {
        values: counts.iter().map(|(_, count)| *count).collect(),
        present: None,
    };
    let columns = tags.chain([("emitted".into(), Data::Integer(emitted))]);
    let columns = columns.map(|(name, data)| Column {
        name,
        data: Arc::new(data),
    });
    Block {
        origin: origin.clone(),
        times: vec![time; counts.len()].into(),
        columns: columns.collect(),
    }
}

/// Strikes every interval of the clock on the wall.
pub(crate) struct Clock {
    /// Nanoseconds between two strikes.
    interval: i64,
    /// Whether it strikes at multiples of that.
    align: bool,
    /// When it strikes next, in nanoseconds since 1970.
    next: i64,
    sleep: std::pin::Pin<Box<Sleep>>,
}

impl Clock {
    fn new(interval: Duration, align: bool, io: &Handle) -> Clock {
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let now = now();
        let next = first(now, interval.max(1), align);
        // Timers are those of the runtime around the engine, whatever runs the nodes.
        let _io = io.enter();
        Clock {
            interval: interval.max(1),
            align,
            next,
            sleep: Box::pin(sleep_until(after(next - now))),
        }
    }

    /// The time at which it strikes, once it does. Strikes that were missed are left out.
    pub(crate) fn poll_strike(&mut self, context: &mut Context<'_>) -> Poll<i64> {
        std::task::ready!(self.sleep.as_mut().poll(context));
        let (time, now) = (self.next, now());
        self.next = following(time, now, self.interval, self.align);
        self.sleep.as_mut().reset(after(self.next - now));
        Poll::Ready(time)
    }

    /// What was done at its last strike has taken so long: it does not strike again before as much time has passed, so
    /// that a node which works longer than an interval still gets to its points.
    pub(crate) fn rest(&mut self, took: Duration) {
        let now = now();
        let earliest = now.saturating_add(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
        if self.next < earliest {
            self.next = match self.align {
                true => first(earliest, self.interval, true),
                false => earliest,
            };
            self.sleep.as_mut().reset(after(self.next - now));
        }
    }
}

/// When a clock that is started now strikes first.
fn first(now: i64, interval: i64, align: bool) -> i64 {
    let wait = match align {
        true => interval - now.rem_euclid(interval),
        false => interval,
    };
    now.saturating_add(wait)
}

/// When it strikes after it has struck at `time`: never in the past, nor further away than an interval,
/// also if the clock on the wall was set.
fn following(time: i64, now: i64, interval: i64, align: bool) -> i64 {
    let next = time.saturating_add(interval);
    match (1..=interval).contains(&next.saturating_sub(now)) {
        true => next,
        false => first(now, interval, align),
    }
}

fn after(nanos: i64) -> Instant {
    let far = Instant::now() + Duration::from_secs(86400 * 365 * 30);
    let wait = Duration::from_nanos(nanos.unsigned_abs());
    Instant::now().checked_add(wait).unwrap_or(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_are_at_multiples_or_an_interval_apart_and_none_is_made_up_for() {
        assert_eq!(first(13, 10, true), 20);
        assert_eq!(first(20, 10, true), 30);
        assert_eq!(first(13, 10, false), 23);
        // In time, a little late, far too late, and before the clock was set back.
        for (time, now, aligned, free) in [
            (20, 20, 30, 30),
            (20, 24, 30, 30),
            (20, 57, 60, 67),
            (20, 3, 10, 13),
        ] {
            assert_eq!(following(time, now, 10, true), aligned, "{now}");
            assert_eq!(following(time, now, 10, false), free, "{now}");
        }
    }

    #[test]
    fn each_group_has_a_row_with_its_tags() {
        let group = |tags: &[(&str, &str)]| {
            let tags = tags
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            Arc::new(Group {
                tags: tags.collect(),
                measurement: None,
            })
        };
        let groups = [
            (group(&[("a", "x"), ("b", "")]), 1),
            (group(&[("a", "x"), ("b", "y")]), 2),
            (group(&[("a", "z"), ("b", "y")]), 3),
        ];
        let origin = Arc::new(Origin {
            database: "".into(),
            policy: "".into(),
            measurement: "stats".into(),
        });
        let block = block(&origin, 7, &groups);
        let row = |row| block.columns.iter().map(move |column| column.data.get(row));
        let text = |word: &str| Some(crate::Value::Text(word.into()));
        let count = |count| Some(crate::Value::Integer(count));
        assert_eq!(row(0).collect::<Vec<_>>(), [text("x"), None, count(1)]);
        assert_eq!(row(1).collect::<Vec<_>>(), [text("x"), text("y"), count(2)]);
        assert_eq!(row(2).collect::<Vec<_>>(), [text("z"), text("y"), count(3)]);
    }
}
