//! A register, or one register for each key: read, write, compare-and-set.

use super::{FromRecords, call_text, group_of};
use crate::{Model, Outcome, Record, Value};

/// A register that is nil at first.
///
/// [`Keyed`](RegisterInput::Keyed) operations concern one of many registers; their values are `[key
/// value]`, as in Jepsen's independent tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Register;

/// The operations of a [`Register`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegisterInput {
    /// Returns the value.
    Read,
    /// Sets the value.
    Write(Value),
    /// Sets the second value if the first one is current, and returns whether it was.
    CompareAndSet(Value, Value),
    /// An operation on the register of a key.
    Keyed(Box<Value>, Box<RegisterInput>),
}

impl RegisterInput {
    fn inner(&self) -> &RegisterInput {
        match self {
            RegisterInput::Keyed(_, inner) => inner.inner(),
            other => other,
        }
    }
}

impl Model for Register {
    type State = Value;
    type Input = RegisterInput;
    type Output = Value;
    type Key = Value;

    fn initial(&self) -> Value {
        Value::Nil
    }

    fn step(&self, state: &Value, input: &RegisterInput, output: Option<&Value>) -> Option<Value> {
        match input.inner() {
            RegisterInput::Read => output
                .is_none_or(|output| output == state)
                .then(|| state.clone()),
            RegisterInput::Write(value) => Some(value.clone()),
            RegisterInput::CompareAndSet(old, new) => {
                let matches = old == state;
                let fits = output.is_none_or(|output| *output == Value::Bool(matches));
                fits.then(|| if matches { new.clone() } else { state.clone() })
            }
            RegisterInput::Keyed(..) => None,
        }
    }

    fn is_read(&self, input: &RegisterInput, output: Option<&Value>) -> bool {
        match input.inner() {
            RegisterInput::Read => true,
            RegisterInput::CompareAndSet(..) => output == Some(&Value::Bool(false)),
            _ => false,
        }
    }

    fn key(&self, input: &RegisterInput, _: Option<&Value>) -> Option<Value> {
        match input {
            RegisterInput::Keyed(key, _) => Some((**key).clone()),
            _ => Some(Value::Nil),
        }
    }

    fn group(&self, input: &RegisterInput, output: Option<&Value>) -> Option<u64> {
        match input.inner() {
            RegisterInput::Read => output.map(group_of),
            RegisterInput::Write(value) => Some(group_of(value)),
            // A compare-and-set that failed might succeed if other operations were removed, so it
            // has no group.
            _ => None,
        }
    }

    fn is_reachable(
        &self,
        state: &Value,
        input: &RegisterInput,
        output: &Value,
        mut others: &mut dyn Iterator<Item = &RegisterInput>,
    ) -> bool {
        let expected = match input.inner() {
            RegisterInput::Read => output,
            RegisterInput::CompareAndSet(old, _) if *output == Value::Bool(true) => old,
            _ => return true,
        };
        expected == state
            || Iterator::any(&mut others, |other| match other.inner() {
                RegisterInput::Write(value) => *value == *expected,
                RegisterInput::CompareAndSet(_, new) => *new == *expected,
                _ => false,
            })
    }

    fn state_bytes(&self, state: &Value) -> usize {
        state.heap_bytes()
    }

    fn describe(&self, input: &RegisterInput, output: Option<&Value>) -> String {
        match input.inner() {
            RegisterInput::Read | RegisterInput::Keyed(..) => call_text("read", "", output, true),
            RegisterInput::Write(value) => call_text("write", &value.to_string(), output, false),
            RegisterInput::CompareAndSet(old, new) => {
                call_text("cas", &format!("{old}, {new}"), output, true)
            }
        }
    }

    fn describe_state(&self, state: &Value) -> String {
        state.to_string()
    }

    fn describe_key(&self, key: &Value) -> String {
        key.to_string()
    }
}

impl FromRecords for Register {
    const NAME: &'static str = "register";
    const EXPECTED: &'static str = ":read, :write VALUE or :cas [OLD NEW]";

    fn call(record: &Record) -> Option<(RegisterInput, Outcome)> {
        let Some(key) = &record.key else {
            return plain(record);
        };
        let (input, outcome) = plain(record)?;
        let key = Box::new(key.clone());
        Some((RegisterInput::Keyed(key, Box::new(input)), outcome))
    }
}

fn plain(record: &Record) -> Option<(RegisterInput, Outcome)> {
    let outcome = record.outcome.clone();
    Some(match &*record.function {
        "read" => (RegisterInput::Read, outcome),
        "write" => (RegisterInput::Write(record.value.clone()), done(outcome)),
        "cas" => {
            let [old, new] = record.value.list()? else {
                return None;
            };
            let outcome = match outcome {
                Outcome::Ok(Value::Bool(false)) => Outcome::Ok(Value::Bool(false)),
                other => done(other),
            };
            (
                RegisterInput::CompareAndSet(old.clone(), new.clone()),
                outcome,
            )
        }
        _ => return None,
    })
}

/// Replaces the result of an operation that returns no useful value.
pub(super) fn done(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Ok(_) => Outcome::Ok(Value::Bool(true)),
        other => other,
    }
}
