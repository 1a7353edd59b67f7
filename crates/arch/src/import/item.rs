//! Access to the fields of documents, which records the fields that had an effect.
//!
//! A format reads a document only through [`Item`], which records each value that it returns. A value whose effect is
//! known only later, such as a text that may name a host, is read without a record, and recorded later by its [`Mark`].
//! All other values had no effect and are reported, whether the format's author thought of them or not.

use rustc_hash::FxHashSet;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The values of all documents that had an effect, by their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Rc<RefCell<FxHashSet<usize>>>);

/// A value of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

impl Mark {
    fn of(value: &Value) -> Mark {
        Mark(std::ptr::from_ref(value).addr())
    }
}

impl Log {
    /// Records that a value had an effect.
    pub(super) fn note(&self, mark: Mark) {
        self.0.borrow_mut().insert(mark.0);
    }

    /// True if a value had an effect.
    pub(super) fn has(&self, value: &Value) -> bool {
        self.0.borrow().contains(&Mark::of(value).0)
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

    /// True for a map without values.
    pub(super) fn is_void(self) -> bool {
        let map = self.value.as_object();
        map.is_some_and(|map| map.values().all(Value::is_null))
    }

    pub(super) fn is_map(self) -> bool {
        self.value.is_object()
    }

    /// Returns this scalar as text: a string, a number, or a truth value.
    pub(super) fn scalar(self) -> Option<String> {
        let text = self.peek()?;
        self.note();
        Some(text)
    }

    /// Returns this scalar as text, without a record.
    pub(super) fn peek(self) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(yes) => Some(yes.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Records that this value had an effect.
    pub(super) fn note(self) {
        self.note_mark(self.mark());
    }

    /// Records that a value of the same document had an effect.
    pub(super) fn note_mark(self, mark: Mark) {
        self.log.note(mark);
    }

    /// Returns the mark of this value, by which its effect can be recorded later.
    pub(super) fn mark(self) -> Mark {
        Mark::of(self.value)
    }

    /// Returns the scalar at this path as text if it has an effect, which `matters` decides.
    pub(super) fn text_if(self, path: &str, matters: impl Fn(&str) -> bool) -> Option<String> {
        let item = self.at(path)?;
        let text = item.peek().filter(|text| matters(text))?;
        item.note();
        Some(text)
    }

    /// Returns the scalar at this path as text.
    pub(super) fn text(self, path: &str) -> Option<String> {
        self.at(path)?.scalar()
    }

    /// Returns the scalars of the map at this path.
    pub(super) fn texts(self, path: &str) -> BTreeMap<String, String> {
        let entries = self.entries(path).into_iter();
        let texts = entries.filter_map(|(key, item)| Some((key.to_owned(), item.scalar()?)));
        texts.collect()
    }

    /// Returns the scalars of the map at this path with their marks.
    pub(super) fn marked_texts(self, path: &str) -> Vec<(String, String, Mark)> {
        let entries = self.entries(path).into_iter();
        let texts =
            entries.filter_map(|(key, item)| Some((key.to_owned(), item.peek()?, item.mark())));
        texts.collect()
    }

    pub(super) fn is_true(self, path: &str) -> bool {
        self.text_if(path, |text| text == "true").is_some()
    }

    /// Returns the number at this path.
    pub(super) fn number(self, path: &str) -> Result<Option<f64>, Wrong> {
        let number = self.marked_number(path)?;
        Ok(number.map(|(number, mark)| {
            self.log.note(mark);
            number
        }))
    }

    /// Returns the number at this path, without a record of its effect.
    pub(super) fn marked_number(self, path: &str) -> Result<Option<(f64, Mark)>, Wrong> {
        self.marked(path, "a number", |text| {
            text.parse().ok().filter(|number: &f64| number.is_finite())
        })
    }

    /// Returns the whole number at this path, which must not be negative.
    pub(super) fn count(self, path: &str) -> Result<Option<i64>, Wrong> {
        let count = self.marked_count(path)?;
        Ok(count.map(|(count, mark)| {
            self.log.note(mark);
            count
        }))
    }

    /// Returns the whole number at this path, without a record of its effect.
    pub(super) fn marked_count(self, path: &str) -> Result<Option<(i64, Mark)>, Wrong> {
        self.marked(path, "a whole number from 0 to 1000000", |text| {
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
        let Some((value, mark)) = self.marked(path, expected, parse)? else {
            return Ok(None);
        };
        self.log.note(mark);
        Ok(Some(value))
    }

    /// Parses the scalar at this path with `parse`, without a record of its effect.
    pub(super) fn marked<T>(
        self,
        path: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<(T, Mark)>, Wrong> {
        let Some(item) = self.at(path) else {
            return Ok(None);
        };
        let Some(text) = item.peek() else {
            return Err(format!("{path} is a list or a map; expected {expected}"));
        };
        match parse(text.trim()) {
            Some(value) => Ok(Some((value, item.mark()))),
            None => {
                let text: String = text.chars().take(60).collect();
                let text = text.escape_debug();
                Err(format!("{path} is '{text}'; expected {expected}"))
            }
        }
    }

    /// Records this value and everything in it as read.
    pub(super) fn read_whole(self) {
        self.note();
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
