//! What a run has written when it is saved, and how it goes on from there.

use crate::Population;
use crate::checkpoint::Output;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// What the files of a run are in the middle of: all that has been told until the run was paused is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedOutputs {
    /// The graph in JSON, if it is written.
    pub(crate) graph: Option<SavedGraph>,
    /// The files as parts of a checkpoint.
    #[serde(skip)]
    pub files: Vec<Output>,
}

/// A graph file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedGraph {
    pub(crate) file: crate::checkpoint::SavedFile,
    pub(crate) events: u64,
    pub(crate) edges: u32,
    /// The populations that have appeared: the numbers of their first actors, and how many those are.
    pub(crate) populations: Vec<(u32, u32)>,
}

/// Where the output of a run goes on.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The checkpoint's directory.
    pub directory: PathBuf,
    /// What was saved there.
    pub outputs: SavedOutputs,
    /// What the populations are, which are not saved.
    pub population: Arc<dyn Population>,
}
