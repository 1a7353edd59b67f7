//! The fields of a document, with a record of which were read.
//!
//! A format reads a document only through [`Item`], which records each value that it returns. Fields that were not read
//! have no effect and are reported, whether the format's author thought of them or not.

use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

/// The values of a document that were read, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Log(RefCell<HashSet<usize>>);

impl Log {
    fn note(&self, value: &Value) {
        self.0.borrow_mut().insert(std::ptr::from_ref(value).addr());
    }

    /// True if this value was read.
    pub(super) fn has(&self, value: &Value) -> bool {
        self.0.borrow().contains(&std::ptr::from_ref(value).addr())
    }
}

/// A part of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    value: &'a Value,
    log: &'a Log,
}

/// A sentence that describes the fault of a field.
pub(super) type Wrong = String;

impl<'a> Item<'a> {
    pub(super) fn new(value: &'a Value, log: &'a Log) -> Item<'a> {
        Item { value, log }
    }

    /// Returns the value at this path of keys, such as `spec.replicas`. A null counts as missing.
    pub(super) fn at(self, path: &str) -> Option<Item<'a>> {
        let mut value = self.value;
        for key in path.split('.') {
            value = value.get(key)?;
        }
        let log = self.log;
        (!value.is_null()).then_some(Item { value, log })
    }

    /// Returns the entries of the list at this path; a single map or text counts as a list of one.
    pub(super) fn list(self, path: &str) -> Vec<Item<'a>> {
        let Some(item) = self.at(path) else {
            return Vec::new();
        };
        match item.value {
            Value::Array(list) => {
                let items = list.iter().filter(|value| !value.is_null());
                items.map(|value| Item { value, ..item }).collect()
            }
            _ => vec![item],
        }
    }

    /// Returns the entries of the map at this path.
    pub(super) fn entries(self, path: &str) -> Vec<(&'a str, Item<'a>)> {
        self.at(path).map(Item::members).unwrap_or_default()
    }

    /// Returns the entries of this map.
    pub(super) fn members(self) -> Vec<(&'a str, Item<'a>)> {
        let log = self.log;
        let members = self.value.as_object().into_iter().flatten();
        members
            .map(|(key, value)| (key.as_str(), Item { value, log }))
            .collect()
    }

    pub(super) fn is_map(self) -> bool {
        self.value.is_object()
    }

    /// Returns this scalar as text: a string, a number, or a truth value.
    pub(super) fn scalar(self) -> Option<String> {
        let text = match self.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(yes) => yes.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        self.log.note(self.value);
        Some(text)
    }

    /// Returns the scalar at this path as text.
    pub(super) fn text(self, path: &str) -> Option<String> {
        self.at(path)?.scalar()
    }

    /// Returns the scalars of the map at this path, by key.
    pub(super) fn texts(self, path: &str) -> BTreeMap<String, String> {
        let entries = self.entries(path).into_iter();
        let texts = entries.filter_map(|(key, item)| Some((key.to_owned(), item.scalar()?)));
        texts.collect()
    }

    /// Returns the text at this path, without recording that it was read.
    pub(super) fn peek(self, path: &str) -> Option<&'a str> {
        self.at(path)?.value.as_str()
    }

    pub(super) fn is_true(self, path: &str) -> bool {
        self.text(path).as_deref() == Some("true")
    }

    /// Returns the number at this path.
    pub(super) fn number(self, path: &str) -> Result<Option<f64>, Wrong> {
        self.parsed(path, "a number", |text| {
            text.parse().ok().filter(|number: &f64| number.is_finite())
        })
    }

    /// Returns the whole number at this path, which must not be negative.
    pub(super) fn count(self, path: &str) -> Result<Option<i64>, Wrong> {
        self.parsed(path, "a whole number from 0 to 1000000", |text| {
            let count = text.parse::<f64>().ok()?;
            let is_whole = count.fract() == 0.0 && (0.0..=1e6).contains(&count);
            is_whole.then_some(count as i64)
        })
    }

    /// Parses the scalar at this path with `parse`.
    pub(super) fn parsed<T>(
        self,
        path: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Wrong> {
        let Some(item) = self.at(path) else {
            return Ok(None);
        };
        let Some(text) = item.scalar() else {
            return Err(format!("{path} is a list or a map; expected {expected}"));
        };
        match parse(text.trim()) {
            Some(value) => Ok(Some(value)),
            None => {
                let text: String = text.chars().take(60).collect();
                let text = text.escape_debug();
                Err(format!("{path} is '{text}'; expected {expected}"))
            }
        }
    }

    /// Records this value and everything in it as read.
    pub(super) fn read_whole(self) {
        self.log.note(self.value);
        match self.value {
            Value::Array(list) => {
                for value in list {
                    Item { value, ..self }.read_whole();
                }
            }
            Value::Object(map) => {
                for value in map.values() {
                    Item { value, ..self }.read_whole();
                }
            }
            _ => {}
        }
    }
}
