//! The serialized state of all outputs.

use crate::ResumePoint;
use crate::checkpoint::CheckpointError;
use crate::directory::SavedDirectory;
use crate::flows::SavedFlows;
use crate::graph::SavedGraph;
use crate::times::SavedTimes;
use serde::{Deserialize, Serialize};

/// The state of all that writes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedState {
    pub(super) directory: SavedDirectory,
    pub(super) graph: Option<SavedGraph>,
    pub(super) flows: Option<SavedFlows>,
    /// How many lines the log of messages has.
    pub(super) lines: u64,
    pub(super) times: Vec<(String, SavedTimes)>,
}

impl SavedState {
    /// The state with which a run resumes.
    pub(super) fn read(resumed: &ResumePoint) -> Result<SavedState, CheckpointError> {
        resumed.state()
    }
}
