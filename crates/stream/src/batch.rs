//! What travels over the edges of a task: selections of rows of shared blocks, and windows of them.

use crate::block::Block;
use std::sync::Arc;

/// The points that a node hands to the next: rows of one block, in order, of one group.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Shared with every other task and node that has points of it.
    pub block: Arc<Block>,
    /// Which of its rows.
    pub rows: Rows,
    /// The tags by which it was grouped.
    pub group: Arc<Group>,
}

/// Some rows of a block, ascending.
#[derive(Clone, Debug)]
pub enum Rows {
    /// From the first to before the second.
    Range(u32, u32),
    /// These.
    List(Arc<[u32]>),
}

/// The values of the tags by which points are grouped, by name. Points that were never grouped have
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    /// Name and value, ordered by name; a missing tag has the empty value.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
}

/// The points of a stretch of time, of one group.
#[derive(Clone, Debug)]
pub struct Window {
    /// Its end, nanoseconds since 1970; points at this instant belong to the next one.
    pub end: i64,
    /// Its length in nanoseconds.
    pub period: i64,
    /// Its points, in the order in which they came. At least one batch, all of one group.
    pub batches: Vec<Batch>,
}

impl Batch {
    /// All points of a block, not grouped.
    pub fn all(block: Arc<Block>, group: Arc<Group>) -> Batch {
        let rows = Rows::Range(0, block.rows() as u32);
        Batch { block, rows, group }
    }
}

impl Rows {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Rows::Range(from, to) => (to - from) as usize,
            Rows::List(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at this place.
    ///
    /// # Panics
    /// If `at` is not less than [`Rows::len`].
    pub fn get(&self, at: usize) -> usize {
        match self {
            Rows::Range(from, to) => {
                assert!(at < (to - from) as usize, "row {at} of {}", self.len());
                *from as usize + at
            }
            Rows::List(rows) => rows[at] as usize,
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let (range, list) = match self {
            Rows::Range(from, to) => (*from..*to, &[][..]),
            Rows::List(rows) => (0..0, &rows[..]),
        };
        range.chain(list.iter().copied()).map(|row| row as usize)
    }
}
