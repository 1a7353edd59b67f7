//! Operations with their call and return times.

use crate::Value;

/// An operation of a history.
///
/// Times are in any unit, and only their order matters. A return and a call at the same time
/// count as concurrent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// The client that called. A client has one operation at a time.
    pub process: u64,
    /// The call.
    pub input: I,
    /// The time of the call.
    pub call: u64,
    /// When it returned and with what result; `None` if nobody knows whether it took effect.
    pub completion: Option<(u64, O)>,
}

impl<I, O> Operation<I, O> {
    /// An operation that returned.
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

    /// An operation that may take effect at any time after its call, or never.
    pub fn unknown(process: u64, input: I, call: u64) -> Operation<I, O> {
        Operation {
            process,
            input,
            call,
            completion: None,
        }
    }

    /// The result, if the operation returned.
    pub fn output(&self) -> Option<&O> {
        self.completion.as_ref().map(|(_, output)| output)
    }

    /// When the operation returned; `u64::MAX` if it did not.
    pub fn returned(&self) -> u64 {
        self.completion.as_ref().map_or(u64::MAX, |(time, _)| *time)
    }
}

/// How a recorded operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect, and returned this value.
    Ok(Value),
    /// It had no effect; the value is what was recorded of the failure.
    Failed(Value),
    /// Nobody knows whether it took effect.
    Unknown,
}

/// An operation as it was recorded, before a model reads its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The client that called.
    pub process: u64,
    /// The name of the operation, for example `read`.
    pub function: Box<str>,
    /// The key that it is about, if the history has one beside the value.
    pub key: Option<Value>,
    /// The argument.
    pub value: Value,
    /// The time of the call.
    pub call: u64,
    /// The time of the return; `u64::MAX` if it did not return.
    pub returned: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The line of the file, or the number of the event, for messages.
    pub line: usize,
}
