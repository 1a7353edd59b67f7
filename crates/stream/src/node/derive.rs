//! Nodes that treat every batch by itself: `from`, `where`, `eval`.

use super::Operator;
use super::faults::Faults;
use crate::Value;
use crate::batch::{Batch, Flow, Rows};
use crate::block::{Block, Column, Data, Words};
use crate::expression::{Expression, ExpressionError};
use crate::pipeline::{self, Keep};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Passes everything on. What a `from` lets in is decided by the routes.
pub(crate) struct From;

impl Operator for From {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        out.push(flow);
    }
}

/// Passes on the points for which a condition is true.
pub(crate) struct Where {
    pub(crate) condition: Expression,
    pub(crate) faults: Faults,
}

impl Operator for Where {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let condition = &self.condition;
        out.extend(flow.map(|batch| {
            let (_, rows) = evaluate(condition, true, &batch, &self.faults, |rows| {
                condition.select(&batch.block, rows)
            });
            Batch { rows, ..batch }
        }));
    }
}

/// Fields that are computed from others. A point for which one of them has no value is left out.
pub(crate) struct Eval {
    pub(crate) eval: pipeline::Eval,
    pub(crate) faults: Faults,
}

/// Why an `eval` leaves out a point.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("`{0}` has no value: a field or tag is missing")]
    Missing(Arc<str>),
    #[error("`{0}` is no string, and a tag must be one")]
    Tag(Arc<str>),
    #[error("there is no field `{0}` to keep")]
    Keep(Arc<str>),
}

impl Operator for Eval {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        out.extend(flow.map(|batch| self.evaluated(batch)));
    }
}

impl Eval {
    fn evaluated(&self, mut batch: Batch) -> Batch {
        // A new column has a cell for every row of its block. Of a block that is shared by many
        // groups, each would make columns for the rows of all.
        if batch.rows.len() * 2 < batch.block.rows() {
            batch = Batch::all(Arc::new(batch.to_block()), batch.group);
        }
        let before = batch.block.clone();
        // One after the other: an expression may refer to those before it.
        for (name, expression) in &self.eval.fields {
            let (rows, data) = evaluate(expression, false, &batch, &self.faults, |rows| {
                expression.column(&batch.block, rows)
            });
            let missing = Fault::Missing(name.clone());
            batch.rows = self.without(rows, &missing, |row| data.get(row).is_some());
            if batch.rows.is_empty() {
                return batch;
            }
            let column = Column {
                name: name.clone(),
                data: Arc::new(data),
            };
            batch.block = Arc::new(with_field(&batch.block, column));
        }
        self.kept(batch, &before)
    }

    /// The rows for which this holds; the others are faults.
    fn without(&self, rows: Rows, fault: &Fault, holds: impl Fn(usize) -> bool) -> Rows {
        let bad = rows.iter().filter(|&row| !holds(row)).count();
        if bad == 0 {
            return rows;
        }
        self.faults.add(bad, fault);
        let good = rows.iter().filter(|&row| holds(row));
        Rows::from_iter(good.map(|row| row as u32))
    }

    /// What is handed on of the point and the results.
    fn kept(&self, mut batch: Batch, before: &Block) -> Batch {
        let pipeline::Eval { fields, tags, keep } = &self.eval;
        let block = batch.block.clone();
        let result = |name: &Arc<str>| fields.iter().any(|(field, _)| field == name);
        let mut columns: Vec<Column> = block.tags().cloned().collect();
        for tag in tags {
            let Some(column) = block.fields().find(|column| column.name == *tag) else {
                continue;
            };
            let fault = Fault::Tag(tag.clone());
            let is_text = |row| matches!(column.data.get(row), Some(Value::Text(_)));
            batch.rows = self.without(batch.rows, &fault, is_text);
            columns.retain(|known| known.name != *tag);
            columns.push(tag_column(column, &batch.rows));
        }
        match keep {
            Keep::Results => {
                let results = fields.iter().filter(|(name, _)| !tags.contains(name));
                for (name, _) in results {
                    columns.extend(block.fields().find(|column| column.name == *name).cloned());
                }
            }
            Keep::All => columns.extend(block.fields().cloned()),
            Keep::These(names) => {
                for name in names {
                    let of = match result(name) {
                        true => &*block,
                        false => before,
                    };
                    let found = of.fields().find(|column| column.name == *name);
                    let has = |row| found.is_some_and(|column| column.data.get(row).is_some());
                    let fault = Fault::Keep(name.clone());
                    batch.rows = self.without(batch.rows, &fault, has);
                    columns.extend(found.cloned());
                }
            }
        }
        batch.block = Arc::new(Block {
            columns,
            ..(*block).clone()
        });
        batch
    }
}

/// A field of strings as a tag.
fn tag_column(field: &Column, rows: &Rows) -> Column {
    let mut codes = vec![Words::MISSING; field.data.rows()];
    let mut places: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    let mut words = Vec::new();
    for row in rows.iter() {
        if let Some(Value::Text(word)) = field.data.get(row) {
            codes[row] = *places.entry(word).or_insert_with_key(|word| {
                words.push(word.clone());
                words.len() as u32 - 1
            });
        }
    }
    Column {
        name: field.name.clone(),
        data: Arc::new(Data::Tag(Words { codes, words })),
    }
}

/// What `get` makes of the rows of a batch for which an expression has a result, and those rows. The
/// others are counted as faults. `condition`: a result must be a boolean.
pub(crate) fn evaluate<T>(
    expression: &Expression,
    condition: bool,
    batch: &Batch,
    faults: &Faults,
    get: impl Fn(&Rows) -> Result<T, ExpressionError>,
) -> (Rows, T) {
    if let Ok(result) = get(&batch.rows) {
        return (batch.rows.clone(), result);
    }
    let (rows, points, error) = expression.sound(&batch.block, &batch.rows, condition);
    if let Some(error) = error {
        faults.add(points, &error);
    }
    let result = get(&rows).expect("each of these rows has a result, and so have all");
    (rows, result)
}

/// The same points with one more field, or another in place of the field of that name.
pub(crate) fn with_field(block: &Block, field: Column) -> Block {
    let mut block = block.clone();
    let same = |column: &&mut Column| !column.is_tag() && column.name == field.name;
    match block.columns.iter_mut().find(same) {
        Some(old) => *old = field,
        None => block.columns.push(field),
    }
    block
}
