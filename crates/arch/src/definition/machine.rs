//! Machines whose processors several services share.

use super::fault::Fault;
use crate::duration_text::TimeSpan;
use serde::{Deserialize, Serialize};

/// A machine. In each region there is one, and the work of all services on it shares its processors evenly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MachineDefinition {
    /// The number of processors. Example: `4`.
    pub processors: f64,
    /// The requests take turns of at most this time instead of sharing the processors evenly. Default: none. Example:
    /// `"3ms"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_slice: Option<TimeSpan>,
    /// Faults of the machine, which affect the work of all its services. Default: `[]`. Example:
    /// `[{"kind": "pause", "at": "1s", "for": "50ms", "every": "1s"}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}
