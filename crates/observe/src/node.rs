//! What is known of actors that appear in graphs and flows.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// An actor as graphs and flows show it.
///
/// Actors that have the same name are one node of the graph, which is how instances are collapsed
/// to services; it is done when the last of them is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// Its name in graphs: `netflixoss.us-east-1.zoneA.login00`.
    pub name: String,
    /// Its name in flows, with all parts of the hierarchy:
    /// `netflixoss.us-east-1.zoneA..login00...login.karyon`.
    pub full_name: String,
    /// The service that it is an instance of: `login`.
    pub service: String,
    /// What implements it: `karyon`.
    pub package: String,
    /// Where it is: `us-east-1`; `*` if everywhere.
    pub region: String,
    /// Where in the region: `zoneA`; `*` if everywhere.
    pub zone: String,
    /// What it runs in, if that is known.
    pub container: Option<Container>,
}

/// What an actor runs in. What is not known is empty. Names of spigo's have no part of it; OTLP does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    /// The machine, or what stands for one: `ecs:1`.
    pub machine: String,
    /// The image of the container.
    pub image: String,
    /// The process in it.
    pub process: String,
}

/// Actors with consecutive addresses that differ in little but their names. What they are called
/// is asked whenever it is written, so that a million of them take no memory.
///
/// A member tells each of its edges once, and forgets none. No two members have the same name, and
/// no other node has the name of one.
pub trait Population: fmt::Debug + Send + Sync {
    /// The name in graphs of the member with this index.
    fn name(&self, index: u32) -> Cow<'_, str>;

    /// All that is known of the member with this index.
    fn node(&self, index: u32) -> Node;
}

/// How an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Exit {
    /// It ended with the run.
    #[default]
    Normal,
    /// It was killed during the run.
    Killed,
    /// It failed.
    Failed,
}

impl Exit {
    /// The word that graph files have for it.
    pub const fn word(self) -> &'static str {
        match self {
            Exit::Normal => "normal",
            Exit::Killed => "killed",
            Exit::Failed => "failed",
        }
    }
}
