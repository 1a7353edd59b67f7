//! Points that are kept must not hold on to the blocks that they came in.
//!
//! A kept batch shares its block with everybody else; one kept row of a hundred thousand would keep
//! all of them in memory. A node notes the blocks that it keeps rows of. Once they have grown to a
//! multiple of what was needed at the last look, it has the rows that it still keeps copied out of
//! those blocks of which most rows are not kept. So memory is linear in what is kept, and the
//! copying costs a constant factor.

use crate::batch::{Batch, Rows};
use crate::block::Block;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes that may be held without regard to how many of them are needed.
const FREE: usize = 4 << 20;
/// Beyond that, blocks grow by this factor before the next look.
const GROWTH: usize = 3;
/// A block is left as it is if more than one row of so many is kept.
const SPARSE: usize = 2;

/// The blocks noted since the last look.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    /// The address of the last one, to tell whether the next is another.
    last: usize,
    /// Bytes of blocks noted.
    noted: usize,
    /// Bytes that the last look has left.
    needed: usize,
}

impl Retained {
    /// Rows of this block are kept from now on.
    pub(crate) fn note(&mut self, block: &Arc<Block>) {
        let address = Arc::as_ptr(block) as usize;
        if self.last != address {
            self.last = address;
            self.noted += block.bytes();
        }
    }

    /// Whether it is time for [`Retained::compact`].
    pub(crate) fn is_due(&self) -> bool {
        self.noted > FREE + GROWTH * self.needed
    }

    /// Copies the rows of these batches out of blocks of which most rows are in none of them. `all`
    /// calls a function with each batch that the node keeps, the same ones each time.
    pub(crate) fn compact(&mut self, mut all: impl FnMut(&mut dyn FnMut(&mut Batch))) {
        let mut kept: FxHashMap<usize, usize> = FxHashMap::default();
        all(&mut |batch| {
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
                // Once per block.
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
        self.noted = 0;
        self.last = 0;
    }
}

/// A block of which few rows are kept, and which; then the block of those rows only.
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
        let mut retained = Retained::default();
        retained.compact(|each| kept.iter_mut().for_each(each));
        assert!(weak.upgrade().is_none(), "the block is still held");
        assert_eq!(times(&kept[0]), [700, 701, 702]);
        assert_eq!(times(&kept[1]), [5, 701, 999]);
        assert_eq!(kept[0].block.rows(), 5);
        assert!(Arc::ptr_eq(&kept[0].block, &kept[1].block), "it is shared");
        assert!(Arc::ptr_eq(&kept[2].block, &full), "a full block stays");
    }

    #[test]
    fn blocks_are_looked_at_when_they_have_grown_to_a_multiple_of_what_was_needed() {
        let mut retained = Retained::default();
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
            retained.note(block);
            retained.note(block);
            if retained.is_due() {
                looks += 1;
                retained.compact(|each| kept.iter_mut().for_each(each));
            }
        }
        assert!((1..=4).contains(&looks), "{looks} looks at 32 MB");
    }
}
