//! Writes pipelines as text that parses to an equal pipeline.

use super::{Node, Pipeline};
use crate::expression::{write_duration, write_key, write_quoted};
use std::fmt::{self, Display, Write};
use std::sync::Arc;
use std::time::Duration;

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

/// Writes the arguments and properties of a node.
pub(crate) struct Writer<'w, 'f> {
    out: &'w mut fmt::Formatter<'f>,
    /// The names of all inputs except the first.
    others: &'w [&'w str],
}

impl Writer<'_, '_> {
    /// Writes `(a, b)`.
    pub(crate) fn arguments(&mut self, arguments: &[&dyn Display]) -> fmt::Result {
        self.out.write_char('(')?;
        for (at, argument) in arguments.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(self.out, "{comma}{argument}")?;
        }
        self.out.write_char(')')
    }

    /// Writes the names of the other inputs in parentheses, and one more argument.
    pub(crate) fn others(&mut self, more: Option<&String>) -> fmt::Result {
        let others = self.others.iter().map(|name| name as &dyn Display);
        let more = more.map(|more| more as &dyn Display);
        self.arguments(&others.chain(more).collect::<Vec<_>>())
    }

    /// Writes `.name(a, b)`.
    pub(crate) fn property(&mut self, name: &str, values: &[&dyn Display]) -> fmt::Result {
        write!(self.out, ".{name}")?;
        self.arguments(values)
    }

    /// Writes `.name()` if the flag is set.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) -> fmt::Result {
        match is_set {
            true => self.property(name, &[]),
            false => Ok(()),
        }
    }

    /// Writes `.name('text')` if there is a text.
    pub(crate) fn text(&mut self, name: &str, text: Option<&Arc<str>>) -> fmt::Result {
        match text {
            Some(text) => self.property(name, &[&Text(text)]),
            None => Ok(()),
        }
    }

    /// Writes `.name('a', 'b')`.
    pub(crate) fn names<'a>(
        &mut self,
        name: &str,
        names: impl IntoIterator<Item = &'a Arc<str>>,
    ) -> fmt::Result {
        let names: Vec<Text<'_>> = names.into_iter().map(|name| Text(name)).collect();
        let names: Vec<&dyn Display> = names.iter().map(|name| name as &dyn Display).collect();
        self.property(name, &names)
    }
}

/// Displays a text in single quotes.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(self.0, '\'', f)
    }
}

/// Displays the name of a field or tag, in double quotes if necessary.
pub(crate) struct Field<'a>(pub(crate) &'a str);

impl Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_key(self.0, f)
    }
}

/// Displays a duration in the language's format.
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0.as_nanos() as i128, f)
    }
}
