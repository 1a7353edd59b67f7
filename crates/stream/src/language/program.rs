//! The part of a program that has been read: its nodes and its vars.

use super::error::{Problem, nearest};
use super::parser::{Parsed, Parser, fail};
use super::span::Span;
use crate::node::definition::AnyDefinition;
use crate::pipeline::Draft;
use rustc_hash::FxHashMap;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Program<'t> {
    pub(crate) parser: Parser<'t>,
    pub(crate) drafts: Vec<Draft>,
    /// The position of each node's name.
    pub(super) spans: Vec<Span>,
    pub(super) vars: FxHashMap<&'t str, Var>,
}

/// A chain with a name.
#[derive(Debug)]
pub(super) struct Var {
    /// The index of the last node.
    pub(super) place: usize,
    pub(super) used: bool,
    pub(super) span: Span,
}

/// The name of a node in a text, followed by its arguments and properties.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    /// The name in the text.
    pub(crate) name: &'t str,
    /// The canonical name.
    pub(crate) node: &'static str,
    pub(crate) span: Span,
    /// The var with which the chain begins, if it begins with one.
    pub(crate) var: Option<&'t str>,
    /// The indices of the node's inputs.
    pub(crate) inputs: Vec<usize>,
}

impl Call<'_> {
    /// Fails, because a required part of the node is missing.
    pub(crate) fn missing<T>(&self, what: &'static str) -> Parsed<T> {
        let node = self.node;
        fail(Problem::Missing { node, what }, self.span)
    }
}

impl<'t> Program<'t> {
    pub(super) fn new(text: &'t str) -> Program<'t> {
        Program {
            parser: Parser::new(text),
            drafts: Vec::new(),
            spans: Vec::new(),
            vars: FxHashMap::default(),
        }
    }

    /// Adds a node whose name is at `span`. Returns its index.
    pub(crate) fn push(
        &mut self,
        what: impl Into<AnyDefinition>,
        inputs: Vec<usize>,
        span: Span,
    ) -> usize {
        let what = what.into();
        self.drafts.push(Draft { what, inputs });
        self.spans.push(span);
        self.drafts.len() - 1
    }

    /// Returns the last node of a var's chain, and marks the var as used.
    pub(super) fn used(&mut self, name: &str, span: Span) -> Parsed<usize> {
        if let Some(var) = self.vars.get_mut(name) {
            var.used = true;
            return Ok(var.place);
        }
        let vars = self.vars.keys().copied().chain(["stream"]);
        let problem = Problem::UnknownVar {
            like: nearest(name, vars).map(Into::into),
            name: name.into(),
        };
        fail(problem, span)
    }

    /// Reads the vars of other chains in parentheses, which become inputs of the node, and returns their
    /// names. `special` is called for a word that is not a var, and returns true if it accepts the word.
    pub(crate) fn others(
        &mut self,
        call: &mut Call<'t>,
        mut special: impl FnMut(&mut Parser<'t>, &'t str) -> Parsed<bool>,
    ) -> Parsed<Vec<&'t str>> {
        let mut others = Vec::new();
        self.parser.arguments(|parser| {
            let (word, span) = parser.word("the name of a var")?;
            if !special(parser, word)? {
                others.push((word, span));
            }
            Ok(())
        })?;
        for (name, span) in &others {
            call.inputs.push(self.used(name, *span)?);
        }
        Ok(others.into_iter().map(|(name, _)| name).collect())
    }
}
