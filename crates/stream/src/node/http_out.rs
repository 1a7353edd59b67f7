//! `http_out`: the latest window or point of every group, for those who ask.

use super::retain::Retained;
use super::series::{Limits, Series};
use super::{Counters, Operator};
use crate::batch::Flow;
use crate::json::json;
use parking_lot::Mutex;
use std::sync::Arc;

/// The latest window or point of every group.
#[derive(Clone, Debug)]
pub struct Latest(Arc<Mutex<Shown>>);

#[derive(Debug)]
struct Shown {
    flows: Series<Flow>,
    retained: Retained,
}

impl Latest {
    pub(crate) fn new(limits: Limits) -> Latest {
        Latest(Arc::new(Mutex::new(Shown {
            flows: Series::new(limits),
            retained: Retained::new(limits.bytes),
        })))
    }

    fn set(&self, flow: Flow) {
        let mut shown = self.0.lock();
        let Shown { flows, retained } = &mut *shown;
        drop(flows.expired());
        let group = flow.group().clone();
        let beside = flows.bytes();
        let mut room = true;
        for batch in flow.batches() {
            room &= retained.note(&batch.block, beside);
        }
        let points = flow.points();
        let mut new = Some(flow);
        if !room {
            flows.over_memory().add(points);
        } else if let Some(known) =
            flows.entry(&group, points, || new.take().expect("it is set once"))
            && let Some(flow) = new
        {
            *known = flow;
        }
        if retained.is_due() {
            retained.compact(|each| {
                for flow in flows.values_mut() {
                    flow.batches_mut().iter_mut().for_each(&mut *each);
                }
            });
        }
    }

    /// As JSON, a series per group, ordered by the values of the tags.
    pub fn json(&self) -> Vec<u8> {
        let shown = self.0.lock();
        let mut flows: Vec<Flow> = shown.flows.iter().map(|(_, flow)| flow.clone()).collect();
        drop(shown);
        flows.sort_unstable_by(|a, b| a.group().cmp(b.group()));
        json(&flows).into_bytes()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.0.lock().flows.counters()
    }
}

/// Keeps the latest for those who ask, and passes everything on.
pub(crate) struct HttpOut(pub(crate) Latest);

impl Operator for HttpOut {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let shown = match &flow {
            // Of points the last one, however they are divided into batches.
            Flow::Points(batch) => {
                let rows = batch.rows.len();
                let last = batch.rows.slice(rows.saturating_sub(1), rows);
                Flow::Points(batch.with_rows(last))
            }
            Flow::Window(_) => flow.clone(),
        };
        self.0.set(shown);
        out.push(flow);
    }
}
