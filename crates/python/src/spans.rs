//! The recorded spans of a run, in memory.

use crate::table::Table;
use arrow_array::UInt64Array;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, StringArray, UInt32Array,
};
use corsair_observe::SeenSpan;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number of columns that contain names. The next constant is the number of columns that contain times.
const NAMES: usize = 5;
const TIMES: usize = 4;

/// The spans of a run, in the order in which they were completed.
#[derive(Default)]
pub struct Spans {
    rows: Vec<Row>,
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

/// A span, in which names are represented by numbers.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    trace: u64,
    span: u64,
    parent: Option<u64>,
    names: [u32; NAMES],
    times: [Option<u64>; TIMES],
    one_way: bool,
    failed: bool,
}

impl Spans {
    /// Adds a span.
    pub fn add(&mut self, span: &SeenSpan<'_>) {
        let names = [
            span.client,
            span.client_service,
            span.server,
            span.server_service,
            span.operation,
        ];
        let row = Row {
            trace: span.trace,
            span: span.span,
            parent: span.parent,
            names: names.map(|name| self.number(name)),
            times: [
                span.client_send,
                span.server_receive,
                span.server_send,
                span.client_receive,
            ],
            one_way: span.one_way,
            failed: span.failed,
        };
        self.rows.push(row);
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Serializes the first `count` spans.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn to_bytes(&self, count: u64) -> postcard::Result<Vec<u8>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        postcard::to_allocvec(&(&self.names, &self.rows[..count.min(self.rows.len())]))
    }

    /// Deserializes spans; `None` for other data.
    pub fn from_bytes(bytes: &[u8]) -> Option<Spans> {
        let (names, rows): (Vec<String>, Vec<Row>) = postcard::from_bytes(bytes).ok()?;
        let known = |row: &Row| row.names.iter().all(|&name| (name as usize) < names.len());
        if !rows.iter().all(known) {
            return None;
        }
        let numbers = names.iter().cloned().zip(0..).collect();
        Some(Spans {
            rows,
            names,
            numbers,
        })
    }

    /// Returns the table of the spans, with a column for each of their fields.
    ///
    /// # Errors
    /// If Python has no memory for the table.
    pub fn table(self) -> PyResult<Table> {
        let Spans { rows, names, .. } = self;
        let values: ArrayRef = Arc::new(StringArray::from(names));
        let name = |place: usize| -> PyResult<ArrayRef> {
            let keys = UInt32Array::from_iter_values(rows.iter().map(|row| row.names[place]));
            let column = DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(&values));
            Ok(Arc::new(column.map_err(crate::error::failed)?))
        };
        let time = |place: usize| -> ArrayRef {
            let seconds = |row: &Row| row.times[place].map(|nanos| nanos as f64 / 1e9);
            Arc::new(rows.iter().map(seconds).collect::<Float64Array>())
        };
        let number = |of: &dyn Fn(&Row) -> Option<u64>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<UInt64Array>())
        };
        let whether = |of: &dyn Fn(&Row) -> bool| -> ArrayRef {
            Arc::new(BooleanArray::from_iter(
                rows.iter().map(|row| Some(of(row))),
            ))
        };
        Table::of(vec![
            ("trace", number(&|row| Some(row.trace))),
            ("span", number(&|row| Some(row.span))),
            ("parent", number(&|row| row.parent)),
            ("client", name(0)?),
            ("client_service", name(1)?),
            ("server", name(2)?),
            ("server_service", name(3)?),
            ("operation", name(4)?),
            ("client_send_seconds", time(0)),
            ("server_receive_seconds", time(1)),
            ("server_send_seconds", time(2)),
            ("client_receive_seconds", time(3)),
            ("one_way", whether(&|row| row.one_way)),
            ("failed", whether(&|row| row.failed)),
        ])
    }
}
