//! Pipelines as text that parses back.

use super::{Aggregate, Buffer, Eval, Fill, Keep, Node, Pipeline, What};
use crate::expression::{Expression, write_duration, write_key, write_quoted};
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

/// A node of a pipeline as it is written.
struct Written<'p>(&'p Pipeline, &'p Node);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_node(self.1, f)
    }
}

impl Pipeline {
    /// One of its nodes as it is written, without what feeds it.
    pub(crate) fn written<'p>(&'p self, node: &'p Node) -> impl fmt::Display + 'p {
        Written(self, node)
    }

    /// The vars of all inputs but the first.
    fn write_others(&self, node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, &input) in node.inputs.iter().skip(1).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{}", self.nodes[input].name)?;
        }
        Ok(())
    }

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
            What::GroupBy(by) => {
                if by.all {
                    f.write_str(if by.tags.is_empty() { "*" } else { "*, " })?;
                }
                write_names(by.tags.iter(), f)?;
                f.write_char(')')?;
                if !by.except.is_empty() {
                    write_list("exclude", &by.except, f)?;
                }
                f.write_str(if by.measurement {
                    ".byMeasurement()"
                } else {
                    ""
                })
            }
            What::Buffer(buffer) => write_buffer(buffer, f),
            What::Default { fields, tags } => {
                f.write_char(')')?;
                for (name, value) in fields {
                    f.write_str(".field(")?;
                    write_quoted(name, '\'', f)?;
                    write!(f, ", {})", Expression::Literal(value.clone()))?;
                }
                for (name, value) in tags {
                    write_list("tag", [name, value], f)?;
                }
                Ok(())
            }
            What::Derivative {
                field,
                into,
                unit,
                non_negative,
            } => {
                write_quoted(field, '\'', f)?;
                f.write_str(").unit(")?;
                write_duration(nanos(*unit), f)?;
                f.write_char(')')?;
                f.write_str(if *non_negative { ".nonNegative()" } else { "" })?;
                match into == field {
                    true => Ok(()),
                    false => write_as([into], f),
                }
            }
            What::Stats { interval, align } => {
                write_duration(nanos(*interval), f)?;
                f.write_str(if *align { ").align()" } else { ")" })
            }
            What::Union { rename } => {
                self.write_others(node, f)?;
                f.write_char(')')?;
                match rename {
                    Some(name) => write_list("rename", [name], f),
                    None => Ok(()),
                }
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
                point_times,
            } => {
                write_key(field, f)?;
                if let Aggregate::Percentile(percent) = function {
                    write!(f, ", {percent:?}")?;
                }
                f.write_char(')')?;
                f.write_str(if *point_times { ".usePointTimes()" } else { "" })?;
                match **into == *function.name() {
                    true => Ok(()),
                    false => write_as([into], f),
                }
            }
            What::Eval(Eval { fields, tags, keep }) => {
                for (at, (_, expression)) in fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{expression}")?;
                }
                f.write_char(')')?;
                write_as(fields.iter().map(|(name, _)| name), f)?;
                if !tags.is_empty() {
                    write_list("tags", tags, f)?;
                }
                match keep {
                    Keep::Results => Ok(()),
                    Keep::All => f.write_str(".keep()"),
                    Keep::These(names) => write_list("keep", names, f),
                }
            }
            What::Join(join) => {
                self.write_others(node, f)?;
                if !join.tolerance.is_zero() {
                    f.write_str(", tolerance ")?;
                    write_duration(nanos(join.tolerance), f)?;
                }
                f.write_char(')')?;
                write_as(&join.names, f)?;
                if &*join.delimiter != "." {
                    write_list("delimiter", [&join.delimiter], f)?;
                }
                if let Some(name) = &join.stream_name {
                    write_list("streamName", [name], f)?;
                }
                match &join.fill {
                    Fill::None => {}
                    Fill::Null => f.write_str(".fill('null')")?,
                    Fill::Value(value) => {
                        write!(f, ".fill({})", Expression::Literal(value.clone()))?
                    }
                }
                match join.on.is_empty() {
                    true => Ok(()),
                    false => write_list("on", &join.on, f),
                }
            }
            What::Alert(alert) => {
                f.write_char(')')?;
                for (level, condition) in alert.conditions() {
                    write!(f, ".{level}({condition})")?;
                }
                for (name, text) in [("id", &alert.id), ("message", &alert.message)] {
                    if let Some(text) = text {
                        write_list(name, [text], f)?;
                    }
                }
                match alert.changes_only {
                    None => {}
                    Some(Duration::ZERO) => f.write_str(".stateChangesOnly()")?,
                    Some(after) => {
                        f.write_str(".stateChangesOnly(")?;
                        write_duration(nanos(after), f)?;
                        f.write_char(')')?;
                    }
                }
                f.write_str(if alert.all { ".all()" } else { "" })?;
                f.write_str(if alert.no_recoveries {
                    ".noRecoveries()"
                } else {
                    ""
                })?;
                for (added, name) in &alert.adds {
                    write_list(added.name(), [name], f)?;
                }
                for path in &alert.logs {
                    write_list("log", [path], f)?;
                }
                for url in &alert.posts {
                    write_list("post", [url], f)?;
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

fn write_buffer(buffer: &Buffer, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fill = match *buffer {
        Buffer::Time {
            period,
            every,
            align,
            fill_period,
        } => {
            f.write_str(").period(")?;
            write_duration(nanos(period), f)?;
            f.write_str(").every(")?;
            write_duration(nanos(every), f)?;
            f.write_str(if align { ").align()" } else { ")" })?;
            fill_period
        }
        Buffer::Count {
            period,
            every,
            fill_period,
        } => {
            write!(f, ").periodCount({period}).everyCount({every})")?;
            fill_period
        }
    };
    f.write_str(if fill { ".fillPeriod()" } else { "" })
}

/// The check has seen that it fits.
fn nanos(duration: Duration) -> i128 {
    duration.as_nanos() as i128
}

fn write_as<'a>(
    names: impl IntoIterator<Item = &'a std::sync::Arc<str>>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write_list("as", names, f)
}

fn write_list<'a>(
    property: &str,
    names: impl IntoIterator<Item = &'a std::sync::Arc<str>>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, ".{property}(")?;
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
