//! A block that grows.

use super::column::{FieldColumn, Keyed, NONE, TagColumn};
use super::spelling::Piece;
use super::{Block, Column, Origin};
use crate::hash::Seeded;
use crate::line::{RawValue, Tokens};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The number of cells up to which missing cells do not matter.
const FREE_CELLS: usize = 1024;

/// The maximum number of cells per value in larger tables.
const CELLS_PER_VALUE: usize = 4;

/// The approximate memory of a column in bytes, besides its cells.
const COLUMN: usize = 256;

/// The approximate memory of a string in bytes, besides its own bytes.
const TEXT: usize = 64;

/// A table of points of one measurement.
#[derive(Debug, Default)]
pub(super) struct Table {
    times: Vec<i64>,
    tags: Columns<TagColumn>,
    fields: Columns<FieldColumn>,
    /// The number of values.
    values: usize,
    /// The line number of each row, if stored.
    numbers: Vec<u32>,
}

/// Columns of one role, in order of first appearance.
#[derive(Debug)]
struct Columns<C> {
    columns: Vec<C>,
    index: HashTable<u32>,
    /// The first column in the previous line.
    first: u32,
}

impl<C> Default for Columns<C> {
    fn default() -> Columns<C> {
        Columns {
            columns: Vec::new(),
            index: HashTable::new(),
            first: NONE,
        }
    }
}

impl Table {
    /// Returns the number of points.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// True if one more row could leave most cells empty: lines without common keys would make a table of
    /// quadratic size.
    #[inline]
    pub fn is_sparse_with(&self, tokens: &Tokens) -> bool {
        let more = tokens.tags.len() + tokens.fields.len();
        let columns = self.columns() + more;
        let cells = (self.rows() + 1).saturating_mul(columns);
        cells > FREE_CELLS + CELLS_PER_VALUE * (self.values + more)
    }

    /// Adds a row and returns the approximate memory in bytes that the row adds. Takes amortised O(tokens) time, and
    /// allocates nothing if the table already has the row's columns and words.
    #[inline]
    pub fn push(&mut self, region: &str, tokens: &Tokens, time: i64, hasher: &Seeded) -> usize {
        let row = self.rows();
        let columns = self.columns();
        self.times.push(time);
        self.values += tokens.tags.len() + tokens.fields.len();
        let mut words = 0;
        let mut before = NONE;
        for &(key, value) in &tokens.tags {
            let key = Piece::new(region, key);
            before = self
                .tags
                .find(key, before, hasher, || TagColumn::new(key.keep()));
            let column = &mut self.tags.columns[before as usize];
            words += column.push(row, Piece::new(region, value), hasher);
        }
        let mut before = NONE;
        for &(key, value) in &tokens.fields {
            let key = Piece::new(region, key);
            let new = || FieldColumn::new(key.keep(), value);
            before = self.fields.find(key, before, hasher, new);
            self.fields.columns[before as usize].push(row, value, region);
        }
        // Vectors have up to twice the capacity that they need.
        let cells = tokens.fields.iter().map(|(_, value)| match value {
            RawValue::Text(span) => TEXT + span.to - span.from,
            _ => 16,
        });
        2 * size_of::<i64>() + (self.columns() - columns) * COLUMN + words + cells.sum::<usize>()
    }

    fn columns(&self) -> usize {
        self.tags.columns.len() + self.fields.columns.len()
    }

    /// Stores the line number of the last row.
    pub fn number(&mut self, line: u32) {
        self.numbers.push(line);
    }

    /// Returns the contents as a block, with the stored line numbers, and empties the table.
    pub fn finish(&mut self, origin: Arc<Origin>) -> (Block, Vec<u32>) {
        let table = std::mem::take(self);
        let rows = table.rows();
        let tags = table.tags.columns.into_iter().map(|tag| tag.finish(rows));
        let fields = table
            .fields
            .columns
            .into_iter()
            .map(|field| field.finish(rows));
        let column = |(name, data)| Column {
            name,
            data: Arc::new(data),
        };
        let block = Block {
            origin,
            times: table.times.into(),
            columns: tags.chain(fields).map(column).collect(),
        };
        (block, table.numbers)
    }
}

impl<C: Keyed> Columns<C> {
    /// Returns the index of the column with this key, which follows the column `before` in the line. It takes
    /// one comparison if the previous line had the same order.
    #[inline]
    fn find(
        &mut self,
        key: Piece<'_>,
        before: u32,
        hasher: &Seeded,
        new: impl FnOnce() -> C,
    ) -> u32 {
        let expected = match self.columns.get_mut(before as usize) {
            Some(column) => *column.next(),
            None => self.first,
        };
        match self.columns.get(expected as usize) {
            Some(column) if column.key().is(key) => expected,
            _ => self.search(key, before, hasher, new),
        }
    }

    /// Finds a column like [`find`](Self::find), after the expected column did not match.
    #[inline(never)]
    fn search(
        &mut self,
        key: Piece<'_>,
        before: u32,
        hasher: &Seeded,
        new: impl FnOnce() -> C,
    ) -> u32 {
        let columns = &mut self.columns;
        let entry = self.index.entry(
            hasher.hash_one(key.bytes()),
            |&place| columns[place as usize].key().is(key),
            |&place| hasher.hash_one(columns[place as usize].key().bytes()),
        );
        let place = match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let place = columns.len() as u32;
                entry.insert(place);
                columns.push(new());
                place
            }
        };
        match self.columns.get_mut(before as usize) {
            Some(column) => *column.next() = place,
            None => self.first = place,
        }
        place
    }
}
