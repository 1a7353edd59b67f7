//! The work of a worker that encodes values one by one. It does not depend on how the worker receives the indices.

use crate::Format;
use crate::batch::Placement;
use crate::failure::FirstFailure;
use crate::worker_buffer::WorkerBuffer;
use serde::Serialize;

/// One worker: the format, the values, and the part to which it writes.
pub(super) struct EncodeJob<'a, F, T> {
    format: &'a F,
    values: &'a [T],
    first: &'a FirstFailure,
    /// The index of the worker's part among the parts of the run.
    number: usize,
    part: &'a mut WorkerBuffer,
}

impl<'a, F: Format, T: Serialize> EncodeJob<'a, F, T> {
    /// Returns a worker for each part.
    pub(super) fn each(
        format: &'a F,
        values: &'a [T],
        first: &'a FirstFailure,
        parts: &'a mut [WorkerBuffer],
    ) -> impl Iterator<Item = EncodeJob<'a, F, T>> {
        parts
            .iter_mut()
            .enumerate()
            .map(move |(number, part)| EncodeJob {
                format,
                values,
                first,
                number,
                part,
            })
    }

    /// Encodes the value at `index`, and returns its position; `None` if this value or one before
    /// it has failed.
    pub(super) fn encode(&mut self, index: usize) -> Option<(usize, Placement)> {
        if !self.first.is_after(index) {
            return None;
        }
        let placement = Placement {
            part: self.number,
            entry: self.part.len(),
        };
        match self.part.encode(self.format, index, &self.values[index]) {
            Ok(()) => Some((index, placement)),
            Err(error) => {
                self.first.record(error);
                None
            }
        }
    }
}
