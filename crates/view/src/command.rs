//! Commands to a running simulation: data with a virtual time.

use corsair::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An action at a virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The virtual time, in nanoseconds.
    pub at: u64,
    /// The action to carry out.
    #[serde(flatten)]
    pub what: Action,
}

/// An action. `who` is an actor (`login00`), all actors of a service (`login`), or all in a region
/// or zone (`us-east-1`, `us-east-1.zoneA`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub enum Action {
    /// Stops the instances.
    Kill { who: String },
    /// Restarts stopped instances.
    Revive { who: String },
    /// Pauses the instances; requests wait in queues.
    Pause { who: String },
    /// Continues paused instances.
    Resume { who: String },
    /// Sets the service times to this percentage; 100 is normal.
    Slow { who: String, percent: u32 },
    /// Disconnects the instances from other zones.
    Partition { who: String },
    /// Reconnects the instances to other zones.
    Rejoin { who: String },
    /// Registers this number of instances of a service.
    Scale { service: String, count: u32 },
    /// Sets the load to this percentage of the definition, at one entry point or all entry points.
    Load {
        percent: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        who: Option<String>,
    },
    /// Sends a message from outside: `request`, `request ENDPOINT`, `put N`, `gold N`, `namedrop
    /// WHO`, `forget WHO`, `chat MS`.
    Send { who: String, message: String },
}

impl Command {
    /// Returns the time of the command.
    pub fn time(&self) -> Time {
        Time::from_nanos(self.at)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Kill { who } => write!(f, "kill {who}"),
            Action::Revive { who } => write!(f, "revive {who}"),
            Action::Pause { who } => write!(f, "pause {who}"),
            Action::Resume { who } => write!(f, "resume {who}"),
            Action::Slow { who, percent } => write!(f, "slow {who} to {percent} %"),
            Action::Partition { who } => write!(f, "partition {who}"),
            Action::Rejoin { who } => write!(f, "rejoin {who}"),
            Action::Scale { service, count } => write!(f, "scale {service} to {count}"),
            Action::Load { percent, who: None } => write!(f, "load {percent} %"),
            Action::Load {
                percent,
                who: Some(who),
            } => write!(f, "load of {who} {percent} %"),
            Action::Send { who, message } => write!(f, "send {message} to {who}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line_of_json_with_its_time() {
        let command = Command {
            at: 1_500_000_000,
            what: Action::Slow {
                who: "login00".to_owned(),
                percent: 500,
            },
        };
        let text = serde_json::to_string(&command).unwrap();
        assert_eq!(
            text,
            r#"{"at":1500000000,"do":"slow","who":"login00","percent":500}"#
        );
        assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command);
        assert_eq!(command.what.to_string(), "slow login00 to 500 %");
    }
}
