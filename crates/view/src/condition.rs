//! Conditions that pause a session.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A condition on a measurement of a group or an actor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The measurement that is compared.
    #[serde(flatten)]
    pub measure: Measure,
    /// The threshold: the condition holds above it. Times are in seconds.
    pub above: f64,
}

/// A measurement that a condition compares with its threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "measure", rename_all = "lowercase")]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub enum Measure {
    /// The 99th percentile of response times during the last second: of all requests, or of the
    /// requests of a service or zone.
    P99 { of: String },
    /// The number of requests in the queues of a group.
    Queue { of: String },
    /// The number of errors since the run was last started.
    Errors { of: String },
    /// The number of messages to actors that have ended, since the run was last started.
    Dead,
    /// A number in the state of an actor, by its JSON pointer: `/state/queue`.
    State { who: String, pointer: String },
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = self.above;
        match &self.measure {
            Measure::P99 { of } => write!(f, "p99 of {of} is above {above} s"),
            Measure::Queue { of } => write!(f, "the queue of {of} is above {above}"),
            Measure::Errors { of } => write!(f, "{of} has more than {above} errors"),
            Measure::Dead => write!(f, "there are more than {above} dead letters"),
            Measure::State { who, pointer } => write!(f, "{pointer} of {who} is above {above}"),
        }
    }
}
