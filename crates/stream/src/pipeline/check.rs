//! What nodes must heed to be a pipeline. Both the builder and the language go through it.

use super::error::MAX_WINDOWS;
use super::{Aggregate, Node, Pipeline, PipelineError, Rule, What};
use crate::expression::Expression;
use axum::http::Uri;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::time::Duration;

/// A node before the check. Those that feed it come before it.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) what: What,
    pub(crate) inputs: Vec<usize>,
}

impl Pipeline {
    /// The nodes as a pipeline, if they are one. O(size).
    pub(crate) fn check(drafts: Vec<Draft>) -> Result<Pipeline, PipelineError> {
        if drafts.is_empty() {
            return Err(PipelineError::Empty);
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(drafts.len());
        let mut windows = Vec::with_capacity(drafts.len());
        let mut endpoints = FxHashMap::default();
        let mut drafts = drafts.into_iter().enumerate();
        while let Some((place, Draft { mut what, inputs })) = drafts.next() {
            let name: Arc<str> = format!("{}{place}", what.kind_name()).into();
            let result = fed(&what, &inputs, &nodes, &windows)
                .and_then(|()| by_itself(&mut what))
                .and_then(|()| addressed(&what, &name, &mut endpoints));
            if let Err(rule) = result {
                what.dismantle();
                drafts.for_each(|(_, draft)| draft.what.dismantle());
                let node = name;
                return Err(PipelineError::Node { node, place, rule });
            }
            let of_windows = inputs.iter().any(|&input| windows[input]);
            windows.push(what.gives_windows(of_windows));
            nodes.push(Node { name, what, inputs });
        }
        Ok(Pipeline { nodes })
    }
}

/// Whether what comes in is what it takes.
fn fed(what: &What, inputs: &[usize], nodes: &[Node], windows: &[bool]) -> Result<(), Rule> {
    for &input in inputs {
        let name = || nodes[input].name.clone();
        match (what, windows[input]) {
            (What::Aggregate { .. }, false) => return Err(Rule::NeedsWindow { input: name() }),
            (What::Window { .. }, true) => return Err(Rule::WindowOfWindows { input: name() }),
            (What::Join { .. }, true) => return Err(Rule::JoinOfWindows { input: name() }),
            (What::Where(_) | What::GroupBy(_) | What::Eval(_) | What::Alert(_), true) => {
                return Err(Rule::NeedsPoints { input: name() });
            }
            _ => {}
        }
    }
    Ok(())
}

/// What can be said of a node without the others. Tags are put in order.
fn by_itself(what: &mut What) -> Result<(), Rule> {
    match what {
        What::From { .. } | What::Log { .. } | What::HttpOut { .. } | What::HttpPost { .. } => {
            Ok(())
        }
        What::Where(expression) => sound(expression),
        What::GroupBy(tags) => {
            if tags.is_empty() {
                return Err(Rule::NoTags);
            }
            tags.sort();
            distinct(tags.iter())
        }
        What::Window { period, every } => {
            for (property, duration) in [("period", *period), ("every", *every)] {
                if duration.is_zero() {
                    return Err(Rule::NotPositive { property });
                }
                fits(property, duration)?;
            }
            match period.as_nanos().div_ceil(every.as_nanos()) {
                windows if windows > MAX_WINDOWS => Err(Rule::Overlap { windows }),
                _ => Ok(()),
            }
        }
        What::Aggregate {
            function,
            field,
            into,
        } => {
            if let Aggregate::Percentile(percent) = *function
                && !(0.0..=100.0).contains(&percent)
            {
                return Err(Rule::Percentile(percent));
            }
            distinct([&*field]).and_then(|()| distinct([&*into]))
        }
        What::Eval(fields) => {
            if fields.is_empty() {
                return Err(Rule::NoExpressions);
            }
            for (_, expression) in &*fields {
                sound(expression)?;
            }
            distinct(fields.iter().map(|(name, _)| name))
        }
        What::Join {
            prefixes,
            tolerance,
        } => fits("tolerance", *tolerance).and_then(|()| distinct(&*prefixes)),
        What::Alert(alert) => {
            if alert.conditions().next().is_none() {
                return Err(Rule::NoCondition);
            }
            alert
                .conditions()
                .try_for_each(|(_, condition)| sound(condition))
        }
    }
}

/// What leads out of the task must have a good address.
fn addressed(
    what: &What,
    node: &Arc<str>,
    endpoints: &mut FxHashMap<Arc<str>, Arc<str>>,
) -> Result<(), Rule> {
    match what {
        What::HttpOut { endpoint } => {
            let unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            // A part of one or two dots means another directory.
            let dots = endpoint.chars().all(|c| c == '.') && endpoint.len() <= 2;
            if dots || !endpoint.chars().all(unreserved) {
                return Err(Rule::Endpoint(endpoint.clone()));
            }
            match endpoints.insert(endpoint.clone(), node.clone()) {
                Some(other) => Err(Rule::DuplicateEndpoint {
                    endpoint: endpoint.clone(),
                    other,
                }),
                None => Ok(()),
            }
        }
        What::HttpPost { url } => {
            let good = url.parse::<Uri>().is_ok_and(|uri| {
                matches!(uri.scheme_str(), Some("http" | "https"))
                    && uri.host().is_some_and(|host| !host.is_empty())
            });
            good.then_some(()).ok_or_else(|| Rule::Url(url.clone()))
        }
        _ => Ok(()),
    }
}

/// Names that are none, or are there twice.
fn distinct<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> Result<(), Rule> {
    let mut seen = FxHashSet::default();
    for name in names {
        if name.is_empty() {
            return Err(Rule::EmptyName);
        }
        if !seen.insert(name) {
            return Err(Rule::DuplicateName(name.clone()));
        }
    }
    Ok(())
}

/// Times are 64 bits of nanoseconds.
fn fits(property: &'static str, duration: Duration) -> Result<(), Rule> {
    match i64::try_from(duration.as_nanos()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Rule::TooLong { property, duration }),
    }
}

/// Whether an expression can be evaluated, and written.
fn sound(expression: &Expression) -> Result<(), Rule> {
    if expression.is_too_deep() {
        return Err(Rule::TooDeep);
    }
    if expression.has_infinite_literal() {
        return Err(Rule::NotFinite);
    }
    Ok(())
}

impl What {
    /// Drops its expressions without recursion: one that is refused may be too deep for it.
    fn dismantle(self) {
        let mut pending: Vec<Expression> = match self {
            What::Where(expression) => vec![expression],
            What::Eval(fields) => fields.into_iter().map(|(_, part)| part).collect(),
            What::Alert(alert) => [alert.info, alert.warn, alert.crit]
                .into_iter()
                .flatten()
                .collect(),
            _ => Vec::new(),
        };
        while let Some(part) = pending.pop() {
            match part {
                Expression::Literal(_) | Expression::Duration(_) | Expression::Key(_) => {}
                Expression::Unary(_, operand) => pending.push(*operand),
                Expression::Binary(_, left, right) => pending.extend([*left, *right]),
            }
        }
    }
}
