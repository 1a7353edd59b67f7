//! First-in-first-out queues, and bags, whose elements come out in any order.

use super::register::done;
use super::{FromRecords, call_text, group_of};
use crate::{Model, Outcome, Record, Value};
use std::collections::{BTreeMap, VecDeque};

/// A queue, first in, first out. Removing from an empty queue returns nil.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue;

/// A queue whose elements come out in any order. Removing from an empty bag returns nil.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bag;

/// The operations of a [`Queue`] or a [`Bag`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QueueInput {
    /// Adds an element.
    Enqueue(Value),
    /// Removes an element and returns it.
    Dequeue,
}

impl Model for Queue {
    type State = VecDeque<Value>;
    type Input = QueueInput;
    type Output = Value;
    type Key = ();

    fn initial(&self) -> Self::State {
        VecDeque::new()
    }

    fn step(
        &self,
        state: &Self::State,
        input: &QueueInput,
        output: Option<&Value>,
    ) -> Option<Self::State> {
        match input {
            QueueInput::Enqueue(value) => {
                let mut state = state.clone();
                state.push_back(value.clone());
                Some(state)
            }
            QueueInput::Dequeue => {
                let first = state.front().unwrap_or(&Value::Nil);
                if output.is_some_and(|output| output != first) {
                    return None;
                }
                let mut state = state.clone();
                state.pop_front();
                Some(state)
            }
        }
    }

    fn is_read(&self, input: &QueueInput, output: Option<&Value>) -> bool {
        *input == QueueInput::Dequeue && output == Some(&Value::Nil)
    }

    fn is_reachable(
        &self,
        state: &Self::State,
        input: &QueueInput,
        output: &Value,
        mut others: &mut dyn Iterator<Item = &QueueInput>,
    ) -> bool {
        *input != QueueInput::Dequeue
            || *output == Value::Nil
            || state.contains(output)
            || Iterator::any(&mut others, |other| element(other, None) == Some(output))
    }

    fn group(&self, input: &QueueInput, output: Option<&Value>) -> Option<u64> {
        group(input, output)
    }

    fn state_bytes(&self, state: &Self::State) -> usize {
        let heap: usize = state.iter().map(Value::heap_bytes).sum();
        heap + state.capacity() * size_of::<Value>()
    }

    fn describe(&self, input: &QueueInput, output: Option<&Value>) -> String {
        describe(input, output)
    }

    fn describe_state(&self, state: &Self::State) -> String {
        format!("[{}]", crate::model::join(state, " "))
    }
}

/// The state of a [`Bag`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BagState {
    /// The number of copies of each element.
    elements: BTreeMap<Value, u32>,
    /// The number of elements that operations without a result have removed. Which elements these
    /// were is decided when an operation finds the bag empty.
    removed: u32,
}

impl Model for Bag {
    type State = BagState;
    type Input = QueueInput;
    type Output = Value;
    type Key = Value;

    fn initial(&self) -> BagState {
        BagState::default()
    }

    fn step(
        &self,
        state: &BagState,
        input: &QueueInput,
        output: Option<&Value>,
    ) -> Option<BagState> {
        let mut after = state.clone();
        match (input, output) {
            (QueueInput::Enqueue(value), _) => {
                *after.elements.entry(value.clone()).or_default() += 1;
            }
            (QueueInput::Dequeue, Some(Value::Nil)) => {
                let left: u32 = state.elements.values().sum();
                after.removed = state.removed.checked_sub(left)?;
                after.elements.clear();
            }
            (QueueInput::Dequeue, Some(value)) => {
                let count = after.elements.get_mut(value)?;
                *count -= 1;
                if *count == 0 {
                    after.elements.remove(value);
                }
            }
            (QueueInput::Dequeue, None) => after.removed += 1,
        }
        Some(after)
    }

    fn key(&self, input: &QueueInput, output: Option<&Value>) -> Option<Value> {
        element(input, output).cloned()
    }

    fn group(&self, input: &QueueInput, output: Option<&Value>) -> Option<u64> {
        group(input, output)
    }

    fn state_bytes(&self, state: &BagState) -> usize {
        let heap: usize = state.elements.keys().map(Value::heap_bytes).sum();
        heap + state.elements.len() * size_of::<(Value, u32)>()
    }

    fn describe(&self, input: &QueueInput, output: Option<&Value>) -> String {
        describe(input, output)
    }

    fn describe_state(&self, state: &BagState) -> String {
        let counted = state
            .elements
            .iter()
            .map(|(value, count)| format!("{value}×{count}"));
        format!("{{{}}}", crate::model::join(counted, " "))
    }

    fn describe_key(&self, key: &Value) -> String {
        key.to_string()
    }
}

/// Returns the element that is added or removed, if it is known.
fn element<'a>(input: &'a QueueInput, output: Option<&'a Value>) -> Option<&'a Value> {
    match input {
        QueueInput::Enqueue(value) => Some(value),
        QueueInput::Dequeue => output.filter(|value| **value != Value::Nil),
    }
}

/// Groups operations by element: an element can be left out of a history without changing other
/// results, and an operation that found nothing still finds nothing.
fn group(input: &QueueInput, output: Option<&Value>) -> Option<u64> {
    match input {
        QueueInput::Enqueue(value) => Some(group_of(value)),
        QueueInput::Dequeue => output.map(group_of),
    }
}

fn describe(input: &QueueInput, output: Option<&Value>) -> String {
    match input {
        QueueInput::Enqueue(value) => call_text("enqueue", &value.to_string(), output, false),
        QueueInput::Dequeue => call_text("dequeue", "", output, true),
    }
}

fn call(record: &Record) -> Option<(QueueInput, Outcome)> {
    let outcome = record.outcome.clone();
    match &*record.function {
        "enqueue" => Some((QueueInput::Enqueue(record.value.clone()), done(outcome))),
        "dequeue" => Some((QueueInput::Dequeue, outcome)),
        _ => None,
    }
}

impl FromRecords for Queue {
    const NAME: &'static str = "queue";
    const EXPECTED: &'static str = ":enqueue VALUE or :dequeue";

    fn call(record: &Record) -> Option<(QueueInput, Outcome)> {
        call(record)
    }
}

impl FromRecords for Bag {
    const NAME: &'static str = "bag";
    const EXPECTED: &'static str = ":enqueue VALUE or :dequeue";

    fn call(record: &Record) -> Option<(QueueInput, Outcome)> {
        call(record)
    }
}
