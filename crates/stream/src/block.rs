//! Points of one measurement, column by column.
//!
//! A write creates a block, and all tasks that take its points share the block. Rows keep the order of the lines.

use crate::{Kind, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

mod builder;
mod column;
pub(crate) mod encoding;
mod spelling;
mod table;
mod write;

pub use builder::{Builder, LineCounts};

/// The database, policy and measurement of points. Equal origins within an engine are the same
/// `Arc`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// `db` of the write.
    pub database: Arc<str>,
    /// `rp` of the write; may be empty.
    pub policy: Arc<str>,
    /// The points' measurement.
    pub measurement: Arc<str>,
}

/// Points of one measurement, column by column. Each column has one cell for each time.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Block {
    /// The destination of the points.
    pub origin: Arc<Origin>,
    /// The times of the points, in nanoseconds since 1970.
    pub times: Arc<[i64]>,
    /// The columns: tags before fields, each in the order of their first appearance. Names are
    /// unique per role.
    pub columns: Vec<Column>,
}

/// The values of one tag or field.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Column {
    /// The key of the tag or field.
    pub name: Arc<str>,
    /// The cells, shared by derived blocks.
    pub data: Arc<Data>,
}

/// The cells of a column. A cell may be missing, because lines need not have the same keys.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Data {
    /// A tag, whose distinct words are stored only once.
    Tag(Words),
    /// A field of floats.
    Float(Cells<f64>),
    /// A field of integers.
    Integer(Cells<i64>),
    /// A field of unsigned integers.
    Unsigned(Cells<u64>),
    /// A field of booleans.
    Boolean(Cells<bool>),
    /// A field of strings.
    Text(Cells<Arc<str>>),
    /// A field whose type changes within the block.
    Mixed(Vec<Option<Value>>),
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cells<T> {
    /// The value of each row. Rows without a value have the default value.
    pub values: Vec<T>,
    /// True for each row that has a value. `None` means that every row has one.
    pub present: Option<Vec<bool>>,
}

/// Repeated words: a number per row, and each distinct word once.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Words {
    /// The index in `words` of each row's word, or [`Words::MISSING`].
    pub codes: Vec<u32>,
    /// The words in order of first appearance.
    pub words: Vec<Arc<str>>,
}

impl Words {
    /// The code of a row without this tag.
    pub const MISSING: u32 = u32::MAX;

    /// Returns the word of a row; `None` if the row lacks the tag.
    pub fn get(&self, row: usize) -> Option<&Arc<str>> {
        self.words.get(self.codes[row] as usize)
    }

    /// Returns only the words of these rows. O(rows), even if there are many more words.
    fn gather(&self, rows: &[u32]) -> Words {
        let codes = rows.iter().map(|&row| self.codes[row as usize]);
        if self.words.len() <= rows.len() {
            return Words {
                codes: codes.collect(),
                words: self.words.clone(),
            };
        }
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        let mut words = Vec::new();
        let place = |code: u32| match self.words.get(code as usize) {
            None => Words::MISSING,
            Some(word) => *places.entry(code).or_insert_with(|| {
                words.push(word.clone());
                words.len() as u32 - 1
            }),
        };
        Words {
            codes: codes.map(place).collect(),
            words,
        }
    }
}

impl<T> Cells<T> {
    /// Returns the value of a row, if it has one.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&T> {
        match &self.present {
            Some(present) if !present[row] => None,
            _ => Some(&self.values[row]),
        }
    }
}

impl Data {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Data::Tag(words) => words.codes.len(),
            Data::Float(cells) => cells.values.len(),
            Data::Integer(cells) => cells.values.len(),
            Data::Unsigned(cells) => cells.values.len(),
            Data::Boolean(cells) => cells.values.len(),
            Data::Text(cells) => cells.values.len(),
            Data::Mixed(cells) => cells.len(),
        }
    }

    /// Returns the value of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<Value> {
        match self {
            Data::Tag(words) => words.get(row).cloned().map(Value::Text),
            Data::Float(cells) => cells.get(row).copied().map(Value::Float),
            Data::Integer(cells) => cells.get(row).copied().map(Value::Integer),
            Data::Unsigned(cells) => cells.get(row).copied().map(Value::Unsigned),
            Data::Boolean(cells) => cells.get(row).copied().map(Value::Boolean),
            Data::Text(cells) => cells.get(row).cloned().map(Value::Text),
            Data::Mixed(cells) => cells[row].clone(),
        }
    }
}

impl<T> Cells<T> {
    fn bytes(&self) -> usize {
        let present = self.present.as_ref().map_or(0, Vec::len);
        self.values.len() * size_of::<T>() + present
    }
}

impl<T: Clone> Cells<T> {
    fn gather(&self, rows: &[u32]) -> Cells<T> {
        let at = |&row: &u32| row as usize;
        Cells {
            values: rows
                .iter()
                .map(|row| self.values[at(row)].clone())
                .collect(),
            present: self
                .present
                .as_ref()
                .map(|present| rows.iter().map(|row| present[at(row)]).collect()),
        }
    }
}

impl Data {
    /// Returns only the cells of these rows. O(rows).
    pub(crate) fn gather(&self, rows: &[u32]) -> Data {
        match self {
            Data::Tag(words) => Data::Tag(words.gather(rows)),
            Data::Float(cells) => Data::Float(cells.gather(rows)),
            Data::Integer(cells) => Data::Integer(cells.gather(rows)),
            Data::Unsigned(cells) => Data::Unsigned(cells.gather(rows)),
            Data::Boolean(cells) => Data::Boolean(cells.gather(rows)),
            Data::Text(cells) => Data::Text(cells.gather(rows)),
            Data::Mixed(cells) => Data::Mixed(
                rows.iter()
                    .map(|&row| cells[row as usize].clone())
                    .collect(),
            ),
        }
    }
}

impl Data {
    /// Returns the approximate memory of the data in bytes.
    fn bytes(&self) -> usize {
        // A string takes a pointer, two reference counts, and its bytes.
        let text = |text: &Arc<str>| 32 + text.len();
        match self {
            Data::Tag(words) => words.codes.len() * 4 + words.words.iter().map(text).sum::<usize>(),
            Data::Float(cells) => cells.bytes(),
            Data::Integer(cells) => cells.bytes(),
            Data::Unsigned(cells) => cells.bytes(),
            Data::Boolean(cells) => cells.bytes(),
            Data::Text(cells) => {
                // A string equal to the previous row's is stored once.
                let pairs = cells.values.windows(2);
                let others = pairs.filter(|pair| !Arc::ptr_eq(&pair[0], &pair[1]));
                let others = others.map(|pair| text(&pair[1])).sum::<usize>();
                cells.bytes() + cells.values.first().map_or(0, text) + others
            }
            Data::Mixed(cells) => {
                let texts = cells.iter().map(|cell| match cell {
                    Some(Value::Text(value)) => text(value),
                    _ => 0,
                });
                cells.len() * size_of::<Option<Value>>() + texts.sum::<usize>()
            }
        }
    }
}

/// Creates a column of one row.
impl From<Value> for Data {
    fn from(value: Value) -> Data {
        fn one<T>(value: T) -> Cells<T> {
            Cells {
                values: vec![value],
                present: None,
            }
        }
        match value {
            Value::Float(value) => Data::Float(one(value)),
            Value::Integer(value) => Data::Integer(one(value)),
            Value::Unsigned(value) => Data::Unsigned(one(value)),
            Value::Text(value) => Data::Text(one(value)),
            Value::Boolean(value) => Data::Boolean(one(value)),
        }
    }
}

/// Creates a column with a cell for each row, of one type if all values have that type.
impl From<Vec<Option<Value>>> for Data {
    fn from(cells: Vec<Option<Value>>) -> Data {
        fn typed<T: Clone>(
            cells: &[Option<Value>],
            missing: T,
            get: impl Fn(&Value) -> Option<T>,
        ) -> Option<Cells<T>> {
            let value = |cell: &Option<Value>| match cell {
                Some(value) => get(value),
                None => Some(missing.clone()),
            };
            let present = cells.iter().any(Option::is_none);
            Some(Cells {
                values: cells.iter().map(value).collect::<Option<_>>()?,
                present: present.then(|| cells.iter().map(Option::is_some).collect()),
            })
        }
        let typed = match cells.iter().flatten().next().map(Value::kind) {
            None | Some(Kind::Float) => typed(&cells, 0.0, |value| match value {
                Value::Float(value) => Some(*value),
                _ => None,
            })
            .map(Data::Float),
            Some(Kind::Integer) => typed(&cells, 0, |value| match value {
                Value::Integer(value) => Some(*value),
                _ => None,
            })
            .map(Data::Integer),
            Some(Kind::Unsigned) => typed(&cells, 0, |value| match value {
                Value::Unsigned(value) => Some(*value),
                _ => None,
            })
            .map(Data::Unsigned),
            Some(Kind::Boolean) => typed(&cells, false, |value| match value {
                Value::Boolean(value) => Some(*value),
                _ => None,
            })
            .map(Data::Boolean),
            Some(Kind::Text) => typed(&cells, Arc::from(""), |value| match value {
                Value::Text(value) => Some(value.clone()),
                _ => None,
            })
            .map(Data::Text),
        };
        typed.unwrap_or(Data::Mixed(cells))
    }
}

impl Column {
    /// True if the column is a tag.
    pub fn is_tag(&self) -> bool {
        matches!(*self.data, Data::Tag(_))
    }
}

impl Block {
    /// Returns the number of points.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// Returns the approximate memory of the block in bytes. O(columns), and O(rows) for strings.
    pub fn bytes(&self) -> usize {
        // The vectors of a small block take more memory than its values.
        let column =
            |column: &Column| size_of::<Column>() + size_of::<Data>() + column.data.bytes();
        let columns = self.columns.iter().map(column);
        size_of::<Block>() + self.times.len() * size_of::<i64>() + columns.sum::<usize>()
    }

    /// Returns a block that contains only these rows. O(columns × rows).
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn gather(&self, rows: &[u32]) -> Block {
        let columns = self.columns.iter().map(|column| Column {
            name: column.name.clone(),
            data: Arc::new(column.data.gather(rows)),
        });
        Block {
            origin: self.origin.clone(),
            times: rows.iter().map(|&row| self.times[row as usize]).collect(),
            columns: columns.collect(),
        }
    }

    /// Returns the field with this name, or else the tag. O(columns).
    pub fn column(&self, name: &str) -> Option<&Column> {
        let named = |column: &&Column| &*column.name == name;
        self.fields()
            .find(named)
            .or_else(|| self.tags().find(named))
    }

    /// Returns the fields.
    pub fn fields(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_tag())
    }

    /// Returns the tags.
    pub fn tags(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_tag())
    }
}
