//! The contents of a task's edges: batches and windows. A batch selects rows of a shared block; a window consists of
//! batches.

use crate::block::{Block, Column, Data, Words};
use std::sync::Arc;

/// The points that a node passes to the next node: rows of one block, in order, of one group.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The block, shared with all other tasks and nodes that have points of it.
    pub block: Arc<Block>,
    /// The selected rows.
    pub rows: Rows,
    /// The group of the points.
    pub group: Arc<Group>,
}

/// A selection of rows of a block, in ascending order.
#[derive(Clone, Debug)]
pub enum Rows {
    /// The rows from the first number up to, but not including, the second.
    Range(u32, u32),
    /// A list of rows.
    List(Arc<[u32]>),
}

/// A group of points: the names and values of the tags by which the points are grouped. The group of points that were
/// never grouped has no tags.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Group {
    /// Names and values, ordered by name; a missing tag has the empty value.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// The measurement of the points, if they are grouped by measurement.
    pub measurement: Option<Arc<str>>,
}

/// The points of one group in an interval of time.
#[derive(Clone, Debug)]
pub struct Window {
    /// The end in nanoseconds since 1970; points at this instant belong to the next window.
    pub end: i64,
    /// The length in nanoseconds.
    pub period: i64,
    /// The points, in the order of arrival: at least one batch, all of one group.
    pub batches: Vec<Batch>,
}

/// A time before which no further points of a group arrive, so that windows that end at this time or earlier are
/// complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watermark {
    /// The group. A group with fewer tags stands for all groups with the same values of these tags.
    pub(crate) group: Arc<Group>,
    /// The time in nanoseconds since 1970.
    pub(crate) time: i64,
    /// True if windows remove the state of the group.
    pub(crate) delete: bool,
}

/// The content of an edge: points or a window.
#[derive(Clone, Debug)]
pub enum Flow {
    /// Points, as they arrive.
    Points(Batch),
    /// A window of points.
    Window(Window),
}

impl Flow {
    /// Returns the number of points.
    pub fn points(&self) -> usize {
        match self {
            Flow::Points(batch) => batch.rows.len(),
            Flow::Window(window) => window.batches.iter().map(|batch| batch.rows.len()).sum(),
        }
    }

    /// Returns the group of the points.
    ///
    /// # Panics
    /// If the flow is a window without a batch.
    pub fn group(&self) -> &Arc<Group> {
        match self {
            Flow::Points(batch) => &batch.group,
            Flow::Window(window) => &window.batches[0].group,
        }
    }

    /// Returns the batches, at least one.
    pub fn batches(&self) -> &[Batch] {
        match self {
            Flow::Points(batch) => std::slice::from_ref(batch),
            Flow::Window(window) => &window.batches,
        }
    }

    pub(crate) fn batches_mut(&mut self) -> &mut [Batch] {
        match self {
            Flow::Points(batch) => std::slice::from_mut(batch),
            Flow::Window(window) => &mut window.batches,
        }
    }

    /// Changes each batch. A window without points remains a window; a batch without points is removed.
    pub(crate) fn map(self, mut change: impl FnMut(Batch) -> Batch) -> Option<Flow> {
        match self {
            Flow::Points(batch) => {
                let batch = change(batch);
                (!batch.rows.is_empty()).then_some(Flow::Points(batch))
            }
            Flow::Window(mut window) => {
                window.batches = window.batches.into_iter().map(change).collect();
                // One batch without points stays, because it carries the group.
                let mut first = true;
                window
                    .batches
                    .retain(|batch| std::mem::take(&mut first) || !batch.rows.is_empty());
                Some(Flow::Window(window))
            }
        }
    }

    /// Returns the batch of points, for nodes that never receive windows.
    ///
    /// # Panics
    /// If the flow is a window.
    pub(crate) fn into_points(self) -> Batch {
        match self {
            Flow::Points(batch) => batch,
            Flow::Window(_) => {
                unreachable!("a pipeline feeds windows to aggregates and sinks only")
            }
        }
    }
}

impl Watermark {
    /// True for the group of the watermark, and for the groups that it stands for.
    pub(crate) fn is_of(&self, group: &Group) -> bool {
        let own = &self.group;
        let measurement = own.measurement.is_none() || own.measurement == group.measurement;
        measurement && own.tags.iter().all(|tag| group.tags.contains(tag))
    }
}

impl Group {
    /// Returns the approximate memory of the flow in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // The reference counts and the list; for each tag two pointers, the reference counts of the value, and the
        // value.
        let tag = |(_, value): &(Arc<str>, Arc<str>)| 56 + value.len();
        48 + self.tags.iter().map(tag).sum::<usize>()
    }
}

impl Batch {
    /// Returns a batch of the same block and group with only these rows.
    pub fn with_rows(&self, rows: Rows) -> Batch {
        Batch {
            block: self.block.clone(),
            rows,
            group: self.group.clone(),
        }
    }

    /// Returns a block that contains only the points of this batch.
    pub fn to_block(&self) -> Block {
        match self.rows {
            Rows::Range(0, to) if to as usize == self.block.rows() => (*self.block).clone(),
            _ => {
                let rows: Vec<u32> = self.rows.iter().map(|row| row as u32).collect();
                self.block.gather(&rows)
            }
        }
    }

    /// Returns points of this batch's measurement and group, with the group's tags and these fields.
    pub(crate) fn of_group(&self, times: Arc<[i64]>, fields: Vec<Column>) -> Batch {
        let tag = |(name, value): &(Arc<str>, Arc<str>)| Column {
            name: name.clone(),
            data: Arc::new(Data::Tag(Words {
                codes: vec![if value.is_empty() { Words::MISSING } else { 0 }; times.len()],
                words: vec![value.clone()],
            })),
        };
        let columns = self.group.tags.iter().map(tag).chain(fields).collect();
        let block = Block {
            origin: self.block.origin.clone(),
            times,
            columns,
        };
        Batch::all(Arc::new(block), self.group.clone())
    }

    /// Selects all points of a block, in one group.
    pub fn all(block: Arc<Block>, group: Arc<Group>) -> Batch {
        let rows = Rows::Range(0, block.rows() as u32);
        Batch { block, rows, group }
    }
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Rows::Range(from, to) => (to - from) as usize,
            Rows::List(rows) => rows.len(),
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the row at this index.
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

    /// Returns the rows from index `from` to before index `to`.
    ///
    /// # Panics
    /// If `from` is greater than `to`, or `to` than [`Rows::len`].
    pub fn slice(&self, from: usize, to: usize) -> Rows {
        assert!(
            from <= to && to <= self.len(),
            "{from}..{to} of {}",
            self.len()
        );
        match self {
            _ if from == 0 && to == self.len() => self.clone(),
            Rows::Range(first, _) => Rows::Range(first + from as u32, first + to as u32),
            Rows::List(rows) => Rows::from_iter(rows[from..to].iter().copied()),
        }
    }

    /// Iterates over the rows in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let (range, list) = match self {
            Rows::Range(from, to) => (*from..*to, &[][..]),
            Rows::List(rows) => (0..0, &rows[..]),
        };
        range.chain(list.iter().copied()).map(|row| row as usize)
    }
}

/// The rows must be in ascending order.
impl FromIterator<u32> for Rows {
    fn from_iter<I: IntoIterator<Item = u32>>(rows: I) -> Rows {
        Rows::List(rows.into_iter().collect())
    }
}
