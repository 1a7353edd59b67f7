//! `derivative`: the change of a field from point to point, per unit of time.

use super::derive::with_field;
use super::faults::Faults;
use super::series::{Limits, Series};
use super::{Counters, Kept, Operator};
use crate::batch::{Batch, Flow};
use crate::block::{Cells, Column, Data};
use crate::expression;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self). The first point of a group, or of a window, gives nothing; nor does one at
/// the time of the point before.
pub(crate) struct Derivative {
    field: Arc<str>,
    into: Arc<str>,
    unit: f64,
    non_negative: bool,
    last: Series<Option<(i64, f64)>>,
    /// It goes on after a stop from the last point before it. Not of a `stats`, which counts nothing meanwhile.
    goes_on: bool,
    faults: Faults,
}

/// Why a point is left out.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("`{0}` is no number, or missing")]
    NoNumber(Arc<str>),
    #[error("the point has the time of the one before")]
    NoTime,
}

impl Derivative {
    pub(crate) fn new(
        (field, into): (Arc<str>, Arc<str>),
        unit: Duration,
        non_negative: bool,
        goes_on: bool,
        limits: Limits,
        faults: Faults,
    ) -> Derivative {
        Derivative {
            field,
            into,
            unit: unit.as_nanos() as f64,
            non_negative,
            last: Series::new(limits),
            goes_on,
            faults,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.last.counters());
        counters
    }

    fn changes(&self, batch: &Batch, last: &mut Option<(i64, f64)>) -> Batch {
        let column = batch
            .block
            .fields()
            .find(|column| column.name == self.field);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let (mut no_number, mut no_time) = (0, 0);
        for row in batch.rows.iter() {
            let value = column.and_then(|column| column.data.get(row));
            let Some(value) = value.as_ref().and_then(expression::as_float) else {
                no_number += 1;
                continue;
            };
            let time = batch.block.times[row];
            let Some((then, before)) = last.replace((time, value)) else {
                continue;
            };
            let elapsed = time as f64 - then as f64;
            if time == then {
                no_time += 1;
            } else if !self.non_negative || value >= before {
                rows.push(row as u32);
                values.push((value - before) / (elapsed / self.unit));
            }
        }
        for (points, fault) in [
            (no_number, Fault::NoNumber(self.field.clone())),
            (no_time, Fault::NoTime),
        ] {
            if points > 0 {
                self.faults.add(points, &fault);
            }
        }
        let column = Column {
            name: self.into.clone(),
            data: Arc::new(Data::Float(Cells {
                values,
                present: None,
            })),
        };
        let block = with_field(&batch.block.gather(&rows), column);
        Batch::all(Arc::new(block), batch.group.clone())
    }
}

impl Operator for Derivative {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        if let Flow::Window(_) = flow {
            let mut last = None;
            out.extend(flow.map(|batch| self.changes(&batch, &mut last)));
            return;
        }
        drop(self.last.expired());
        let points = flow.points();
        let group = flow.group().clone();
        let Some(mut last) = self.last.entry(&group, points, || None).map(|last| *last) else {
            return;
        };
        out.extend(flow.map(|batch| self.changes(&batch, &mut last)));
        if let Some(known) = self.last.get_mut(&group) {
            *known = last;
        }
    }

    fn save(&self) -> Option<Kept> {
        let last = self.last.iter();
        let last = last.filter_map(|(group, last)| Some(((**group).clone(), (*last)?)));
        self.goes_on.then(|| Kept::Last(last.collect()))
    }

    fn restore(&mut self, kept: Kept) {
        let Kept::Last(last) = kept else {
            return;
        };
        for (group, last) in last {
            self.last.entry(&group.into(), 0, || Some(last));
        }
    }
}
