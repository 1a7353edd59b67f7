//! Collects points with the same time, for `top`, `holtWinters`, `flatten` and `combine`.

use super::buffer::{BufferOperator, nearest};
use crate::batch::{Batch, Flow, Rows, Window};
use crate::block::Block;
use crate::node::faults::Faults;
use crate::node::{Context, Counters, Operator, State};
use std::sync::Arc;
use std::time::Duration;

/// The result of a node for points of one time.
pub(super) trait Moment: Send + 'static {
    /// The meaning of a window for this node, and the form of the results.
    const RESULTS: Results;

    /// Returns the result for a window; `None` if there is no result. Unless [`RESULTS`](Moment::RESULTS) is
    /// [`Results::OfWindows`], all points of the window have the same time, which is the end of the window.
    fn result(&self, points: &Window, faults: &Faults) -> Option<Batch>;
}

/// The meaning of a window for a node, and the form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Results {
    /// The points of a window belong together, whatever their times. Every result is a window.
    OfWindows,
    /// Each time of a window has a result, which is a point.
    Points,
    /// Each time of a window has a result, and the results of a window form a window. Results of points that are not in
    /// a window are points.
    LikeInput,
}

/// Collects the points of each group whose times belong to the same multiple of a tolerance, until a point of another
/// time arrives, and sends the results of these points.
pub(super) struct Moments<N> {
    node: N,
    step: i64,
    buffer: BufferOperator,
    faults: Faults,
}

impl<N: Moment> Moments<N> {
    pub(super) fn new(node: N, tolerance: Duration, context: &Context<'_>) -> Moments<N> {
        Moments {
            node,
            step: i64::try_from(tolerance.as_nanos()).unwrap_or(i64::MAX),
            buffer: BufferOperator::moments(context.limits),
            faults: context.faults.clone(),
        }
    }

    /// Returns the points of each complete time. At the end of a window all of its times are complete.
    fn complete(&mut self, input: usize, flow: Flow) -> Vec<Window> {
        let batch = match flow {
            Flow::Window(window) if N::RESULTS == Results::OfWindows => return vec![window],
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
}

impl<N: Moment> Operator for Moments<N> {
    fn take(&mut self, input: usize, flow: Flow, out: &mut Vec<Flow>) {
        let window = match &flow {
            Flow::Window(window) => Some((window.end, window.period)),
            Flow::Points(_) => None,
        };
        let complete = self.complete(input, flow);
        let results = complete.iter().filter_map(|points| {
            let batch = self.node.result(points, &self.faults)?;
            Some((points.end, points.period, batch))
        });
        let of = |end, period, batches| {
            Flow::Window(Window {
                end,
                period,
                batches,
            })
        };
        match (N::RESULTS, window) {
            (Results::OfWindows, _) => {
                out.extend(results.map(|(end, period, batch)| of(end, period, vec![batch])));
            }
            (Results::LikeInput, Some((end, period))) => {
                let batches: Vec<Batch> = results.map(|(.., batch)| batch).collect();
                if !batches.is_empty() {
                    out.push(of(end, period, batches));
                }
            }
            _ => out.extend(results.map(|(.., batch)| Flow::Points(batch))),
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.buffer.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        self.buffer.save()
    }

    fn restore(&mut self, state: &State) {
        self.buffer.restore(state);
    }
}
