//! Where a run that was saved goes on from.

use serde::{Deserialize, Serialize};

/// Where a run goes on from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// How far it has come there, in nanoseconds of virtual time.
    pub time: u64,
    /// Which saved run that is, as all processes call it.
    pub place: String,
}
