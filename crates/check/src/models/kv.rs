//! A store of values by key: get, put, append, delete, compare-and-set.

use super::register::done;
use super::{FromRecords, call_text};
use crate::{Model, Outcome, Record, Value};

/// A key-value store. Reading a key without a value returns nil, which a history may report as an
/// empty text.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyValue;

/// An operation of a [`KeyValue`] store on one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyValueInput {
    /// The key that the operation concerns.
    pub key: Value,
    /// The operation on the key.
    pub action: KeyValueAction,
}

/// An operation on one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyValueAction {
    /// Returns the value.
    Get,
    /// Sets the value.
    Put(Value),
    /// Appends a text to the current text, or an element to the current list.
    Append(Value),
    /// Removes the value.
    Delete,
    /// Sets the second value if the first one is current, and returns whether it was.
    CompareAndSet(Value, Value),
}

use KeyValueAction::{Append, CompareAndSet, Delete, Get, Put};

impl Model for KeyValue {
    type State = Value;
    type Input = KeyValueInput;
    type Output = Value;
    type Key = Value;

    fn initial(&self) -> Value {
        Value::Nil
    }

    fn step(&self, state: &Value, input: &KeyValueInput, output: Option<&Value>) -> Option<Value> {
        match &input.action {
            Get => output
                .is_none_or(|output| output == state || is_empty(output) && *state == Value::Nil)
                .then(|| state.clone()),
            Put(value) => Some(value.clone()),
            Append(value) => Some(appended(state, value)),
            Delete => Some(Value::Nil),
            CompareAndSet(old, new) => {
                let matches = old == state;
                let fits = output.is_none_or(|output| *output == Value::Bool(matches));
                fits.then(|| if matches { new.clone() } else { state.clone() })
            }
        }
    }

    fn is_read(&self, input: &KeyValueInput, output: Option<&Value>) -> bool {
        match &input.action {
            Get => true,
            CompareAndSet(..) => output == Some(&Value::Bool(false)),
            _ => false,
        }
    }

    fn key(&self, input: &KeyValueInput, _: Option<&Value>) -> Option<Value> {
        Some(input.key.clone())
    }

    fn is_reachable(
        &self,
        state: &Value,
        input: &KeyValueInput,
        output: &Value,
        others: &mut dyn Iterator<Item = &KeyValueInput>,
    ) -> bool {
        let (Get, Value::Text(text)) = (&input.action, output) else {
            return true;
        };
        // The read value is the current value or a value that another call sets, possibly with
        // appended texts.
        let mut bases = vec![state];
        let mut appended = Vec::new();
        for other in others {
            match &other.action {
                Get => {}
                Put(value) | CompareAndSet(_, value) => bases.push(value),
                Append(value) => appended.push(value),
                Delete => bases.push(&Value::Nil),
            }
        }
        let continues = |rest: &str| {
            rest.is_empty()
                || appended.iter().any(|more| {
                    more.text()
                        .is_none_or(|more| rest.starts_with(more) || more.is_empty())
                })
        };
        bases.into_iter().any(|base| match base {
            Value::Nil => continues(text),
            Value::Text(base) => text.strip_prefix(&**base).is_some_and(continues),
            _ => false,
        })
    }

    fn state_bytes(&self, state: &Value) -> usize {
        state.heap_bytes()
    }

    fn describe(&self, input: &KeyValueInput, output: Option<&Value>) -> String {
        match &input.action {
            Get => call_text("get", "", output, true),
            Put(value) => call_text("put", &value.to_string(), output, false),
            Append(value) => call_text("append", &value.to_string(), output, false),
            Delete => call_text("delete", "", output, false),
            CompareAndSet(old, new) => call_text("cas", &format!("{old}, {new}"), output, true),
        }
    }

    fn describe_state(&self, state: &Value) -> String {
        state.to_string()
    }

    fn describe_key(&self, key: &Value) -> String {
        key.to_string()
    }
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.is_empty())
}

fn appended(state: &Value, value: &Value) -> Value {
    match (state, value) {
        (Value::Text(text), Value::Text(more)) => Value::Text([&**text, &**more].concat().into()),
        (Value::Nil, Value::Text(_)) => value.clone(),
        (Value::List(values), _) => {
            let more = values.iter().chain(std::iter::once(value));
            Value::List(more.cloned().collect())
        }
        (other, _) => {
            let first = (*other != Value::Nil).then(|| other.clone());
            Value::List(first.into_iter().chain([value.clone()]).collect())
        }
    }
}

impl FromRecords for KeyValue {
    const NAME: &'static str = "kv";
    const EXPECTED: &'static str = ":get, :put, :append, :delete or :cas with a :key, or with a \
                                    value of [KEY VALUE]";

    fn call(record: &Record) -> Option<(KeyValueInput, Outcome)> {
        let key = record.key.clone()?;
        let value = || record.value.clone();
        let (action, returns_value) = match &*record.function {
            "get" | "read" => (Get, true),
            "put" | "write" => (Put(value()), false),
            "append" => (Append(value()), false),
            "delete" => (Delete, false),
            "cas" => {
                let [old, new] = record.value.list()? else {
                    return None;
                };
                let returns_false = record.outcome == Outcome::Ok(Value::Bool(false));
                (CompareAndSet(old.clone(), new.clone()), returns_false)
            }
            _ => return None,
        };
        let outcome = record.outcome.clone();
        let outcome = if returns_value {
            outcome
        } else {
            done(outcome)
        };
        Some((KeyValueInput { key, action }, outcome))
    }
}
