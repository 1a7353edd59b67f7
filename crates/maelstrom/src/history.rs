//! The operations of clients and their outcomes.

use corsair_check::{Outcome, Value};
use serde_json::{Value as Json, json};

/// An operation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the process. After an operation whose outcome is unknown, the client continues as another process.
    pub process: u64,
    /// The name of the operation.
    pub function: &'static str,
    /// The argument of the operation.
    pub value: Value,
    /// The time of the call, in nanoseconds.
    pub call: u64,
    /// The time of the return; `u64::MAX` if the outcome is unknown.
    pub returned: u64,
    /// The outcome of the operation.
    pub outcome: Outcome,
    /// True in the phase after the faults.
    pub is_final: bool,
}

impl Record {
    /// Returns the result, if the operation took effect.
    pub fn result(&self) -> Option<&Value> {
        match &self.outcome {
            Outcome::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the two events of the record as JSON in the format of Jepsen's histories, each with
    /// its time.
    pub(crate) fn events(&self) -> [(u64, Json); 2] {
        let event = |kind: &str, value: &Value, time: u64| {
            let value = json(value);
            (
                time,
                json!({"process": self.process, "type": kind, "f": self.function, "value": value, "time": time}),
            )
        };
        let (kind, value) = match &self.outcome {
            Outcome::Ok(value) => ("ok", value),
            Outcome::Failed(value) => ("fail", value),
            Outcome::Unknown => ("info", &self.value),
        };
        [
            event("invoke", &self.value, self.call),
            event(kind, value, self.returned),
        ]
    }
}

/// Returns the history as lines of JSON, one for each event, in the order of time.
pub(crate) fn to_json(history: &[Record]) -> String {
    let mut events: Vec<(u64, Json)> = history.iter().flat_map(Record::events).collect();
    events.sort_by_key(|(time, _)| *time);
    let mut text = String::new();
    for (time, mut event) in events {
        if time == u64::MAX {
            event["time"] = Json::Null;
        }
        text.push_str(&event.to_string());
        text.push('\n');
    }
    text
}

/// Returns a value of histories as JSON.
fn json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => Json::from(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(bits) => Json::from(f64::from_bits(*bits)),
        Value::Text(text) => Json::from(&**text),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| {
                let key = match key {
                    Value::Text(text) => text.to_string(),
                    other => other.to_string(),
                };
                (key, json(value))
            })
            .collect(),
    }
}
