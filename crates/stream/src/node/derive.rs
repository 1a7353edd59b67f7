//! Nodes that treat every batch by itself: `from`, `where`, `eval`.

use super::Operator;
use super::faults::Faults;
use crate::batch::{Batch, Flow, Rows};
use crate::block::{Block, Column};
use crate::expression::{Expression, ExpressionError};
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
        let batch = flow.into_points();
        let condition = &self.condition;
        let (_, rows) = evaluate(condition, true, &batch, &self.faults, |rows| {
            condition.select(&batch.block, rows)
        });
        if !rows.is_empty() {
            out.push(Flow::Points(Batch { rows, ..batch }));
        }
    }
}

/// Adds fields that are computed from others. A field of the same name is replaced.
pub(crate) struct Eval {
    pub(crate) fields: Vec<(Arc<str>, Expression)>,
    pub(crate) faults: Faults,
}

impl Operator for Eval {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let mut batch = flow.into_points();
        // A new column has a cell for every row of its block. Of a block that is shared by many
        // groups, each would make columns for the rows of all.
        if batch.rows.len() * 2 < batch.block.rows() {
            batch = Batch::all(Arc::new(batch.to_block()), batch.group);
        }
        // One after the other: an expression may refer to those before it.
        for (name, expression) in &self.fields {
            let (rows, data) = evaluate(expression, false, &batch, &self.faults, |rows| {
                expression.column(&batch.block, rows)
            });
            if rows.is_empty() {
                return;
            }
            let column = Column {
                name: name.clone(),
                data: Arc::new(data),
            };
            batch.block = Arc::new(with_field(&batch.block, column));
            batch.rows = rows;
        }
        out.push(Flow::Points(batch));
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
