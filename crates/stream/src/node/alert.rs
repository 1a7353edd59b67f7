//! `alert`: points at which the level of their group changes.

use super::derive::with_field;
use super::{Counter, NodeError, Operator};
use crate::batch::{Batch, Flow, Group};
use crate::block::{Cells, Column, Data};
use crate::expression::Expression;
use crate::pipeline;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Gives every point the highest level whose condition is true for it, `OK` if there is none, and
/// passes on those whose level differs from that of the point before in the group; a group begins
/// with `OK`. They get the fields `level`, `previous` and `id`.
pub(crate) struct Alert {
    id: Arc<str>,
    /// By level, the lowest first.
    conditions: [Option<Expression>; 3],
    levels: FxHashMap<Arc<Group>, u8>,
    changes: Counter,
}

/// By number. Level 0 has no condition.
const NAMES: [&str; 4] = ["OK", "INFO", "WARNING", "CRITICAL"];

impl Alert {
    /// `id` is what identifies it if the pipeline does not say.
    pub(crate) fn new(alert: &pipeline::Alert, id: String) -> Alert {
        Alert {
            id: alert.id.clone().unwrap_or_else(|| id.into()),
            conditions: [alert.info.clone(), alert.warn.clone(), alert.crit.clone()],
            levels: FxHashMap::default(),
            changes: Counter::default(),
        }
    }

    fn changed(&mut self, batch: &Batch) -> Result<Option<Batch>, NodeError> {
        let rows = batch.block.rows();
        let mut levels = vec![0u8; rows];
        for (condition, level) in self.conditions.iter().zip(1..) {
            if let Some(condition) = condition {
                for row in condition.select(&batch.block, &batch.rows)?.iter() {
                    levels[row] = level;
                }
            }
        }
        let last = self.levels.entry(batch.group.clone()).or_default();
        let mut changes = Changes::default();
        for row in batch.rows.iter() {
            if levels[row] != *last {
                changes.rows.push(row as u32);
                changes.levels.push(levels[row]);
                changes.previous.push(std::mem::replace(last, levels[row]));
            }
        }
        if changes.rows.is_empty() {
            return Ok(None);
        }
        self.changes.add(changes.rows.len());
        let names = NAMES.map(Arc::<str>::from);
        let named = |levels: &[u8]| {
            let name = |&level: &u8| names[level as usize].clone();
            text(levels.iter().map(name).collect())
        };
        let ids = text(vec![self.id.clone(); changes.rows.len()]);
        let mut block = batch.block.gather(&changes.rows);
        block = with_field(&block, column("level", named(&changes.levels)));
        block = with_field(&block, column("previous", named(&changes.previous)));
        block = with_field(&block, column("id", ids));
        Ok(Some(Batch::all(Arc::new(block), batch.group.clone())))
    }
}

/// Points at which the level changes: their rows, their levels, and those before.
#[derive(Default)]
struct Changes {
    rows: Vec<u32>,
    levels: Vec<u8>,
    previous: Vec<u8>,
}

fn text(values: Vec<Arc<str>>) -> Data {
    Data::Text(Cells {
        values,
        present: None,
    })
}

fn column(name: &str, data: Data) -> Column {
    Column {
        name: name.into(),
        data: Arc::new(data),
    }
}

impl Operator for Alert {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let changed = self.changed(&flow.into_points())?;
        out.extend(changed.map(Flow::Points));
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, Counter)> {
        vec![("changes", self.changes.clone())]
    }
}
