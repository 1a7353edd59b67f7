//! Blocks for tests.

use corsair_stream::Value;
use corsair_stream::batch::Rows;
use corsair_stream::block::{Block, Cells, Column, Data, Origin, Words};
use std::sync::Arc;

/// A block of these columns, all of one length.
pub fn block(rows: usize, columns: Vec<(&str, Data)>) -> Block {
    let column = |(name, data): (&str, Data)| Column {
        name: name.into(),
        data: Arc::new(data),
    };
    Block {
        origin: Arc::new(Origin {
            database: "db".into(),
            policy: "".into(),
            measurement: "m".into(),
        }),
        times: (0..rows as i64).collect(),
        columns: columns.into_iter().map(column).collect(),
    }
}

/// All rows of a block.
pub fn all(block: &Block) -> Rows {
    Rows::Range(0, block.rows() as u32)
}

/// These rows.
pub fn list(rows: &[u32]) -> Rows {
    Rows::List(rows.into())
}

/// Cells of which none is missing.
pub fn cells<T: Clone>(values: &[T]) -> Cells<T> {
    Cells {
        values: values.to_vec(),
        present: None,
    }
}

/// Cells of which some are missing.
pub fn sparse<T: Clone + Default>(values: &[Option<T>]) -> Cells<T> {
    Cells {
        values: values
            .iter()
            .cloned()
            .map(Option::unwrap_or_default)
            .collect(),
        present: Some(values.iter().map(Option::is_some).collect()),
    }
}

/// A tag; the empty word is a missing one.
pub fn tag(rows: &[&str]) -> Data {
    let mut words = Words::default();
    for row in rows {
        let place = words.words.iter().position(|word| **word == **row);
        let code = match place {
            _ if row.is_empty() => Words::MISSING,
            Some(place) => place as u32,
            None => {
                words.words.push((*row).into());
                words.words.len() as u32 - 1
            }
        };
        words.codes.push(code);
    }
    Data::Tag(words)
}

/// A field of strings.
pub fn text(rows: &[&str]) -> Data {
    let words: Vec<Arc<str>> = rows.iter().map(|row| (*row).into()).collect();
    Data::Text(cells(&words))
}

/// The values of every row.
pub fn values(data: &Data, rows: usize) -> Vec<Option<Value>> {
    (0..rows).map(|row| data.get(row)).collect()
}
