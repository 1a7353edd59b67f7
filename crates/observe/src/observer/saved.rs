//! The serialized state of all outputs.

use crate::ResumePoint;
use crate::checkpoint::CheckpointError;
use crate::directory::SavedDirectory;
use crate::flows::SavedFlows;
use crate::graph::SavedGraph;
use crate::times::SavedTimes;
use serde::{Deserialize, Serialize};

/// The saved state of all outputs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedState {
    pub(super) directory: SavedDirectory,
    pub(super) graph: Option<SavedGraph>,
    pub(super) flows: Option<SavedFlows>,
    /// The number of lines in the message log.
    pub(super) lines: u64,
    pub(super) times: Vec<(String, SavedTimes)>,
}

impl SavedState {
    /// Reads the state from which a run resumes.
    pub(super) fn read(resumed: &ResumePoint) -> Result<SavedState, CheckpointError> {
        resumed.state()
    }
}
