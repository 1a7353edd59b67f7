//! The saved form of retained batches.
//!
//! Batches share blocks, and often have a single row of a large block. So the rows of all batches are copied from each
//! block at once, and a saved batch is a range of rows of a saved block.

use crate::batch::{Batch, Group, Rows};
use crate::block::Block;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A batch in a saved state: the index of its block, its first row, and the row after its last one.
pub(crate) type SavedBatch = (u32, u32, u32);

/// Collects the rows of batches.
#[derive(Debug, Default)]
pub(crate) struct BatchSaver {
    /// The index of each block, by address.
    index: FxHashMap<usize, u32>,
    blocks: Vec<(Arc<Block>, Vec<u32>)>,
}

/// The blocks of a saved state.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedBlocks(Vec<Arc<Block>>);

impl BatchSaver {
    /// Adds the rows of a batch.
    pub(crate) fn add(&mut self, batch: &Batch) -> SavedBatch {
        let address = Arc::as_ptr(&batch.block) as usize;
        let blocks = &mut self.blocks;
        let index = *self.index.entry(address).or_insert_with(|| {
            blocks.push((batch.block.clone(), Vec::new()));
            blocks.len() as u32 - 1
        });
        let rows = &mut blocks[index as usize].1;
        let begin = rows.len() as u32;
        rows.extend(batch.rows.iter().map(|row| row as u32));
        (index, begin, rows.len() as u32)
    }

    /// Returns blocks with the rows of all batches.
    pub(crate) fn finish(self) -> SavedBlocks {
        let blocks = self.blocks.into_iter();
        SavedBlocks(
            blocks
                .map(|(block, rows)| Arc::new(block.gather(&rows)))
                .collect(),
        )
    }
}

impl SavedBlocks {
    /// Returns a batch; `None` if it does not exist.
    pub(crate) fn batch(&self, saved: SavedBatch, group: &Arc<Group>) -> Option<Batch> {
        let (index, from, to) = saved;
        let block = self.0.get(index as usize)?;
        (from <= to && to as usize <= block.rows()).then(|| Batch {
            block: block.clone(),
            rows: Rows::Range(from, to),
            group: group.clone(),
        })
    }

    /// Iterates over the blocks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Builder, Origin};
    use crate::line::Precision;

    #[test]
    fn saved_batches_have_the_points_of_the_batches() {
        let text: String = (0..9)
            .map(|at| format!("m,h=h{} v={at}i {at}\n", at % 4))
            .collect();
        let mut builder = Builder::new();
        let wanted = |measurement: &str| {
            let (database, policy, measurement) = ("".into(), "".into(), measurement.into());
            Some(Arc::new(Origin {
                database,
                policy,
                measurement,
            }))
        };
        builder.feed(text.as_bytes(), Precision::Seconds, 0, wanted, |error| {
            panic!("{error}")
        });
        let block = Arc::new(builder.finish().remove(0));
        let group = Arc::new(Group::default());
        let batch = |rows| Batch {
            block: block.clone(),
            rows,
            group: group.clone(),
        };
        let batches = [
            batch(Rows::from_iter([1, 4, 8])),
            batch(Rows::Range(3, 5)),
            batch(Rows::Range(2, 2)),
        ];
        let mut saver = BatchSaver::default();
        let saved = batches.each_ref().map(|batch| saver.add(batch));
        let blocks = saver.finish();
        assert_eq!(
            blocks.iter().map(|block| block.rows()).collect::<Vec<_>>(),
            [5]
        );
        for (saved, batch) in saved.into_iter().zip(batches) {
            let restored = blocks.batch(saved, &group).unwrap();
            assert_eq!(restored.to_block().to_lines(), batch.to_block().to_lines());
        }
        for wrong in [(1, 0, 1), (0, 0, 6), (0, 2, 1)] {
            assert!(blocks.batch(wrong, &group).is_none());
        }
    }
}
