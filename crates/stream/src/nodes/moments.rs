//! Collects points with the same time, for `flatten` and `combine`.

use super::buffer::{BufferOperator, nearest};
use crate::batch::{Batch, Flow, Rows, Window};
use crate::block::Block;
use crate::node::series::Limits;
use crate::node::{Counters, Operator, State};
use std::sync::Arc;
use std::time::Duration;

/// Collects the points of each group whose times belong to the same multiple of a tolerance, until a point of another
/// time arrives.
pub(super) struct Moments {
    step: i64,
    buffer: BufferOperator,
}

impl Moments {
    pub(super) fn new(tolerance: Duration, limits: Limits) -> Moments {
        Moments {
            step: i64::try_from(tolerance.as_nanos()).unwrap_or(i64::MAX),
            buffer: BufferOperator::moments(limits),
        }
    }

    /// Returns the points of each complete time, as a window that ends at that time. At the end of a window all of
    /// its times are complete.
    pub(super) fn take(&mut self, input: usize, flow: Flow) -> Vec<Window> {
        let batch = match flow {
            Flow::Window(window) => return self.of_window(&window),
            Flow::Points(batch) => self.rounded(&batch),
        };
        let mut complete = Vec::new();
        self.buffer.take(input, Flow::Points(batch), &mut complete);
        let windows = complete.into_iter().filter_map(|flow| match flow {
            Flow::Window(window) => Some(window),
            Flow::Points(_) => None,
        });
        windows.collect()
    }

    fn of_window(&self, window: &Window) -> Vec<Window> {
        let mut times: Vec<Window> = Vec::new();
        for batch in window.batches.iter().map(|batch| self.rounded(batch)) {
            let rows: Vec<u32> = batch.rows.iter().map(|row| row as u32).collect();
            for rows in rows
                .chunk_by(|&a, &b| batch.block.times[a as usize] == batch.block.times[b as usize])
            {
                let end = batch.block.times[rows[0] as usize];
                let points = batch.with_rows(Rows::List(rows.into()));
                match times.last_mut() {
                    Some(last) if last.end == end => last.batches.push(points),
                    _ => times.push(Window {
                        end,
                        period: 0,
                        batches: vec![points],
                    }),
                }
            }
        }
        times
    }

    /// Returns the points with their times rounded.
    fn rounded(&self, batch: &Batch) -> Batch {
        if self.step <= 1 {
            return batch.clone();
        }
        let times = batch.block.times.iter();
        let block = Block {
            origin: batch.block.origin.clone(),
            times: times.map(|&time| nearest(time, self.step)).collect(),
            columns: batch.block.columns.clone(),
        };
        Batch {
            block: Arc::new(block),
            ..batch.clone()
        }
    }

    pub(super) fn counters(&self) -> Counters {
        self.buffer.counters()
    }

    pub(super) fn save(&self) -> Option<State> {
        self.buffer.save()
    }

    pub(super) fn restore(&mut self, state: &State) {
        self.buffer.restore(state);
    }
}
