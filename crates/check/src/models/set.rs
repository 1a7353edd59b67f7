//! A set: add, remove, contains, read.

use super::register::done;
use super::{FromRecords, call_text};
use crate::{Model, Outcome, Record, Value};
use std::collections::BTreeSet;

/// A set that is empty at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Set;

/// The operations of a [`Set`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetInput {
    /// Adds an element.
    Add(Value),
    /// Removes an element.
    Remove(Value),
    /// Returns whether the set contains the element.
    Contains(Value),
    /// Returns all elements, in any order. A history with such reads is checked as a whole, not by
    /// element.
    Read,
}

impl Model for Set {
    type State = BTreeSet<Value>;
    type Input = SetInput;
    type Output = Value;
    type Key = Value;

    fn initial(&self) -> Self::State {
        BTreeSet::new()
    }

    fn step(
        &self,
        state: &Self::State,
        input: &SetInput,
        output: Option<&Value>,
    ) -> Option<Self::State> {
        let mut after = state.clone();
        match input {
            SetInput::Add(value) => {
                after.insert(value.clone());
            }
            SetInput::Remove(value) => {
                after.remove(value);
            }
            SetInput::Contains(value) => {
                let answer = Value::Bool(state.contains(value));
                return output
                    .is_none_or(|output| *output == answer)
                    .then_some(after);
            }
            SetInput::Read => {
                let same = |output: &Value| {
                    output.list().is_some_and(|values| {
                        values.len() == state.len()
                            && values.iter().all(|value| state.contains(value))
                            && values.iter().collect::<BTreeSet<_>>().len() == values.len()
                    })
                };
                return output.is_none_or(same).then_some(after);
            }
        }
        Some(after)
    }

    fn is_read(&self, input: &SetInput, _: Option<&Value>) -> bool {
        matches!(input, SetInput::Contains(_) | SetInput::Read)
    }

    fn key(&self, input: &SetInput, _: Option<&Value>) -> Option<Value> {
        match input {
            SetInput::Add(value) | SetInput::Remove(value) | SetInput::Contains(value) => {
                Some(value.clone())
            }
            SetInput::Read => None,
        }
    }

    fn state_bytes(&self, state: &Self::State) -> usize {
        let heap: usize = state.iter().map(Value::heap_bytes).sum();
        heap + state.len() * size_of::<Value>()
    }

    fn describe(&self, input: &SetInput, output: Option<&Value>) -> String {
        match input {
            SetInput::Add(value) => call_text("add", &value.to_string(), output, false),
            SetInput::Remove(value) => call_text("remove", &value.to_string(), output, false),
            SetInput::Contains(value) => call_text("contains", &value.to_string(), output, true),
            SetInput::Read => call_text("read", "", output, true),
        }
    }

    fn describe_state(&self, state: &Self::State) -> String {
        format!("{{{}}}", crate::model::join(state, " "))
    }

    fn describe_key(&self, key: &Value) -> String {
        key.to_string()
    }
}

impl FromRecords for Set {
    const NAME: &'static str = "set";
    const EXPECTED: &'static str = ":add VALUE, :remove VALUE, :contains VALUE or :read";

    fn call(record: &Record) -> Option<(SetInput, Outcome)> {
        let (value, outcome) = (record.value.clone(), record.outcome.clone());
        Some(match &*record.function {
            "add" => (SetInput::Add(value), done(outcome)),
            "remove" => (SetInput::Remove(value), done(outcome)),
            "contains" => (SetInput::Contains(value), outcome),
            "read" => (SetInput::Read, outcome),
            _ => return None,
        })
    }
}
