//! Nodes that treat every batch by itself: `from`, `where`, `eval`.

use super::{NodeError, Operator};
use crate::batch::{Batch, Flow};
use crate::block::{Block, Column};
use crate::expression::Expression;
use std::sync::Arc;

/// Passes everything on. What a `from` lets in is decided by the routes.
pub(crate) struct From;

impl Operator for From {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        out.push(flow);
        Ok(())
    }
}

/// Passes on the points for which a condition is true.
pub(crate) struct Where(pub(crate) Expression);

impl Operator for Where {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let batch = flow.into_points();
        let rows = self.0.select(&batch.block, &batch.rows)?;
        if !rows.is_empty() {
            out.push(Flow::Points(Batch { rows, ..batch }));
        }
        Ok(())
    }
}

/// Adds fields that are computed from others. A field of the same name is replaced.
pub(crate) struct Eval(pub(crate) Vec<(Arc<str>, Expression)>);

impl Operator for Eval {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let mut batch = flow.into_points();
        // One after the other: an expression may refer to those before it.
        for (name, expression) in &self.0 {
            let data = expression.column(&batch.block, &batch.rows)?;
            let column = Column {
                name: name.clone(),
                data: Arc::new(data),
            };
            batch.block = Arc::new(with_field(&batch.block, column));
        }
        out.push(Flow::Points(batch));
        Ok(())
    }
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
