//! Checks pipelines, from the builder or the language.

use super::error::{PipelineError, Rule};
use super::{Node, Pipeline};
use crate::Value;
use crate::expression::Expression;
use crate::node::Input;
use crate::node::definition::AnyDefinition;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A node before the check. The node's inputs come before the node.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) what: AnyDefinition,
    pub(crate) inputs: Vec<usize>,
}

impl Draft {
    /// Returns the name of the node at this index.
    pub(crate) fn name(&self, place: usize) -> String {
        format!("{}{place}", self.what.kind_name())
    }
}

impl Pipeline {
    /// Checks the rules and returns the nodes as a pipeline. O(size).
    pub(crate) fn check(drafts: Vec<Draft>) -> Result<Pipeline, PipelineError> {
        if drafts.is_empty() {
            return Err(PipelineError::Empty);
        }
        let mut checked = CheckedNodes::default();
        let mut drafts = drafts.into_iter().enumerate();
        while let Some((place, mut draft)) = drafts.next() {
            let name: Arc<str> = draft.name(place).into();
            if let Err(rule) = checked.check(&mut draft, &name) {
                dismantle(draft.what);
                drafts.for_each(|(_, draft)| dismantle(draft.what));
                let node = name;
                return Err(PipelineError::Node { node, place, rule });
            }
            let Draft { what, inputs } = draft;
            let of_windows = inputs.iter().any(|&input| checked.windows[input]);
            checked.windows.push(what.gives_windows(of_windows));
            checked.nodes.push(Node { name, what, inputs });
        }
        Ok(Pipeline {
            nodes: checked.nodes,
        })
    }
}

/// The nodes that have been checked.
#[derive(Default)]
struct CheckedNodes {
    nodes: Vec<Node>,
    /// True for each node that sends windows.
    windows: Vec<bool>,
    /// The endpoints, each with the name of its node.
    endpoints: FxHashMap<Arc<str>, Arc<str>>,
}

impl CheckedNodes {
    fn check(&mut self, draft: &mut Draft, name: &Arc<str>) -> Result<(), Rule> {
        let inputs = draft.inputs.iter().map(|&input| Input {
            name: &self.nodes[input].name,
            windows: self.windows[input],
        });
        let inputs: Vec<Input<'_>> = inputs.collect();
        let definition = draft.what.definition_mut();
        definition.check_inputs(&inputs)?;
        let remembers = definition.remembers();
        for expression in definition.expressions() {
            sound(expression)?;
            if !remembers && expression.remembers() {
                return Err(Rule::Remembers);
            }
        }
        definition.check()?;
        let Some(endpoint) = definition.endpoint() else {
            return Ok(());
        };
        match self.endpoints.insert(endpoint.clone(), name.clone()) {
            None => Ok(()),
            Some(other) => Err(Rule::DuplicateEndpoint {
                endpoint: endpoint.clone(),
                other,
            }),
        }
    }
}

impl Input<'_> {
    /// Returns the name of the first input that sends windows.
    pub(crate) fn of_windows(inputs: &[Input<'_>]) -> Option<Arc<str>> {
        let mut inputs = inputs.iter();
        let found = inputs.find(|input| input.windows)?;
        Some(found.name.clone())
    }
}

/// Refuses an expression that cannot be evaluated or written.
fn sound(expression: &Expression) -> Result<(), Rule> {
    if expression.is_too_deep() {
        return Err(Rule::TooDeep);
    }
    if expression.has_infinite_literal() {
        return Err(Rule::NotFinite);
    }
    Ok(())
}

/// Drops a node's expressions without recursion, because an expression that was refused may be too deep for a
/// recursive drop.
fn dismantle(mut what: AnyDefinition) {
    let parts = what.definition_mut().expressions();
    let empty = || Expression::Literal(Value::Boolean(false));
    let mut pending: Vec<Expression> = parts
        .into_iter()
        .map(|expression| std::mem::replace(expression, empty()))
        .collect();
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
