//! The interface of workloads.

use crate::history::Record;
use crate::{Body, Topology};
use corsair_check::Value;
use serde_json::Value as Json;
use std::time::Duration;

/// A workload: the requests of its clients, and the checker of the nodes' answers. Each workload is
/// a file in `workloads/` and an entry of [`WORKLOADS`](crate::workloads::WORKLOADS).
pub(crate) trait Workload: Sync {
    /// Returns the name of the workload in the flag `-w`.
    fn name(&self) -> &'static str;
    /// Returns the requests of one client.
    fn session(&self, start: &Start) -> Box<dyn Session>;
    /// Checks the history of all clients.
    fn check(&self, history: &[Record]) -> Findings;
    /// Returns true if clients send further requests after faults have ended and nodes had time to
    /// recover.
    fn has_final_phase(&self) -> bool {
        true
    }
    /// Returns the longest time for which a client waits for a reply, given the mean latency.
    fn patience(&self, latency: Duration) -> Duration {
        let _ = latency;
        Duration::from_secs(5)
    }
    /// True if an operation that times out has certainly not changed anything.
    fn is_idempotent(&self, function: &str) -> bool {
        function == "read"
    }
    /// Returns true if the run is valid even if no operation of this function succeeded.
    fn may_always_fail(&self, function: &str) -> bool {
        let _ = function;
        false
    }
}

/// The parameters with which a session begins.
pub(crate) struct Start {
    pub(crate) client: u32,
    pub(crate) clients: u32,
    pub(crate) nodes: u32,
    pub(crate) topology: Topology,
    pub(crate) key_count: u32,
    pub(crate) writes_per_key: u32,
}

/// The requests of one client, one operation at a time.
pub(crate) trait Session: Send {
    /// Returns a request that must be answered before the load begins.
    fn setup(&mut self) -> Option<Body> {
        None
    }
    /// Returns the next operation. In the final phase, `None` ends the client.
    fn call(&mut self, draw: &mut dyn FnMut(u32) -> u32, phase: Phase) -> Option<Call>;
    /// Reads a reply. The error is a clause that describes the correct reply.
    fn answer(&mut self, reply: &Body) -> Result<Answer, String>;
    /// Reports that the operation failed, or that its outcome is unknown.
    fn failed(&mut self) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Load,
    Final,
}

/// An operation, and its first request.
pub(crate) struct Call {
    pub(crate) function: &'static str,
    pub(crate) value: Value,
    /// The request. If it is `None`, the operation has no request and its outcome is unknown; the
    /// client then continues as another process.
    pub(crate) body: Option<Body>,
}

/// The meaning of a reply for the operation.
pub(crate) enum Answer {
    /// The operation is complete, with this result.
    Done(Value),
    /// The operation has a further request.
    Ask(Body),
}

/// The findings of a checker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Sentences about the violations, at most 10 of each kind.
    pub violations: Vec<String>,
    /// The reason why the check could not decide; `None` if it could.
    pub undecided: Option<String>,
    /// Further facts for the report.
    pub notes: Vec<String>,
}

/// The largest number of violations of one kind that are listed.
const MOST_LISTED: usize = 10;

impl Findings {
    /// Adds violations of one kind.
    pub(crate) fn list(&mut self, kind: &str, mut sentences: Vec<String>) {
        let count = sentences.len();
        sentences.truncate(MOST_LISTED);
        let shown = sentences.into_iter();
        self.violations
            .extend(shown.map(|text| format!("{kind}: {text}")));
        if count > MOST_LISTED {
            let more = count - MOST_LISTED;
            self.violations.push(format!("{kind}: {more} more"));
        }
    }
}

/// Returns a JSON value as a value of histories.
pub(crate) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Int(int),
            (None, float) => Value::Float(float.unwrap_or(f64::NAN).to_bits()),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Array(values) => Value::List(values.iter().map(value).collect()),
        Json::Object(map) => Value::Map(
            map.iter()
                .map(|(name, json)| (Value::Text(name.as_str().into()), value(json)))
                .collect(),
        ),
    }
}
