//! `alert`: points at which the level of their group changes.

use super::derive::{evaluate, with_field};
use super::faults::Faults;
use super::series::{Limits, Series};
use super::{Counter, Counters, Kept, Operator};
use crate::batch::{Batch, Flow};
use crate::block::{Cells, Column, Data};
use crate::expression::Expression;
use crate::pipeline;
use std::sync::Arc;

/// Gives every point the highest level whose condition is true for it, `OK` if there is none, and
/// passes on those whose level differs from that of the point before in the group; a group begins
/// with `OK`. They get the fields `level`, `previous` and `id`. A point for which a condition has no
/// answer changes no level.
pub(crate) struct Alert {
    id: Arc<str>,
    /// By level, the lowest first.
    conditions: [Option<Expression>; 3],
    levels: Series<u8>,
    changes: Counter,
    faults: Faults,
}

/// By number. Level 0 has no condition.
const NAMES: [&str; 4] = ["OK", "INFO", "WARNING", "CRITICAL"];

impl Alert {
    /// `id` is what identifies it if the pipeline does not say.
    pub(crate) fn new(
        alert: &pipeline::Alert,
        id: String,
        limits: Limits,
        faults: Faults,
    ) -> Alert {
        Alert {
            id: alert.id.clone().unwrap_or_else(|| id.into()),
            conditions: [alert.info.clone(), alert.warn.clone(), alert.crit.clone()],
            levels: Series::new(limits),
            changes: Counter::default(),
            faults,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![("changes", self.changes.clone())];
        counters.push(("errors", self.faults.counter()));
        counters.extend(self.levels.counters());
        counters
    }

    /// The level of each row of a batch. Rows without an answer are taken out of it.
    fn levels(&self, batch: &mut Batch) -> Vec<u8> {
        let mut levels = vec![0u8; batch.rows.len()];
        let mut level = 0;
        while level < self.conditions.len() {
            let Some(condition) = &self.conditions[level] else {
                level += 1;
                continue;
            };
            let (rows, marks) = evaluate(condition, true, batch, &self.faults, |rows| {
                condition.marks(&batch.block, rows)
            });
            if rows.len() < batch.rows.len() {
                // The levels known so far are those of other rows.
                batch.rows = rows;
                levels = vec![0; batch.rows.len()];
                level = 0;
                continue;
            }
            level += 1;
            for (known, mark) in levels.iter_mut().zip(marks) {
                if mark {
                    *known = level as u8;
                }
            }
        }
        levels
    }

    fn changed(&mut self, mut batch: Batch) -> Option<Batch> {
        drop(self.levels.expired());
        let levels = self.levels(&mut batch);
        let last = self.levels.entry(&batch.group, batch.rows.len(), || 0)?;
        let mut changes = Changes::default();
        for (row, level) in batch.rows.iter().zip(levels) {
            if level != *last {
                changes.rows.push(row as u32);
                changes.levels.push(level);
                changes.previous.push(std::mem::replace(last, level));
            }
        }
        if changes.rows.is_empty() {
            return None;
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
        Some(Batch::all(Arc::new(block), batch.group))
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
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let changed = self.changed(flow.into_points());
        out.extend(changed.map(Flow::Points));
    }

    fn save(&self) -> Option<Kept> {
        let levels = self.levels.iter().filter(|(_, level)| **level > 0);
        let levels = levels.map(|(group, level)| ((**group).clone(), *level));
        Some(Kept::Levels(levels.collect()))
    }

    fn restore(&mut self, kept: Kept) {
        if let Kept::Levels(levels) = kept {
            for (group, level) in levels {
                let level = level.min(NAMES.len() as u8 - 1);
                self.levels.entry(&Arc::new(group), 0, || level);
            }
        }
    }
}
