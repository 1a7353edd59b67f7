//! Actors as nodes of graphs and flows.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// An actor as a node of graphs and flows.
///
/// Actors with the same name are one node; this is how the instances of a service are collapsed into one node. The node
/// ends when the last of its actors ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The name in graphs: `netflixoss.us-east-1.zoneA.login00`.
    pub name: String,
    /// The full name in flows: `netflixoss.us-east-1.zoneA..login00...login.karyon`.
    pub full_name: String,
    /// The service to which the actor belongs: `login`.
    pub service: String,
    /// The package of the actor: `karyon`.
    pub package: String,
    /// The region: `us-east-1`; `*` for all.
    pub region: String,
    /// The zone: `zoneA`; `*` for all.
    pub zone: String,
    /// The container, if known.
    pub container: Option<Container>,
}

/// The container of an actor. Unknown parts are empty. OTLP output contains the container; short names do not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    /// The machine, or an equivalent: `ecs:1`.
    pub machine: String,
    /// The image of the container.
    pub image: String,
    /// The process in the container.
    pub process: String,
}

/// Actors with consecutive addresses that differ in little more than their names. The names are computed only when they
/// are written, so a population takes little memory even if it has a million members.
///
/// A member reports each of its edges once, and removes no edges. All names are unique.
pub trait Population: fmt::Debug + Send + Sync {
    /// Returns the name of the member with this index in graphs.
    fn name(&self, index: u32) -> Cow<'_, str>;

    /// Returns the member with this index as a node.
    fn node(&self, index: u32) -> Node;
}

/// The way in which an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Exit {
    /// The actor ended with the run.
    #[default]
    Normal,
    /// The actor was killed during the run.
    Killed,
    /// The actor failed.
    Failed,
}

impl Exit {
    /// Returns the word for this exit in graph files.
    pub const fn word(self) -> &'static str {
        match self {
            Exit::Normal => "normal",
            Exit::Killed => "killed",
            Exit::Failed => "failed",
        }
    }
}
