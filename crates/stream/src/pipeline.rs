//! A task's graph: nodes, and which of them feeds which.
//!
//! A pipeline that exists is sound: see [`Pipeline`]. There are two ways to one, which share the
//! same check: [`Pipeline::build`] in Rust, and [`language::parse`](crate::language::parse) from
//! text. Its `Display` is text that parses to an equal pipeline.
//!
//! ```
//! use corsair_stream::expression::key;
//! use corsair_stream::pipeline::Pipeline;
//! use std::time::Duration;
//!
//! let seconds = Duration::from_secs;
//! let pipeline = Pipeline::build(|stream| {
//!     let hot = stream.from().measurement("m1").filter(key("value").gt(10));
//!     hot.window(seconds(10), seconds(10)).count("value").http_out("counts");
//! })?;
//! assert_eq!(pipeline.nodes()[3].name.as_ref(), "count3");
//! # Ok::<(), corsair_stream::pipeline::PipelineError>(())
//! ```

mod builder;
mod check;
mod error;
mod subscription;
mod template;
mod writer;

pub use crate::node::definition::What;
pub use crate::nodes::definitions::*;
pub use builder::{Chain, Source, Stream};
pub(crate) use check::{Draft, distinct, fits, overlap, positive, posted_to};
pub(crate) use error::{MAX_COUNT, MIN_INTERVAL};
pub use error::{PipelineError, Rule};
pub use subscription::Subscription;
pub use template::Template;
pub(crate) use template::{AlertField, written_duration};
pub(crate) use writer::{Field, Text, Time, Writer};

use std::sync::Arc;

/// A checked graph of nodes: it has no cycle, every node but `from` has what feeds it, and windows
/// and points meet only nodes that take them. Built by [`Pipeline::build`] or from text by
/// [`language::parse`](crate::language::parse).
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// In an order in which every node comes after those that feed it.
    pub(crate) nodes: Vec<Node>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its pipeline: its kind and its place, such as `window2`.
    pub name: Arc<str>,
    /// What it does, with its properties.
    pub what: What,
    /// The places of the nodes that feed it: none for `from`, several for `join` and `union`, else one.
    pub inputs: Vec<usize>,
}

impl Pipeline {
    /// Its nodes, each after those that feed it.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Which node feeds which, as places in [`Pipeline::nodes`], ordered by the node that is fed.
    /// The left input of a join comes first. A node that joins with itself is there twice.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(to, node)| node.inputs.iter().map(move |from| (*from, to)))
    }

    /// Which of its nodes hand on windows. O(nodes).
    pub fn windows(&self) -> Vec<bool> {
        let mut windows: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of_windows = node.inputs.iter().any(|&input| windows[input]);
            windows.push(node.what.gives_windows(of_windows));
        }
        windows
    }

    /// The node of this name. O(nodes).
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| &*node.name == name)
    }
}
