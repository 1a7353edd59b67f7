//! Statements and chains.

use super::error::{LanguageError, Problem, nearest};
use super::lexer::Token;
use super::not_here::NOT_HERE;
use super::parser::{Parsed, fail};
use super::program::{Call, Program, Var};
use super::span::Span;
use crate::expression::{is_reserved, is_word_part};
use crate::node::Kind;
use crate::nodes::{self, filter, from, group_by};
use crate::pipeline::{GroupBy, Pipeline, PipelineError};

/// The part of a chain that has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<'t> {
    /// The index of the last node.
    pub(super) place: usize,
    /// The var with which the chain begins, if it begins with one.
    pub(super) var: Option<&'t str>,
    /// The index of the chain's `from`, as long as properties of the `from` may follow.
    from: Option<usize>,
}

/// Parses a pipeline. O(text).
///
/// # Errors
/// The first error with its position.
pub fn parse(text: &str) -> Result<Pipeline, LanguageError> {
    pipeline(text).map_err(|failure| LanguageError::new(text, *failure))
}

fn pipeline(text: &str) -> Parsed<Pipeline> {
    let mut program = Program::new(text);
    while program.parser.token != Token::End {
        program.statement()?;
    }
    let unused = program.vars.iter().filter(|(_, var)| !var.used);
    if let Some((name, var)) = unused.min_by_key(|(_, var)| var.span.start) {
        return fail(Problem::VarUnused((*name).into()), var.span);
    }
    let end = program.parser.span;
    Pipeline::check(program.drafts).map_err(|error| {
        let span = match &error {
            PipelineError::Empty => end,
            PipelineError::Node { place, .. } => program.spans[*place],
        };
        Box::new((error.into(), span))
    })
}

/// Returns the error for a node or property of kapacitor that is missing here.
fn not_here(name: &str) -> Option<Problem> {
    let (_, instead) = NOT_HERE.iter().find(|(known, _)| *known == name)?;
    let node = name.to_owned();
    Some(Problem::NotHere { node, instead })
}

impl<'t> Program<'t> {
    fn statement(&mut self) -> Parsed<()> {
        let is_var = self.parser.token == Token::Word("var");
        if is_var {
            self.parser.advance();
            return self.var();
        }
        let (begin, nodes) = (self.parser.span, self.drafts.len());
        match self.chain()?.var {
            Some(name) if self.drafts.len() == nodes => fail(Problem::Alone(name.into()), begin),
            _ => Ok(()),
        }
    }

    fn var(&mut self) -> Parsed<()> {
        let (name, span) = self.parser.word("a name")?;
        if is_reserved(name) || name == "stream" || name == "var" {
            return fail(Problem::VarReserved(name.into()), span);
        }
        if self.vars.contains_key(name) || self.parser.constants.contains_key(name) {
            return fail(Problem::VarTwice(name.into()), span);
        }
        self.parser.expect("=", "`=`")?;
        if let Some(constant) = self.parser.constant()? {
            if self.parser.constants.insert(name, constant).is_some() {
                return fail(Problem::VarTwice(name.into()), span);
            }
            return Ok(());
        }
        let place = self.chain()?.place;
        let used = false;
        self.vars.insert(name, Var { place, used, span });
        Ok(())
    }

    fn chain(&mut self) -> Parsed<Chain<'t>> {
        let expected = "a chain, which begins with `stream` or the name of a var";
        let (word, span) = self.parser.word(expected)?;
        let mut chain = match word {
            "stream" => self.stream(span)?,
            _ if !self.vars.contains_key(word)
                && let Some(problem) = not_here(word) =>
            {
                return fail(problem, span);
            }
            _ => Chain {
                place: self.used(word, span)?,
                var: Some(word),
                from: None,
            },
        };
        loop {
            self.parser.quiet()?;
            if self.parser.eat("|") {
                chain.from = None;
                self.piped(&mut chain)?;
            } else if self.parser.eat(".") {
                self.dotted(&mut chain)?;
            } else if self.parser.token == Token::Bad(Problem::Character('@')) {
                return self.user_defined();
            } else {
                return Ok(chain);
            }
        }
    }

    /// Refuses `@name(…)`, a user-defined function that kapacitor runs in another process.
    fn user_defined<T>(&self) -> Parsed<T> {
        let rest = self.parser.rest();
        let name = rest.split(|c| !is_word_part(c)).next().unwrap_or(rest);
        if name.is_empty() {
            return fail(Problem::Character('@'), self.parser.span);
        }
        let node = format!("@{name}()");
        let instead = "functions of one's own are missing; `http_post` the points to a program that computes them and writes them to /write";
        fail(Problem::NotHere { node, instead }, self.parser.span)
    }

    /// Parses `| from(…)` or `.from(…)`.
    fn stream(&mut self, span: Span) -> Parsed<Chain<'t>> {
        let separated = self.parser.is("|") || self.parser.is(".");
        if !separated || self.parser.following != Token::Word("from") {
            return fail(Problem::Stream, span);
        }
        self.parser.advance();
        let (_, span) = self.parser.advance();
        let what = from::begin(&mut self.parser)?;
        let place = self.push(what, Vec::new(), span);
        Ok(Chain {
            place,
            var: None,
            from: Some(place),
        })
    }

    /// Parses a node after `|`.
    fn piped(&mut self, chain: &mut Chain<'t>) -> Parsed<()> {
        let (name, span) = self.parser.word("a node, such as `window`")?;
        if let Some(kind) = nodes::named(name) {
            return self.node(kind, name, span, chain);
        }
        if let Some(problem) = not_here(name) {
            return fail(problem, span);
        }
        let mut kinds = nodes::KINDS.iter();
        let problem = match kinds.find(|kind| kind.properties.contains(&name)) {
            Some(kind) => Problem::PropertyAsNode {
                property: name.into(),
                node: kind.names[0],
            },
            None => Problem::UnknownNode {
                like: nearest(name, nodes::names()),
                name: name.into(),
            },
        };
        fail(problem, span)
    }

    /// Parses a property of `from`, or a node in the older spelling, after `.`.
    fn dotted(&mut self, chain: &mut Chain<'t>) -> Parsed<()> {
        let (name, span) = self.parser.word("a property, such as `as`")?;
        if chain.from.is_some() && name == "groupByMeasurement" {
            self.parser.nothing()?;
            let last = &mut self.drafts[chain.place].what;
            if let Some(by) = last.get_mut::<GroupBy>() {
                by.measurement = true;
                return Ok(());
            }
            let by = GroupBy {
                measurement: true,
                ..GroupBy::default()
            };
            chain.place = self.push(by, vec![chain.place], span);
            return Ok(());
        }
        let mut properties = from::KIND.properties.iter();
        if let Some(from) = chain.from
            && let Some(property) = properties.find(|property| **property == name)
        {
            let what = &mut self.drafts[from].what;
            return from::property(&mut self.parser, what, property, span);
        }
        if let Some(kind) = nodes::named(name) {
            let of_from = [&filter::KIND, &group_by::KIND];
            if !of_from.iter().any(|known| known.names == kind.names) {
                chain.from = None;
            }
            return self.node(kind, name, span, chain);
        }
        let node = self.drafts[chain.place].what.kind_name();
        let properties = nodes::named(node).map_or(&[][..], |kind| kind.properties);
        if let Some(problem) = not_here(name) {
            return fail(problem, span);
        }
        let problem = Problem::UnknownProperty {
            node,
            like: nearest(name, properties.iter().copied().chain(nodes::names())),
            name: name.into(),
        };
        fail(problem, span)
    }

    fn node(
        &mut self,
        kind: &Kind,
        name: &'t str,
        span: Span,
        chain: &mut Chain<'t>,
    ) -> Parsed<()> {
        let mut call = Call {
            name,
            node: kind.names[0],
            span,
            var: chain.var,
            inputs: vec![chain.place],
        };
        let what = (kind.parse)(self, &mut call)?;
        chain.place = self.push(what, call.inputs, span);
        Ok(())
    }
}
