//! Writes pipelines as text that parses to an equal pipeline.

use super::writer::Writer;
use super::{Node, Pipeline};
use std::fmt;

impl fmt::Display for Pipeline {
    /// Writes chains as long as possible, in an order that preserves the index of each node. A node
    /// that is used later is a `var` with the node's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The number of times that each node is used, except by the next node of its chain.
        let mut uses = vec![0; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            for (side, &input) in node.inputs.iter().enumerate() {
                if side > 0 || input + 1 != place {
                    uses[input] += 1;
                }
            }
        }
        let follows = |place: usize| {
            uses[place] == 0
                && self
                    .nodes
                    .get(place + 1)
                    .is_some_and(|next| next.inputs.first() == Some(&place))
        };
        for (place, node) in self.nodes.iter().enumerate() {
            if place == 0 || !follows(place - 1) {
                let mut last = place;
                while follows(last) {
                    last += 1;
                }
                let feeds_next = |next: &Node| next.inputs.first() == Some(&last);
                if uses[last] > 0 || self.nodes.get(last + 1).is_some_and(feeds_next) {
                    write!(f, "var {} = ", self.nodes[last].name)?;
                }
                match node.inputs.first() {
                    None => f.write_str("stream")?,
                    Some(&input) => f.write_str(&self.nodes[input].name)?,
                }
            }
            f.write_str(" | ")?;
            self.write_node(node, f)?;
            if !follows(place) && place + 1 < self.nodes.len() {
                f.write_str("\n")?;
            }
        }
        Ok(())
    }
}

/// A node of a pipeline in text form.
struct NodeText<'p>(&'p Pipeline, &'p Node);

impl fmt::Display for NodeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_node(self.1, f)
    }
}

impl Pipeline {
    /// Returns the text form of a node, without its inputs.
    pub(crate) fn written<'p>(&'p self, node: &'p Node) -> impl fmt::Display + 'p {
        NodeText(self, node)
    }

    fn write_node(&self, node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = node.what.definition();
        f.write_str(definition.name())?;
        let others = node.inputs.iter().skip(1);
        let others: Vec<&str> = others.map(|&input| &*self.nodes[input].name).collect();
        definition.write(&mut Writer {
            out: f,
            others: &others,
        })
    }
}
