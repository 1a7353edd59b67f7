//! `barrier`: completes windows of groups that have fallen silent.
//!
//! A watermark of a group is a time before which no further points of the group arrive. A window that ends at that time
//! or earlier is complete, and is sent. With `idle`, a group that has been silent for this interval of the wall clock
//! gets a watermark. The time of the watermark is the time of the last point plus the interval. After each further
//! interval of silence the group gets another watermark. With `period`, each group gets a watermark once per interval,
//! and the time of the watermark is the current time of the wall clock. Points before the last watermark of their group
//! are dropped and counted. After a restart of the engine, the interval of silence begins again.

use crate::batch::{Flow, Group, Rows, Watermark};
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::clock::Clock;
use crate::node::definition::AnyDefinition;
use crate::node::series::{Limits, Series};
use crate::node::{Built, Context, Counter, Counters, Definition, Kind, Operator, State};
use crate::now::now;
use crate::pipeline::{Chain, Rule, Time, Writer, clock_interval};
use crate::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["barrier"],
    properties: &["idle", "period", "delete"],
    parse,
};

/// Sends watermarks, which complete the windows of silent groups.
///
/// ```
/// use corsair_stream::pipeline::Barrier;
///
/// let text = "stream | from('cpu') | barrier().idle(10s) | window().period(1m).every(1m)";
/// let pipeline = corsair_stream::language::parse(text)?;
/// let barrier = pipeline.nodes()[1].what.get::<Barrier>().expect("a barrier node");
/// assert!(barrier.idle && barrier.interval.as_secs() == 10);
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// True for groups that have been silent for the interval, false for all groups at each interval.
    pub idle: bool,
    /// The interval, by the wall clock: at least a millisecond.
    pub interval: Duration,
    /// True if windows forget a group after its watermark.
    pub delete: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `barrier`.
    pub fn barrier(self, barrier: Barrier) -> Chain<'p> {
        self.then(barrier)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    parser.nothing()?;
    let (mut interval, mut delete) = (None, None);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "delete" => set(&mut delete, parser.argument(Parser::value)?, property, span)?,
            _ => {
                let duration = parser.argument(Parser::duration)?;
                set(&mut interval, (property == "idle", duration), property, span)?;
            }
        }
    }
    let Some((idle, interval)) = interval else {
        return call.missing("an interval: `barrier().idle(10s)` or `barrier().period(10s)`");
    };
    Ok(AnyDefinition::from(Barrier {
        idle,
        interval,
        delete: delete == Some(Value::Boolean(true)),
    }))
}

impl Definition for Barrier {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn check(&mut self) -> Result<(), Rule> {
        let property = if self.idle { "idle" } else { "period" };
        clock_interval(property, self.interval)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        let property = if self.idle { "idle" } else { "period" };
        out.property(property, &[&Time(self.interval)])?;
        match self.delete {
            true => out.property("delete", &[&"TRUE"]),
            false => Ok(()),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        // A silent group is noticed within a tenth of the interval.
        let tick = match self.idle {
            true => (self.interval / 10).max(Duration::from_millis(1)),
            false => self.interval,
        };
        // A silent group still gets watermarks.
        let limits = Limits {
            idle: context.limits.idle.max(self.interval.saturating_mul(2)),
            ..context.limits
        };
        Built::from(BarrierOperator {
            interval: i64::try_from(self.interval.as_nanos()).unwrap_or(i64::MAX),
            barrier: *self,
            groups: Series::new(limits),
            late: Counter::default(),
            clock: Some(Clock::new(tick, false, context.io)),
        })
    }
}

/// The operator of a `barrier`.
struct BarrierOperator {
    barrier: Barrier,
    /// The interval in nanoseconds.
    interval: i64,
    groups: Series<Progress>,
    late: Counter,
    clock: Option<Clock>,
}

/// The progress of a group.
struct Progress {
    /// The time of the last point or watermark.
    last: i64,
    /// The last watermark.
    watermark: i64,
    /// The wall-clock time at which the last point or watermark arrived.
    seen: i64,
}

impl Operator for BarrierOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        drop(self.groups.expired());
        let now = now();
        let new = || Progress {
            last: i64::MIN,
            watermark: i64::MIN,
            seen: now,
        };
        let Some(progress) = self.groups.entry(flow.group(), flow.points(), new) else {
            return;
        };
        let late = &self.late;
        out.extend(flow.map(|batch| {
            let times = &batch.block.times;
            let kept = batch.rows.iter().filter(|&row| times[row] >= progress.watermark);
            let kept = Rows::from_iter(kept.map(|row| row as u32));
            if let Some(last) = kept.iter().last() {
                progress.last = times[last];
                progress.seen = now;
            }
            late.add(batch.rows.len() - kept.len());
            batch.with_rows(kept)
        }));
    }

    fn clock(&mut self) -> Option<Clock> {
        self.clock.take()
    }

    fn strike(&mut self, time: i64, _: &mut Vec<Flow>) -> Vec<Watermark> {
        let (idle, interval) = (self.barrier.idle, self.interval);
        let mut sent: Vec<Watermark> = Vec::new();
        for (group, progress) in self.groups.iter_mut() {
            let begun = progress.last > i64::MIN;
            if !begun || (idle && time.saturating_sub(progress.seen) < interval) {
                continue;
            }
            let watermark = match idle {
                true => progress.last.saturating_add(interval),
                false => time,
            };
            progress.last = watermark;
            progress.watermark = watermark.max(progress.watermark);
            progress.seen = time;
            sent.push(Watermark {
                group: group.clone(),
                time: watermark,
                delete: self.barrier.delete,
            });
        }
        sent.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        if self.barrier.delete {
            sent.iter().for_each(|watermark| self.groups.remove(&watermark.group));
        }
        sent
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("late", self.late.clone())];
        counters.extend(self.groups.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        let groups = self.groups.iter();
        let groups = groups.map(|(group, progress)| (&**group, progress.last, progress.watermark));
        Some(State::new(0, &groups.collect::<Vec<(&Group, i64, i64)>>()))
    }

    fn restore(&mut self, state: &State) {
        let groups: Option<Vec<(Group, i64, i64)>> = state.read();
        let seen = now();
        for (group, last, watermark) in groups.into_iter().flatten() {
            let group: Arc<Group> = group.into();
            let new = || Progress {
                last,
                watermark,
                seen,
            };
            self.groups.entry(&group, 0, new);
        }
    }
}
