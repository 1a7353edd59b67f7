//! Pipelines as text that parses back.

use super::{Aggregate, Node, Pipeline, What};
use crate::expression::{write_duration, write_key, write_quoted};
use std::fmt::{self, Write};
use std::time::Duration;

impl fmt::Display for Pipeline {
    /// Chains as long as can be, in an order that gives every node its place again. What is used
    /// further on is a `var` with the node's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // How often a node is used, but for the one behind it in its chain.
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

impl Pipeline {
    fn write_node(&self, node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", node.what.kind_name())?;
        match &node.what {
            What::From {
                database,
                policy,
                measurement,
            } => {
                f.write_char(')')?;
                let properties = [
                    ("database", database),
                    ("retentionPolicy", policy),
                    ("measurement", measurement),
                ];
                for (property, value) in properties {
                    if let Some(value) = value {
                        write!(f, ".{property}(")?;
                        write_quoted(value, '\'', f)?;
                        f.write_char(')')?;
                    }
                }
                Ok(())
            }
            What::Where(expression) => write!(f, "{expression})"),
            What::GroupBy(tags) => {
                write_names(tags.iter(), f)?;
                f.write_char(')')
            }
            What::Window { period, every } => {
                write_duration(nanos(*period), f)?;
                f.write_str(", every ")?;
                write_duration(nanos(*every), f)?;
                f.write_char(')')
            }
            What::Aggregate {
                function,
                field,
                into,
            } => {
                write_key(field, f)?;
                if let Aggregate::Percentile(percent) = function {
                    write!(f, ", {percent:?}")?;
                }
                f.write_char(')')?;
                match **into == *function.name() {
                    true => Ok(()),
                    false => write_as([into], f),
                }
            }
            What::Eval(fields) => {
                for (at, (_, expression)) in fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{expression}")?;
                }
                f.write_char(')')?;
                write_as(fields.iter().map(|(name, _)| name), f)
            }
            What::Join {
                prefixes,
                tolerance,
            } => {
                f.write_str(&self.nodes[node.inputs[1]].name)?;
                if !tolerance.is_zero() {
                    f.write_str(", tolerance ")?;
                    write_duration(nanos(*tolerance), f)?;
                }
                f.write_char(')')?;
                write_as(prefixes, f)
            }
            What::Alert(alert) => {
                f.write_char(')')?;
                for (level, condition) in alert.conditions() {
                    write!(f, ".{level}({condition})")?;
                }
                if let Some(id) = &alert.id {
                    f.write_str(".id(")?;
                    write_quoted(id, '\'', f)?;
                    f.write_char(')')?;
                }
                Ok(())
            }
            What::Log { prefix } => {
                if !prefix.is_empty() {
                    write_quoted(prefix, '\'', f)?;
                }
                f.write_char(')')
            }
            What::HttpOut { endpoint: text } | What::HttpPost { url: text } => {
                write_quoted(text, '\'', f)?;
                f.write_char(')')
            }
        }
    }
}

/// The check has seen that it fits.
fn nanos(duration: Duration) -> i128 {
    duration.as_nanos() as i128
}

fn write_as<'a>(
    names: impl IntoIterator<Item = &'a std::sync::Arc<str>>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.write_str(".as(")?;
    write_names(names.into_iter(), f)?;
    f.write_char(')')
}

fn write_names<'a>(
    names: impl Iterator<Item = &'a std::sync::Arc<str>>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (at, name) in names.enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write_quoted(name, '\'', f)?;
    }
    Ok(())
}
