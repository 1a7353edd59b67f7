//! Columns that grow row by row.
//!
//! A column may have fewer cells than its table has rows. Missing cells are added together with the column's next
//! value, or at the end. So the cost of a row depends on the number of its values, not on the number of columns.

use super::spelling::{Piece, Spelling};
use super::{Cells, Data, Words};
use crate::hash::Seeded;
use crate::line::{Escaped, RawValue, Role};
use crate::{Kind, Value};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The value that stands for a missing index.
pub(super) const NONE: u32 = u32::MAX;

/// The common operations of tag and field columns.
pub(super) trait Keyed {
    fn key(&self) -> &Spelling;
    /// The index of the column that followed this column in the previous line.
    fn next(&mut self) -> &mut u32;
}

/// The values of a tag.
#[derive(Debug)]
pub(super) struct TagColumn {
    key: Spelling,
    next: u32,
    codes: Vec<u32>,
    words: Vec<Spelling>,
    /// For each word, the word that followed its last occurrence.
    follower: Vec<u32>,
    last: u32,
    index: HashTable<u32>,
}

/// The values of a field.
#[derive(Debug)]
pub(super) struct FieldColumn {
    key: Spelling,
    next: u32,
    data: Data,
}

impl Keyed for TagColumn {
    fn key(&self) -> &Spelling {
        &self.key
    }

    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Keyed for FieldColumn {
    fn key(&self) -> &Spelling {
        &self.key
    }

    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// The approximate memory of a new word in bytes, besides its own bytes.
const WORD: usize = 112;

impl TagColumn {
    pub fn new(key: Spelling) -> TagColumn {
        TagColumn {
            key,
            next: NONE,
            codes: Vec::new(),
            words: Vec::new(),
            follower: Vec::new(),
            last: NONE,
            index: HashTable::new(),
        }
    }

    /// Stores the word of this row; row numbers only grow. Returns the approximate additional memory in bytes.
    #[inline]
    pub fn push(&mut self, row: usize, word: Piece<'_>, hasher: &Seeded) -> usize {
        let words = self.words.len();
        if self.codes.len() < row {
            self.codes.resize(row, Words::MISSING);
        }
        let is = |code: u32| {
            self.words
                .get(code as usize)
                .is_some_and(|same| same.is(word))
        };
        // Consecutive lines of a write often have the same word, or repeat a sequence.
        let follower = self.follower.get(self.last as usize);
        self.last = match follower {
            Some(_) if is(self.last) => self.last,
            Some(&code) if is(code) => code,
            _ => self.find(word, hasher),
        };
        self.codes.push(self.last);
        match self.words.len() - words {
            0 => 2 * size_of::<u32>(),
            _ => WORD + word.bytes().len(),
        }
    }

    /// Returns the code of a word that differs from the expected word.
    #[inline(never)]
    fn find(&mut self, word: Piece<'_>, hasher: &Seeded) -> u32 {
        let bytes = word.bytes();
        let words = &mut self.words;
        let entry = self.index.entry(
            hasher.hash_one(bytes),
            |&code| words[code as usize].is(word),
            |&code| hasher.hash_one(words[code as usize].bytes()),
        );
        let code = match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let code = words.len() as u32;
                entry.insert(code);
                words.push(word.keep());
                self.follower.push(NONE);
                code
            }
        };
        if let Some(follower) = self.follower.get_mut(self.last as usize) {
            *follower = code;
        }
        code
    }

    /// Returns the name and the cells of the column, one cell for each row.
    pub fn finish(mut self, rows: usize) -> (Arc<str>, Data) {
        self.codes.resize(rows, Words::MISSING);
        let words = self.words.into_iter();
        let data = Data::Tag(Words {
            codes: self.codes,
            words: words.map(|word| word.meaning(Role::Name)).collect(),
        });
        (self.key.meaning(Role::Name), data)
    }
}

impl FieldColumn {
    /// Creates a column for values of this type.
    pub fn new(key: Spelling, like: RawValue) -> FieldColumn {
        let data = match like {
            RawValue::Float(_) => Data::Float(Cells::default()),
            RawValue::Integer(_) => Data::Integer(Cells::default()),
            RawValue::Unsigned(_) => Data::Unsigned(Cells::default()),
            RawValue::Boolean(_) => Data::Boolean(Cells::default()),
            RawValue::Text(_) => Data::Text(Cells::default()),
        };
        FieldColumn {
            key,
            next: NONE,
            data,
        }
    }

    /// Stores the value of this row; row numbers only grow. A second value for the same row replaces the first.
    #[inline]
    pub fn push(&mut self, row: usize, value: RawValue, region: &str) {
        match (&mut self.data, value) {
            (Data::Float(cells), RawValue::Float(value)) => cells.put(row, value),
            (Data::Integer(cells), RawValue::Integer(value)) => cells.put(row, value),
            (Data::Unsigned(cells), RawValue::Unsigned(value)) => cells.put(row, value),
            (Data::Boolean(cells), RawValue::Boolean(value)) => cells.put(row, value),
            (Data::Text(cells), RawValue::Text(span)) => {
                let text = Escaped::new(&region[span.from..span.to], Role::Text);
                let text = match cells.values.last() {
                    Some(last) if text == **last => last.clone(),
                    _ => text.unescape().into(),
                };
                cells.put(row, text);
            }
            _ => self.push_mixed(row, value, region),
        }
    }

    /// Stores a value whose type differs from the earlier ones.
    #[cold]
    fn push_mixed(&mut self, row: usize, value: RawValue, region: &str) {
        if !matches!(self.data, Data::Mixed(_)) {
            let cells = (0..self.data.rows()).map(|row| self.data.get(row));
            self.data = Data::Mixed(cells.collect());
        }
        let Data::Mixed(cells) = &mut self.data else {
            return;
        };
        cells.resize(row, None);
        cells.push(Some(match value {
            RawValue::Float(value) => Value::Float(value),
            RawValue::Integer(value) => Value::Integer(value),
            RawValue::Unsigned(value) => Value::Unsigned(value),
            RawValue::Boolean(value) => Value::Boolean(value),
            RawValue::Text(span) => {
                let text = Escaped::new(&region[span.from..span.to], Role::Text);
                Value::Text(text.unescape().into())
            }
        }));
    }

    /// Returns the name and the cells of the column, one cell for each row.
    pub fn finish(mut self, rows: usize) -> (Arc<str>, Data) {
        match &mut self.data {
            Data::Float(cells) => cells.fill(rows),
            Data::Integer(cells) => cells.fill(rows),
            Data::Unsigned(cells) => cells.fill(rows),
            Data::Boolean(cells) => cells.fill(rows),
            Data::Text(cells) => cells.fill(rows),
            Data::Mixed(cells) => cells.resize(rows, None),
            Data::Tag(_) => {}
        }
        let data = match self.data {
            Data::Mixed(cells) => unmix(cells),
            data => data,
        };
        (self.key.meaning(Role::Name), data)
    }
}

/// Converts to cells of one type if possible. This is possible if a line had the field twice, and its second value
/// replaced the only value of another type.
fn unmix(mixed: Vec<Option<Value>>) -> Data {
    let mut kinds = mixed.iter().flatten().map(Value::kind);
    let first = kinds.next();
    if kinds.any(|kind| Some(kind) != first) {
        return Data::Mixed(mixed);
    }
    fn cells<T: Clone + Default>(
        mixed: &[Option<Value>],
        of: impl Fn(&Value) -> Option<T>,
    ) -> Cells<T> {
        let mut cells = Cells::default();
        for (row, value) in mixed.iter().enumerate() {
            if let Some(value) = value.as_ref().and_then(&of) {
                cells.put(row, value);
            }
        }
        cells.fill(mixed.len());
        cells
    }
    macro_rules! typed {
        ($kind:ident) => {
            Data::$kind(cells(&mixed, |value| match value {
                Value::$kind(value) => Some(value.clone()),
                _ => None,
            }))
        };
    }
    match first {
        Some(Kind::Float) => typed!(Float),
        Some(Kind::Integer) => typed!(Integer),
        Some(Kind::Unsigned) => typed!(Unsigned),
        Some(Kind::Boolean) => typed!(Boolean),
        Some(Kind::Text) => typed!(Text),
        None => Data::Mixed(mixed),
    }
}

impl<T> Default for Cells<T> {
    fn default() -> Cells<T> {
        Cells {
            values: Vec::new(),
            present: None,
        }
    }
}

impl<T: Clone + Default> Cells<T> {
    /// Sets the value of this row; the rows between the last one and this one have no value.
    #[inline]
    fn put(&mut self, row: usize, value: T) {
        if self.values.len() != row {
            self.values.truncate(row);
            if let Some(present) = &mut self.present {
                present.truncate(row);
            }
            self.fill(row);
        }
        self.values.push(value);
        if let Some(present) = &mut self.present {
            present.push(true);
        }
    }

    /// Fills the column up to the number of rows.
    fn fill(&mut self, rows: usize) {
        let length = self.values.len();
        if length < rows {
            self.values.resize(rows, T::default());
            let present = self.present.get_or_insert_with(|| vec![true; length]);
            present.resize(rows, false);
        }
    }
}
