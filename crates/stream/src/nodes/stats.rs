//! `stats`: the number of points of each group, by the wall clock.
//!
//! At every interval each group sends a point of the measurement `stats`, whose field `emitted` is the number of its
//! points since the start. As long as there has been no point at all, a single point without tags is sent. The points
//! that arrive are not passed on.

use crate::batch::{Batch, Flow, Group, Rows, Watermark};
use crate::block::{Block, Cells, Column, Data, Origin, Words};
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::clock::Clock;
use crate::node::series::{Limits, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Time, Writer, clock_interval};
use crate::hash::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["stats"],
    properties: &["align"],
    parse,
};

/// Counts the points of each group, and reports every `interval` of the wall clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The time between two reports.
    pub interval: Duration,
    /// True if reports are made at multiples of `interval`.
    pub align: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `stats`: the number of points of each group, at multiples of `interval` of the wall clock.
    pub fn stats(self, interval: Duration) -> Chain<'p> {
        let align = true;
        self.then(Stats { interval, align })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let interval = parser.argument(Parser::duration)?;
    let mut align = false;
    while parser.property(KIND.properties)?.is_some() {
        parser.nothing()?;
        align = true;
    }
    Ok(AnyDefinition::from(Stats { interval, align }))
}

impl Definition for Stats {
    fn name(&self) -> &'static str {
        "stats"
    }

    fn gives_windows(&self, _: bool) -> bool {
        false
    }

    fn check(&mut self) -> Result<(), Rule> {
        clock_interval("interval", self.interval)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Time(self.interval)])?;
        out.flag("align", self.align)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let limits = context.limits;
        Built::from(StatsOperator {
            counts: Series::new(Limits {
                // A group is not idle before its silence has been reported.
                idle: limits.idle.max(self.interval.saturating_mul(2)),
                ..limits
            }),
            clock: Some(Clock::new(self.interval, self.align, context.io)),
        })
    }
}

/// The operator of a `stats`.
struct StatsOperator {
    counts: Series<i64>,
    clock: Option<Clock>,
}

/// The maximum number of groups in a block.
const ROWS: usize = 65_536;

impl Operator for StatsOperator {
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

    fn strike(&mut self, time: i64, out: &mut Vec<Flow>) -> Vec<Watermark> {
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
        Vec::new()
    }

    fn counters(&self) -> Counters {
        self.counts.counters()
    }

    /// Saves the counts, so that a group that falls silent while the engine is stopped is reported after the restart.
    fn save(&self) -> Option<State> {
        let counts = self.counts.iter();
        let counts: Vec<(&Group, i64)> = counts.map(|(group, count)| (&**group, *count)).collect();
        Some(State::new(0, &counts))
    }

    fn restore(&mut self, state: &State) {
        let counts: Option<Vec<(Group, i64)>> = state.read();
        for (group, count) in counts.into_iter().flatten() {
            self.counts.entry(&group.into(), 0, || count);
        }
    }
}

/// The name of a tag, its words, and the code of each word.
type Tag = (Arc<str>, Words, HashMap<Arc<str>, u32>);

/// Returns a block with a row for each group.
fn block(origin: &Arc<Origin>, time: i64, counts: &[(Arc<Group>, i64)]) -> Block {
    let mut tags: Vec<Tag> = Vec::new();
    for (row, (group, _)) in counts.iter().enumerate() {
        for (name, value) in group.tags.iter().filter(|(_, value)| !value.is_empty()) {
            let known = tags.iter().position(|(known, ..)| known == name);
            let place = known.unwrap_or_else(|| {
                tags.push((name.clone(), Words::default(), HashMap::default()));
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

#[cfg(test)]
mod tests {
    use super::*;

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
