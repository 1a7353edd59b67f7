//! `combine`: combines points with the same time.
//!
//! Times are rounded to the nearest multiple of the tolerance. Points of a group with the same rounded time are
//! collected until a point of another time arrives. With n conditions, every choice of n of these points is examined.
//! In order, each condition takes the first remaining point that fulfils the condition. If every condition finds a
//! point, the choice becomes a combined point. Fields and tags are prefixed with the condition's name in `as`, for
//! example `first.value`; the tags of the group keep their names. More than `max` choices, a million by default, are
//! refused and counted.

use super::moments::{Moment, Moments, Results};
use crate::Value;
use crate::batch::{Batch, Window};
use crate::block::{Block, Column, Data, Words};
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::evaluate::evaluate;
use crate::node::faults::Faults;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Time, Writer, distinct, fits};
use rustc_hash::FxHashMap;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["combine"],
    properties: &["as", "tolerance", "delimiter", "max"],
    parse,
};

/// The default of [`Combine::max`].
const MOST: u64 = 1_000_000;

/// Combines points with the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Combine {
    /// A condition for each point of a combination.
    pub conditions: Vec<Expression>,
    /// A name for each condition.
    pub names: Vec<Arc<str>>,
    /// Times are rounded to the nearest multiple of this.
    pub tolerance: Duration,
    /// The separator between a condition's name and the name of a field or tag.
    pub delimiter: Arc<str>,
    /// The maximum number of choices of points with the same time.
    pub max: u64,
}

impl<'p> Chain<'p> {
    /// Adds a `combine`.
    pub fn combine(self, combine: Combine) -> Chain<'p> {
        self.then(combine)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let conditions = parser.list(Parser::condition)?;
    if conditions.len() < 2 {
        return call.missing("a condition for each point: `combine(lambda: TRUE, lambda: TRUE).as('a', 'b')`");
    }
    let (mut names, mut tolerance, mut delimiter, mut max) = (None, None, None, None);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut names, parser.names(conditions.len(), span)?, "as", span)?,
            "tolerance" => {
                let duration = parser.argument(Parser::duration)?;
                set(&mut tolerance, duration, "tolerance", span)?;
            }
            "delimiter" => {
                let text = parser.argument(Parser::string)?;
                set(&mut delimiter, text, "delimiter", span)?;
            }
            _ => set(&mut max, parser.argument(Parser::count)?, "max", span)?,
        }
    }
    let Some(names) = names else {
        return call.missing("a name for each condition: `.as('first', 'second')`");
    };
    Ok(AnyDefinition::from(Combine {
        conditions,
        names,
        tolerance: tolerance.unwrap_or_default(),
        delimiter: delimiter.unwrap_or_else(|| ".".into()),
        max: max.unwrap_or(MOST),
    }))
}

impl Definition for Combine {
    fn name(&self) -> &'static str {
        "combine"
    }

    fn gives_windows(&self, _: bool) -> bool {
        false
    }

    fn expressions(&mut self) -> Vec<&mut Expression> {
        self.conditions.iter_mut().collect()
    }

    fn check(&mut self) -> Result<(), Rule> {
        if self.max == 0 {
            return Err(Rule::NotPositive { property: "max" });
        }
        fits("tolerance", self.tolerance)?;
        distinct(&self.names)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let conditions = self.conditions.iter().map(|condition| condition as &dyn Display);
        out.arguments(&conditions.collect::<Vec<_>>())?;
        out.names("as", &self.names)?;
        if !self.tolerance.is_zero() {
            out.property("tolerance", &[&Time(self.tolerance)])?;
        }
        out.text("delimiter", (*self.delimiter != *".").then_some(&self.delimiter))?;
        match self.max {
            MOST => Ok(()),
            max => out.property("max", &[&max]),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(Moments::new(self.clone(), self.tolerance, context))
    }
}

/// The error for points of one time that have too many choices to be combined.
#[derive(Debug, thiserror::Error)]
#[error("{points} points of one time have more than {max} combinations; raise `max`, or group them by more tags")]
struct TooMany {
    points: usize,
    max: u64,
}

impl Moment for Combine {
    const RESULTS: Results = Results::Points;

    /// Returns the combinations of the points of one time.
    fn result(&self, moment: &Window, faults: &Faults) -> Option<Batch> {
        let points: usize = moment.batches.iter().map(|batch| batch.rows.len()).sum();
        let slots = self.conditions.len();
        let max = self.max;
        match choices(points, slots) {
            0 => return None,
            count if count > u128::from(max) => {
                faults.add(points, &TooMany { points, max });
                return None;
            }
            _ => {}
        }
        let fulfils: Vec<Vec<bool>> = {
            let conditions = self.conditions.iter();
            conditions.map(|condition| fulfilling(condition, moment, faults)).collect()
        };
        let mut rows: Vec<Vec<u32>> = vec![vec![]; slots];
        each_choice(points, slots, |choice| {
            let mut left = choice.to_vec();
            let mut taken = Vec::with_capacity(slots);
            for fulfils in &fulfils {
                match left.iter().position(|&point| fulfils[point]) {
                    Some(place) => taken.push(left.remove(place)),
                    None => return,
                }
            }
            for (rows, point) in rows.iter_mut().zip(taken) {
                rows.push(point as u32);
            }
        });
        (!rows[0].is_empty()).then(|| self.merged(moment, &rows))
    }
}

impl Combine {
    /// Returns a point for each combination of the points with these indices.
    fn merged(&self, moment: &Window, rows: &[Vec<u32>]) -> Batch {
        let like = &moment.batches[0];
        let all = together(&moment.batches);
        let of_group = |column: &Column| column.is_tag() && like.group.tags.iter().any(|(name, _)| *name == column.name);
        let (mut tags, mut fields) = (Vec::new(), Vec::new());
        for (name, rows) in self.names.iter().zip(rows) {
            for column in all.columns.iter().filter(|column| !of_group(column)) {
                let renamed = Column {
                    name: format!("{name}{}{}", self.delimiter, column.name).into(),
                    data: Arc::new(column.data.gather(rows)),
                };
                match column.is_tag() {
                    true => tags.push(renamed),
                    false => fields.push(renamed),
                }
            }
        }
        tags.extend(fields);
        like.of_group(vec![moment.end; rows[0].len()].into(), tags)
    }
}

/// Returns a flag for each point of one time: true if the point fulfils a condition.
fn fulfilling(condition: &Expression, moment: &Window, faults: &Faults) -> Vec<bool> {
    let mut fulfils = Vec::new();
    for batch in &moment.batches {
        let (_, rows) = evaluate(condition, true, batch, faults, |rows| condition.select(&batch.block, rows));
        let mut selected = rows.iter().peekable();
        for row in batch.rows.iter() {
            fulfils.push(selected.next_if_eq(&row).is_some());
        }
    }
    fulfils
}

/// Returns one block of all points, in order.
fn together(batches: &[Batch]) -> Block {
    type Cells = Vec<Option<Value>>;
    let points: usize = batches.iter().map(|batch| batch.rows.len()).sum();
    let mut columns: Vec<(Arc<str>, bool, Cells)> = Vec::new();
    let mut places: FxHashMap<(Arc<str>, bool), usize> = FxHashMap::default();
    let mut first = 0;
    for batch in batches {
        for column in &batch.block.columns {
            let key = (column.name.clone(), column.is_tag());
            let place = *places.entry(key.clone()).or_insert_with(|| {
                columns.push((key.0, key.1, vec![None; points]));
                columns.len() - 1
            });
            for (row, cell) in batch.rows.iter().zip(&mut columns[place].2[first..]) {
                *cell = column.data.get(row);
            }
        }
        first += batch.rows.len();
    }
    let column = |(name, is_tag, cells): (Arc<str>, bool, Cells)| Column {
        name,
        data: Arc::new(match is_tag {
            true => tag(cells),
            false => Data::from(cells),
        }),
    };
    Block {
        origin: batches[0].block.origin.clone(),
        times: vec![0; points].into(),
        columns: columns.into_iter().map(column).collect(),
    }
}

fn tag(cells: Vec<Option<Value>>) -> Data {
    let mut words: Vec<Arc<str>> = Vec::new();
    let mut known: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    let codes = cells.into_iter().map(|cell| match cell {
        Some(Value::Text(word)) => *known.entry(word.clone()).or_insert_with(|| {
            words.push(word);
            words.len() as u32 - 1
        }),
        _ => Words::MISSING,
    });
    let codes = codes.collect();
    Data::Tag(Words { codes, words })
}

/// Returns the number of ways to choose `slots` of `points`; saturates.
fn choices(points: usize, slots: usize) -> u128 {
    if slots > points {
        return 0;
    }
    (0..slots as u128).fold(1, |count: u128, slot| {
        count.saturating_mul(points as u128 - slot) / (slot + 1)
    })
}

/// Calls `each` with every choice of `slots` of `points`, in ascending order.
fn each_choice(points: usize, slots: usize, mut each: impl FnMut(&[usize])) {
    let mut choice: Vec<usize> = (0..slots).collect();
    loop {
        each(&choice);
        let Some(slot) = (0..slots).rev().find(|&slot| choice[slot] != slot + points - slots) else {
            return;
        };
        choice[slot] += 1;
        for next in slot + 1..slots {
            choice[next] = choice[next - 1] + 1;
        }
    }
}
