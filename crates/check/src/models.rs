//! Models of the usual objects.
//!
//! Each model reads [`Record`]s as Jepsen writes them; [`NAMES`] lists the names by which a model
//! is chosen for the result of [`read::parse`](crate::read).

mod counter;
mod kv;
mod lock;
mod queue;
mod register;
mod set;

pub use counter::{Counter, CounterInput};
pub use kv::{KeyValue, KeyValueAction, KeyValueInput};
pub use lock::{Lock, LockInput};
pub use queue::{Bag, BagState, Queue, QueueInput};
pub use register::{Register, RegisterInput};
pub use set::{Set, SetInput};

use crate::{Model, Operation, Outcome, Record, Value};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use thiserror::Error;

/// The names of the models in this module.
pub const NAMES: [&str; 7] = ["register", "kv", "queue", "bag", "set", "lock", "counter"];

/// The error for an operation that a model does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: the model {model} has no operation {operation}; expected {expected}")]
pub struct UnknownOperation {
    /// The line of the history.
    pub line: usize,
    /// The name of the model.
    pub model: &'static str,
    /// The recorded operation.
    pub operation: String,
    /// The operations that the model has.
    pub expected: &'static str,
}

/// A model that can read recorded operations.
pub trait FromRecords: Model<Output = Value> {
    /// The name of the model.
    const NAME: &'static str;
    /// The operations that the model has, for messages.
    const EXPECTED: &'static str;

    /// Returns the call of a record with its outcome; `None` if the model has no such operation.
    fn call(record: &Record) -> Option<(Self::Input, Outcome)>;
}

/// Returns the operations of the records, without failed ones, which had no effect.
///
/// # Errors
/// If the model lacks an operation; the error names the first one.
pub fn operations<M: FromRecords>(
    records: &[Record],
) -> Result<Vec<Operation<M::Input, Value>>, UnknownOperation> {
    let mut operations = Vec::with_capacity(records.len());
    for record in records {
        let call = M::call(record).ok_or_else(|| UnknownOperation {
            line: record.line,
            model: M::NAME,
            operation: format!(":{} {}", record.function, record.value),
            expected: M::EXPECTED,
        })?;
        let (input, outcome) = call;
        let completion = match outcome {
            Outcome::Ok(value) => Some((record.returned, value)),
            Outcome::Unknown => None,
            Outcome::Failed(_) => continue,
        };
        operations.push(Operation {
            process: record.process,
            input,
            call: record.call,
            completion,
        });
    }
    Ok(operations)
}

/// Returns a number that identifies a value, for groups.
fn group_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Describes an operation and its result in words.
fn call_text(name: &str, arguments: &str, output: Option<&Value>, shown: bool) -> String {
    match output {
        Some(output) if shown => format!("{name}({arguments}) → {output}"),
        Some(_) => format!("{name}({arguments})"),
        None => format!("{name}({arguments}) → ?"),
    }
}
