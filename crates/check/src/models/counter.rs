//! A counter: add, read.

use super::register::done;
use super::{FromRecords, call_text};
use crate::{Model, Outcome, Record, Value};

/// A counter that is 0 at first; sums wrap around.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

/// The operations of a [`Counter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterInput {
    /// Adds a number, which may be negative.
    Add(i64),
    /// Returns the sum.
    Read,
}

impl Model for Counter {
    type State = i64;
    type Input = CounterInput;
    type Output = Value;
    type Key = ();

    fn initial(&self) -> i64 {
        0
    }

    fn step(&self, state: &i64, input: &CounterInput, output: Option<&Value>) -> Option<i64> {
        match input {
            CounterInput::Add(number) => Some(state.wrapping_add(*number)),
            CounterInput::Read => output
                .is_none_or(|output| *output == Value::Int(*state))
                .then_some(*state),
        }
    }

    fn is_read(&self, input: &CounterInput, _: Option<&Value>) -> bool {
        *input == CounterInput::Read
    }

    fn describe(&self, input: &CounterInput, output: Option<&Value>) -> String {
        match input {
            CounterInput::Add(number) => call_text("add", &number.to_string(), output, false),
            CounterInput::Read => call_text("read", "", output, true),
        }
    }
}

impl FromRecords for Counter {
    const NAME: &'static str = "counter";
    const EXPECTED: &'static str = ":add NUMBER or :read";

    fn call(record: &Record) -> Option<(CounterInput, Outcome)> {
        let outcome = record.outcome.clone();
        Some(match &*record.function {
            "add" => (CounterInput::Add(record.value.int()?), done(outcome)),
            "read" => (CounterInput::Read, outcome),
            _ => return None,
        })
    }
}
