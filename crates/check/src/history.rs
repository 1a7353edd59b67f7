//! Operations with their call and return times.

use crate::Value;

/// An operation of a history.
///
/// Times are in any unit, and only their order matters. A return and a call at the same time
/// count as concurrent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// The number of the client that called the operation. A client has only one operation at a time.
    pub process: u64,
    /// The arguments of the call.
    pub input: I,
    /// The time of the call.
    pub call: u64,
    /// The time of the return and the result; `None` if it is unknown whether the operation took
    /// effect.
    pub completion: Option<(u64, O)>,
}

impl<I, O> Operation<I, O> {
    /// Creates an operation that returned.
    pub fn completed(
        process: u64,
        input: I,
        call: u64,
        returned: u64,
        output: O,
    ) -> Operation<I, O> {
        let completion = Some((returned, output));
        Operation {
            process,
            input,
            call,
            completion,
        }
    }

    /// Creates an operation that may take effect at any time after its call, or never.
    pub fn unknown(process: u64, input: I, call: u64) -> Operation<I, O> {
        Operation {
            process,
            input,
            call,
            completion: None,
        }
    }

    /// Returns the result, if the operation returned.
    pub fn output(&self) -> Option<&O> {
        self.completion.as_ref().map(|(_, output)| output)
    }

    /// Returns the time of the return; `u64::MAX` if the operation did not return.
    pub fn returned(&self) -> u64 {
        self.completion.as_ref().map_or(u64::MAX, |(time, _)| *time)
    }
}

/// The outcome of a recorded operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation took effect and returned this value.
    Ok(Value),
    /// The operation had no effect; the value is the recorded reason.
    Failed(Value),
    /// The history does not show whether the operation took effect.
    Unknown,
}

/// A recorded operation, before a model has interpreted its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The client that called.
    pub process: u64,
    /// The name of the operation, for example `read`.
    pub function: Box<str>,
    /// The key of the object, if the history records it separately from the value.
    pub key: Option<Value>,
    /// The argument of the operation.
    pub value: Value,
    /// The time of the call.
    pub call: u64,
    /// The time of the return; `u64::MAX` if it did not return.
    pub returned: u64,
    /// The outcome of the operation.
    pub outcome: Outcome,
    /// The line of the file, or the number of the event, for messages.
    pub line: usize,
}
