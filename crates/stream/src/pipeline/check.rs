//! What nodes must heed to be a pipeline. Both the builder and the language go through it.

use super::error::{MAX_COUNT, MAX_WINDOWS, MIN_INTERVAL};
use super::{Aggregate, Buffer, Node, Pipeline, PipelineError, Rule, Template, What};
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
    if let What::Join(join) = what
        && join.names.len() != inputs.len()
    {
        let (inputs, names) = (inputs.len(), join.names.len());
        return Err(Rule::JoinNames { inputs, names });
    }
    for &input in inputs {
        let name = || nodes[input].name.clone();
        match (what, windows[input]) {
            (What::Window { .. } | What::Buffer(_), true) => {
                return Err(Rule::WindowOfWindows { input: name() });
            }
            (What::Join(_), true) => return Err(Rule::JoinOfWindows { input: name() }),
            (What::Union { .. }, true) => return Err(Rule::UnionOfWindows { input: name() }),
            _ => {}
        }
    }
    Ok(())
}

/// What can be said of a node without the others. Tags are put in order.
fn by_itself(what: &mut What) -> Result<(), Rule> {
    match what {
        What::From { .. }
        | What::Log { .. }
        | What::HttpOut { .. }
        | What::HttpPost { .. }
        | What::Union { .. } => Ok(()),
        What::Where(expression) => sound(expression),
        What::GroupBy(by) => {
            by.tags.sort();
            by.except.sort();
            distinct(by.tags.iter()).and_then(|()| distinct(by.except.iter()))
        }
        What::Buffer(Buffer::Time { period, every, .. }) => {
            if period.is_zero() {
                return Err(Rule::NotPositive { property: "period" });
            }
            fits("period", *period)?;
            fits("every", *every)?;
            let windows = period.as_nanos().div_ceil(every.as_nanos().max(1));
            match windows > MAX_WINDOWS && !every.is_zero() {
                true => Err(Rule::Overlap { windows }),
                false => Ok(()),
            }
        }
        What::Buffer(Buffer::Count { period, every, .. }) => {
            for (property, count) in [("periodCount", *period), ("everyCount", *every)] {
                if count == 0 {
                    return Err(Rule::NotPositive { property });
                }
                if count > MAX_COUNT {
                    let most = MAX_COUNT;
                    return Err(Rule::TooMany {
                        property,
                        count,
                        most,
                    });
                }
            }
            Ok(())
        }
        What::Default { fields, tags } => {
            if fields.is_empty() && tags.is_empty() {
                return Err(Rule::NoDefaults);
            }
            distinct(fields.iter().map(|(name, _)| name))
                .and_then(|()| distinct(tags.iter().map(|(name, _)| name)))
        }
        What::Derivative {
            field, into, unit, ..
        } => {
            if unit.is_zero() {
                return Err(Rule::NotPositive { property: "unit" });
            }
            fits("unit", *unit)?;
            distinct([&*field]).and_then(|()| distinct([&*into]))
        }
        What::Stats { interval, .. } => {
            if interval.is_zero() {
                return Err(Rule::NotPositive {
                    property: "interval",
                });
            }
            if *interval < MIN_INTERVAL {
                return Err(Rule::TooShort {
                    property: "interval",
                    duration: *interval,
                });
            }
            fits("interval", *interval)
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
            ..
        } => {
            if let Aggregate::Percentile(percent) = *function
                && !(0.0..=100.0).contains(&percent)
            {
                return Err(Rule::Percentile(percent));
            }
            distinct([&*field]).and_then(|()| distinct([&*into]))
        }
        What::Eval(eval) => {
            if eval.fields.is_empty() {
                return Err(Rule::NoExpressions);
            }
            for (_, expression) in &eval.fields {
                sound(expression)?;
            }
            distinct(eval.fields.iter().map(|(name, _)| name))?;
            let has = |tag: &&Arc<str>| eval.fields.iter().any(|(name, _)| name == *tag);
            match eval.tags.iter().find(|tag| !has(tag)) {
                Some(tag) => Err(Rule::NoResult(tag.clone())),
                None => distinct(&eval.tags),
            }
        }
        What::Join(join) => {
            fits("tolerance", join.tolerance)?;
            join.on.sort();
            distinct(join.names.iter()).and_then(|()| distinct(join.on.iter()))
        }
        What::Alert(alert) => {
            if alert.levels.iter().all(Option::is_none) {
                return Err(Rule::NoCondition);
            }
            for text in [&alert.id, &alert.message].into_iter().flatten() {
                Template::new(text).map_err(Rule::Template)?;
            }
            let mut conditions = alert.conditions();
            conditions.try_for_each(|(_, condition)| sound(condition))
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
        What::HttpPost { url } => posted_to(url),
        What::Alert(alert) => alert.posts.iter().try_for_each(posted_to),
        _ => Ok(()),
    }
}

fn posted_to(url: &Arc<str>) -> Result<(), Rule> {
    let good = url.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    });
    good.then_some(()).ok_or_else(|| Rule::Url(url.clone()))
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
            What::Eval(eval) => eval.fields.into_iter().map(|(_, part)| part).collect(),
            What::Alert(alert) => alert
                .levels
                .into_iter()
                .chain(alert.resets)
                .flatten()
                .collect(),
            _ => Vec::new(),
        };
        while let Some(part) = pending.pop() {
            match part {
                Expression::Literal(_) | Expression::Duration(_) | Expression::Key(_) => {}
                Expression::Unary(_, operand) | Expression::Match(operand, ..) => {
                    pending.push(*operand);
                }
                Expression::Call(_, arguments) => pending.extend(arguments),
                Expression::Binary(_, left, right) => pending.extend([*left, *right]),
            }
        }
    }
}
