//! Bounds the memory of retained points, which would otherwise keep their complete blocks in memory.
//!
//! A retained batch shares its block; one retained row of a hundred thousand would keep the whole block in memory.
//! Therefore a node records the blocks of its retained rows. When the blocks have grown to a multiple of the memory
//! that was needed at the last check, the node checks them. It copies the retained rows out of the blocks of which most
//! rows are not retained. So memory is linear in the number of retained rows, and the copying costs a constant factor.

use crate::batch::{Batch, Rows};
use crate::block::Block;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// The number of bytes up to which blocks are not checked.
const FREE: usize = 4 << 20;
/// The factor by which blocks may grow before the next check.
const GROWTH: usize = 3;
/// The inverse of the fraction of retained rows above which a block is not copied.
const SPARSE: usize = 2;

/// The maximum number of blocks that arrive at the same time, group by group, on the inputs of a node.
const ARRIVING: usize = 8;

/// The blocks recorded since the last check.
#[derive(Debug)]
pub(crate) struct RetainedBlocks {
    /// The most recently recorded blocks, which may get more rows. Each of them is alive, or its address is not in
    /// use by another block.
    arriving: VecDeque<Arriving>,
    /// The total bytes of the recorded blocks.
    noted: usize,
    /// The number of bytes of blocks that exceeded the limit since the last check.
    refused: usize,
    /// The number of bytes in use after the last check.
    needed: usize,
    /// The maximum number of bytes in use.
    limit: usize,
    due: bool,
}

#[derive(Debug)]
struct Arriving {
    block: Weak<Block>,
    bytes: usize,
    /// True if the block fitted into the memory limit.
    fitted: bool,
}

impl RetainedBlocks {
    /// Creates the record for a node that may retain this many bytes.
    pub(crate) fn new(limit: usize) -> RetainedBlocks {
        RetainedBlocks {
            arriving: VecDeque::with_capacity(ARRIVING),
            noted: 0,
            refused: 0,
            needed: 0,
            limit,
            due: false,
        }
    }

    /// Starts to retain rows of this block and `beside` other bytes. Returns false if the memory limit
    /// does not allow it.
    pub(crate) fn note(&mut self, block: &Arc<Block>, beside: usize) -> bool {
        let address = Arc::as_ptr(block);
        let known = |known: &&Arriving| known.block.as_ptr() == address;
        if let Some(known) = self.arriving.iter().rev().find(known) {
            return known.fitted;
        }
        // A complete block is checked when the next one arrives.
        let free = FREE.min(self.limit / 4);
        self.due |= self.noted > free + GROWTH * self.needed
            || self.noted + self.refused > free + self.limit / 4;
        let bytes = block.bytes();
        let held = self.held().saturating_add(beside);
        let fitted = held == 0 || held.saturating_add(bytes) <= self.limit;
        match fitted {
            true => self.noted += bytes,
            false => self.refused += bytes,
        }
        if self.arriving.len() == ARRIVING {
            self.arriving.pop_front();
        }
        self.arriving.push_back(Arriving {
            block: Arc::downgrade(block),
            bytes,
            fitted,
        });
        fitted
    }

    /// Returns the bytes of the recorded blocks.
    pub(crate) fn held(&self) -> usize {
        self.noted + self.needed
    }

    /// True if [`RetainedBlocks::compact`] is due.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Copies the rows of these batches out of blocks of which most rows are not retained. `all` calls a function
    /// with each batch that the node retains; every call of `all` must visit the same batches.
    pub(crate) fn compact(&mut self, mut all: impl FnMut(&mut dyn FnMut(&mut Batch))) {
        self.due = false;
        self.arriving.retain(|known| known.block.strong_count() > 0);
        // More rows of these blocks may arrive, so they stay recorded.
        let arriving = self.arriving.iter().filter(|known| known.fitted);
        let arriving: FxHashMap<usize, usize> = arriving
            .map(|known| (known.block.as_ptr() as usize, known.bytes))
            .collect();
        let mut kept: FxHashMap<usize, usize> = FxHashMap::default();
        all(&mut |batch| {
            if arriving.contains_key(&(Arc::as_ptr(&batch.block) as usize)) {
                return;
            }
            *kept.entry(Arc::as_ptr(&batch.block) as usize).or_default() += batch.rows.len();
        });
        let mut sparse: FxHashMap<usize, Sparse> = FxHashMap::default();
        self.needed = 0;
        all(&mut |batch| {
            let address = Arc::as_ptr(&batch.block) as usize;
            let Some(&rows) = kept.get(&address) else {
                return;
            };
            if rows * SPARSE >= batch.block.rows() {
                self.needed += batch.block.bytes();
                // Each block is counted once.
                kept.remove(&address);
                return;
            }
            let sparse = sparse.entry(address).or_insert_with(|| Sparse {
                rows: Vec::with_capacity(rows),
                block: batch.block.clone(),
            });
            sparse.rows.extend(batch.rows.iter().map(|row| row as u32));
        });
        for sparse in sparse.values_mut() {
            sparse.rows.sort_unstable();
            sparse.rows.dedup();
            sparse.block = Arc::new(sparse.block.gather(&sparse.rows));
            self.needed += sparse.block.bytes();
        }
        all(&mut |batch| {
            let Some(sparse) = sparse.get(&(Arc::as_ptr(&batch.block) as usize)) else {
                return;
            };
            let place = |row: usize| sparse.rows.partition_point(|&kept| (kept as usize) < row);
            batch.rows = match &batch.rows {
                Rows::Range(from, to) => {
                    let (from, to) = (place(*from as usize), place(*to as usize));
                    Rows::Range(from as u32, to as u32)
                }
                Rows::List(rows) => rows.iter().map(|&row| place(row as usize) as u32).collect(),
            };
            batch.block = sparse.block.clone();
        });
        self.noted = arriving.values().sum();
        self.refused = 0;
        self.arriving.retain(|known| known.fitted);
    }
}

/// A block with few retained rows: the rows, and later the new block that contains only these rows.
struct Sparse {
    rows: Vec<u32>,
    block: Arc<Block>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Group;
    use crate::block::{Cells, Column, Data, Origin};

    fn block(rows: usize) -> Arc<Block> {
        let cells = Cells {
            values: (0..rows as i64).collect(),
            present: None,
        };
        Arc::new(Block {
            origin: Arc::new(Origin {
                database: "db".into(),
                policy: "".into(),
                measurement: "m".into(),
            }),
            times: (0..rows as i64).collect(),
            columns: vec![Column {
                name: "v".into(),
                data: Arc::new(Data::Integer(cells)),
            }],
        })
    }

    fn times(batch: &Batch) -> Vec<i64> {
        let rows = batch.rows.iter();
        rows.map(|row| batch.block.times[row]).collect()
    }

    #[test]
    fn a_few_kept_rows_let_go_of_their_block_and_stay_what_they_are() {
        let (large, full) = (block(1000), block(10));
        let weak = Arc::downgrade(&large);
        let of = |block: &Arc<Block>, rows| Batch {
            block: block.clone(),
            rows,
            group: Arc::new(Group::default()),
        };
        let mut kept = [
            of(&large, Rows::Range(700, 703)),
            of(&large, Rows::from_iter([5, 701, 999])),
            of(&full, Rows::Range(0, 9)),
        ];
        drop(large);
        let mut retained = RetainedBlocks::new(usize::MAX);
        retained.compact(|each| kept.iter_mut().for_each(each));
        assert!(weak.upgrade().is_none(), "the block is still held");
        assert_eq!(times(&kept[0]), [700, 701, 702]);
        assert_eq!(times(&kept[1]), [5, 701, 999]);
        assert_eq!(kept[0].block.rows(), 5);
        assert!(Arc::ptr_eq(&kept[0].block, &kept[1].block), "it is shared");
        assert!(Arc::ptr_eq(&kept[2].block, &full), "a full block stays");
    }

    #[test]
    fn a_block_is_not_looked_at_while_its_groups_arrive_beside_those_of_another() {
        let blocks = [block(200_000), block(200_000)];
        let mut retained = RetainedBlocks::new(usize::MAX);
        for _ in 0..1000 {
            for block in &blocks {
                retained.note(block, 0);
                assert!(!retained.is_due());
            }
        }
        assert_eq!(retained.held(), blocks[0].bytes() * 2);
    }

    #[test]
    fn a_block_that_does_not_fit_is_refused_until_a_look_finds_room() {
        let mut retained = RetainedBlocks::new(FREE);
        let blocks: Vec<_> = (0..500).map(|_| block(1000)).collect();
        let taken = blocks
            .iter()
            .filter(|block| retained.note(block, 0))
            .count();
        assert!((200..300).contains(&taken), "{taken} of 16 KB in 4 MiB");
        assert!(retained.held() <= FREE);
        assert!(retained.is_due());
        drop(blocks);
        retained.compact(|_| {});
        assert_eq!(retained.held(), 0);
        let (one, other) = (block(1000), block(1000));
        assert!(retained.note(&one, 0));
        assert!(!retained.note(&other, FREE), "what else is kept counts");
        assert!(!retained.note(&other, 0), "for all groups of the block");
    }

    #[test]
    fn blocks_are_looked_at_when_they_have_grown_to_a_multiple_of_what_was_needed() {
        let mut retained = RetainedBlocks::new(usize::MAX);
        let blocks: Vec<_> = (0..2000).map(|_| block(1000)).collect();
        let mut looks = 0;
        let mut kept = Vec::new();
        for block in &blocks {
            let rows = Rows::Range(0, 1000);
            kept.push(Batch {
                block: block.clone(),
                rows,
                group: Arc::new(Group::default()),
            });
            retained.note(block, 0);
            retained.note(block, 0);
            if retained.is_due() {
                looks += 1;
                retained.compact(|each| kept.iter_mut().for_each(each));
            }
        }
        assert!((1..=4).contains(&looks), "{looks} looks at 32 MB");
    }
}
