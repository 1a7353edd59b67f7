//! A lock: acquire, release.

use super::register::done;
use super::{FromRecords, call_text};
use crate::{Model, Outcome, Record, Value};

/// A lock that is free at first, and that only its holder can release.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lock;

/// The operations of a [`Lock`], each with the process that calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockInput {
    /// Takes the lock.
    Acquire(u64),
    /// Releases the lock.
    Release(u64),
    /// An operation on the lock of a key.
    Keyed(Box<Value>, Box<LockInput>),
}

impl LockInput {
    fn inner(&self) -> &LockInput {
        match self {
            LockInput::Keyed(_, inner) => inner.inner(),
            other => other,
        }
    }
}

impl Model for Lock {
    /// The process that holds the lock.
    type State = Option<u64>;
    type Input = LockInput;
    type Output = Value;
    type Key = Value;

    fn initial(&self) -> Option<u64> {
        None
    }

    fn step(
        &self,
        state: &Option<u64>,
        input: &LockInput,
        _: Option<&Value>,
    ) -> Option<Option<u64>> {
        match input.inner() {
            LockInput::Acquire(process) => state.is_none().then_some(Some(*process)),
            LockInput::Release(process) => (*state == Some(*process)).then_some(None),
            LockInput::Keyed(..) => None,
        }
    }

    fn key(&self, input: &LockInput, _: Option<&Value>) -> Option<Value> {
        match input {
            LockInput::Keyed(key, _) => Some((**key).clone()),
            _ => Some(Value::Nil),
        }
    }

    fn describe(&self, input: &LockInput, output: Option<&Value>) -> String {
        match input.inner() {
            LockInput::Release(_) => call_text("release", "", output, false),
            _ => call_text("acquire", "", output, false),
        }
    }

    fn describe_state(&self, state: &Option<u64>) -> String {
        match state {
            Some(process) => format!("held by {process}"),
            None => "free".to_owned(),
        }
    }

    fn describe_key(&self, key: &Value) -> String {
        key.to_string()
    }
}

impl FromRecords for Lock {
    const NAME: &'static str = "lock";
    const EXPECTED: &'static str = ":acquire or :release";

    fn call(record: &Record) -> Option<(LockInput, Outcome)> {
        let input = match &*record.function {
            "acquire" => LockInput::Acquire(record.process),
            "release" => LockInput::Release(record.process),
            _ => return None,
        };
        let input = match &record.key {
            Some(key) => LockInput::Keyed(Box::new(key.clone()), Box::new(input)),
            None => input,
        };
        Some((input, done(record.outcome.clone())))
    }
}
