//! Evaluates expressions over the rows of a batch, and counts faults.

use super::faults::Faults;
use crate::batch::{Batch, Rows};
use crate::block::{Block, Column};
use crate::expression::{Expression, ExpressionError};

/// Returns the rows of a batch for which an expression has a result, with the value that `get` computes from them. All
/// other rows are counted as faults. With `condition` a result must be a boolean.
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

/// Returns a copy of the block with one more field, which replaces a field of the same name.
pub(crate) fn with_field(block: &Block, field: Column) -> Block {
    let mut block = block.clone();
    let same = |column: &&mut Column| !column.is_tag() && column.name == field.name;
    match block.columns.iter_mut().find(same) {
        Some(old) => *old = field,
        None => block.columns.push(field),
    }
    block
}
