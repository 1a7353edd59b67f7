//! Statements and chains.

use super::error::{Problem, nearest};
use super::lexer::{Span, Token};
use super::nodes::{self, Kind, NODES, NOT_HERE};
use super::parser::{Parsed, Parser, fail};
use crate::expression::is_reserved;
use crate::pipeline::{Draft, GroupBy, Pipeline, PipelineError, What};
use rustc_hash::FxHashMap;

/// A program as far as it has been read.
#[derive(Debug)]
pub(super) struct Program<'t> {
    pub(super) parser: Parser<'t>,
    pub(super) drafts: Vec<Draft>,
    /// Where the name of each node stands.
    spans: Vec<Span>,
    vars: FxHashMap<&'t str, Var>,
}

/// A chain with a name.
#[derive(Debug)]
struct Var {
    /// Its last node.
    place: usize,
    used: bool,
    span: Span,
}

/// A chain as far as it has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<'t> {
    /// Its last node.
    pub(super) place: usize,
    /// The var with which it begins, if it does.
    pub(super) var: Option<&'t str>,
    /// Its `from`, as long as properties of it may follow.
    from: Option<usize>,
}

/// The pipeline of a whole text.
pub(super) fn parse(text: &str) -> Parsed<Pipeline> {
    let mut program = Program {
        parser: Parser::new(text),
        drafts: Vec::new(),
        spans: Vec::new(),
        vars: FxHashMap::default(),
    };
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

/// What is said of a node or property of kapacitor that is not here.
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
            } else {
                return Ok(chain);
            }
        }
    }

    /// `| from(…)` or `.from(…)`.
    fn stream(&mut self, span: Span) -> Parsed<Chain<'t>> {
        let separated = self.parser.is("|") || self.parser.is(".");
        if !separated || self.parser.following != Token::Word("from") {
            return fail(Problem::Stream, span);
        }
        self.parser.advance();
        let (_, span) = self.parser.advance();
        let what = self.from()?;
        let place = self.push(what, Vec::new(), span);
        Ok(Chain {
            place,
            var: None,
            from: Some(place),
        })
    }

    /// A node after `|`.
    fn piped(&mut self, chain: &mut Chain<'t>) -> Parsed<()> {
        let (name, span) = self.parser.word("a node, such as `window`")?;
        if let Some(kind) = Kind::named(name) {
            return self.node(kind, span, chain);
        }
        let name = name.to_owned();
        if let Some(problem) = not_here(&name) {
            return fail(problem, span);
        }
        let problem = match NODES.iter().find(|(_, kind)| kind.has(&name)) {
            Some((node, _)) => Problem::PropertyAsNode {
                property: name,
                node,
            },
            None => Problem::UnknownNode {
                like: nearest(&name, NODES.iter().map(|(node, _)| *node)),
                name,
            },
        };
        fail(problem, span)
    }

    /// A property of `from`, or a node in the older spelling, after `.`.
    fn dotted(&mut self, chain: &mut Chain<'t>) -> Parsed<()> {
        let (name, span) = self.parser.word("a property, such as `as`")?;
        if chain.from.is_some() && name == "groupByMeasurement" {
            self.parser.nothing()?;
            if let What::GroupBy(by) = &mut self.drafts[chain.place].what {
                by.measurement = true;
                return Ok(());
            }
            let by = GroupBy {
                measurement: true,
                ..GroupBy::default()
            };
            chain.place = self.push(What::GroupBy(by), vec![chain.place], span);
            return Ok(());
        }
        if let Some(from) = chain.from
            && let Some(property) = nodes::FROM.iter().find(|property| **property == name)
        {
            return self.property_of_from(from, property, span);
        }
        if let Some(kind) = Kind::named(name) {
            if !matches!(kind, Kind::Where | Kind::GroupBy) {
                chain.from = None;
            }
            return self.node(kind, span, chain);
        }
        let what = &self.drafts[chain.place].what;
        let node = what.kind_name();
        let properties = Kind::named(node).map_or(&[][..], Kind::properties);
        if let Some(problem) = not_here(name) {
            return fail(problem, span);
        }
        let nodes = NODES.iter().map(|(node, _)| *node);
        let problem = Problem::UnknownProperty {
            node,
            like: nearest(name, properties.iter().copied().chain(nodes)),
            name: name.into(),
        };
        fail(problem, span)
    }

    fn node(&mut self, kind: Kind, span: Span, chain: &mut Chain<'t>) -> Parsed<()> {
        let mut inputs = vec![chain.place];
        let what = self.what(kind, span, chain, &mut inputs)?;
        chain.place = self.push(what, inputs, span);
        Ok(())
    }

    pub(super) fn push(&mut self, what: What, inputs: Vec<usize>, span: Span) -> usize {
        self.drafts.push(Draft { what, inputs });
        self.spans.push(span);
        self.drafts.len() - 1
    }

    /// The last node of a var's chain.
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
}
