//! One value after the other, on the caller's thread: the baseline for the other strategies.

use super::Strategy;
use crate::batch::{ONE_BLOCK, Placement};
use crate::worker_buffer::WorkerBuffer;
use crate::{Batch, Format, MarshalError};
use serde::Serialize;

/// Encodes one value after the other into one buffer.
///
/// This is the fastest strategy for few or small values. In steady state it allocates nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Strategy for Serial {
    fn name(&self) -> &'static str {
        "serial"
    }

    fn workers(&self) -> usize {
        1
    }

    fn marshal_into<F: Format, T: Serialize + Sync>(
        &self,
        format: &F,
        values: &[T],
        batch: &mut Batch<F>,
    ) -> Result<(), MarshalError> {
        let (parts, placements) = batch.open(1, 1);
        placements[0] = Placement::default();
        let outcome = encode_all(format, values, &mut parts[0]);
        batch.settle(outcome, values.len(), ONE_BLOCK)
    }
}

fn encode_all<F: Format, T: Serialize>(
    format: &F,
    values: &[T],
    part: &mut WorkerBuffer,
) -> Result<(), MarshalError> {
    for (index, value) in values.iter().enumerate() {
        part.encode(format, index, value)?;
    }
    Ok(())
}
