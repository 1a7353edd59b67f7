//! A task's graph: its nodes, and the connections between them.
//!
//! An existing pipeline is valid: see [`Pipeline`]. [`Pipeline::build`] creates a pipeline in Rust, and
//! [`language::parse`](crate::language::parse) creates one from text, with the same checks. Its `Display` is text
//! that parses to an equal pipeline.
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
mod rules;
mod subscription;
mod template;
mod text;
mod writer;

pub use crate::node::definition::AnyDefinition;
pub use crate::nodes::definitions::*;
pub use builder::{Chain, Source, Stream};
pub(crate) use check::Draft;
pub(crate) use error::MAX_COUNT;
pub use error::{PipelineError, Rule};
pub(crate) use rules::{clock_interval, distinct, fits, overlap, positive, posted_to};
pub use subscription::Subscription;
pub use template::Template;
pub(crate) use template::{AlertField, written_duration};
pub(crate) use writer::{Field, Text, Time, Writer};

use std::sync::Arc;

/// A valid graph of nodes. It has no cycle, every node except `from` has its inputs, and windows and points reach only
/// nodes that accept them. [`Pipeline::build`] creates a pipeline, and [`language::parse`](crate::language::parse)
/// creates one from text.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// The nodes, in an order in which every node follows its inputs.
    pub(crate) nodes: Vec<Node>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, which is unique in the pipeline: the node's kind and index, such as `window2`.
    pub name: Arc<str>,
    /// The kind of the node, with its properties.
    pub what: AnyDefinition,
    /// The indices of the step's inputs: none for `from`, several for `join` and `union`, otherwise one.
    pub inputs: Vec<usize>,
}

impl Pipeline {
    /// Returns the nodes, each after its inputs.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the connections, as pairs of indices into [`Pipeline::nodes`], ordered by the receiving node. The left
    /// input of a join comes first. A node that is joined with itself appears twice.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(to, node)| node.inputs.iter().map(move |from| (*from, to)))
    }

    /// Returns a flag for each node: true if the node sends windows. O(nodes).
    pub fn windows(&self) -> Vec<bool> {
        let mut windows: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of_windows = node.inputs.iter().any(|&input| windows[input]);
            windows.push(node.what.gives_windows(of_windows));
        }
        windows
    }

    /// Returns the node with this name. O(nodes).
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| &*node.name == name)
    }
}
