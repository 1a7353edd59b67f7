//! Nodes: their arguments and properties.

use super::error::Problem;
use super::lexer::{Span, Token};
use super::parser::{Parsed, Parser, fail, set};
use super::program::{Chain, Program};
use crate::pipeline::{Aggregate, Alert, What};
use std::sync::Arc;
use std::time::Duration;

/// What a node's name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    From,
    Where,
    GroupBy,
    Window,
    Aggregate(Aggregate),
    Percentile,
    Eval,
    Join,
    Alert,
    Log,
    HttpOut,
    HttpPost,
}

/// All nodes, and how they are written.
pub(super) const NODES: [(&str, Kind); 18] = [
    ("from", Kind::From),
    ("where", Kind::Where),
    ("groupBy", Kind::GroupBy),
    ("window", Kind::Window),
    ("count", Kind::Aggregate(Aggregate::Count)),
    ("sum", Kind::Aggregate(Aggregate::Sum)),
    ("mean", Kind::Aggregate(Aggregate::Mean)),
    ("min", Kind::Aggregate(Aggregate::Min)),
    ("max", Kind::Aggregate(Aggregate::Max)),
    ("percentile", Kind::Percentile),
    ("eval", Kind::Eval),
    ("join", Kind::Join),
    ("alert", Kind::Alert),
    ("log", Kind::Log),
    ("http_out", Kind::HttpOut),
    ("httpOut", Kind::HttpOut),
    ("http_post", Kind::HttpPost),
    ("httpPost", Kind::HttpPost),
];

/// Properties of `from`; what else follows it in the style of a property is a node.
pub(super) const FROM: &[&str] = &["database", "retentionPolicy", "measurement"];
const WINDOW: &[&str] = &["period", "every"];
const AS: &[&str] = &["as"];
const JOIN: &[&str] = &["as", "tolerance"];
const ALERT: &[&str] = &["info", "warn", "crit", "id"];
const LOG: &[&str] = &["prefix"];

impl Kind {
    pub(super) fn named(name: &str) -> Option<Kind> {
        let (_, kind) = NODES.iter().find(|(node, _)| *node == name)?;
        Some(*kind)
    }

    pub(super) fn properties(self) -> &'static [&'static str] {
        match self {
            Kind::From => FROM,
            Kind::Window => WINDOW,
            Kind::Aggregate(_) | Kind::Percentile | Kind::Eval => AS,
            Kind::Join => JOIN,
            Kind::Alert => ALERT,
            Kind::Log => LOG,
            Kind::Where | Kind::GroupBy | Kind::HttpOut | Kind::HttpPost => &[],
        }
    }

    pub(super) fn has(self, property: &str) -> bool {
        self.properties().contains(&property)
    }
}

impl<'t> Program<'t> {
    /// What a node does. `span` is its name, which has been taken. A join adds its other input.
    pub(super) fn what(
        &mut self,
        kind: Kind,
        span: Span,
        chain: &Chain<'t>,
        inputs: &mut Vec<usize>,
    ) -> Parsed<What> {
        let parser = &mut self.parser;
        match kind {
            Kind::From => fail(Problem::From, span),
            Kind::Where => parser.argument(Parser::condition).map(What::Where),
            Kind::GroupBy => parser.list(Parser::field).map(What::GroupBy),
            Kind::Window => window(parser, span),
            Kind::Aggregate(function) => {
                let field = parser.argument(Parser::field)?;
                aggregate(parser, function, field)
            }
            Kind::Percentile => {
                let (field, percent) = parser.argument(|parser| {
                    let field = parser.field()?;
                    parser.expect(",", "`,` and a number from 0 to 100")?;
                    Ok((field, parser.number()?))
                })?;
                aggregate(parser, Aggregate::Percentile(percent), field)
            }
            Kind::Eval => eval(parser, span),
            Kind::Join => self.join(span, chain, inputs),
            Kind::Alert => alert(parser),
            Kind::Log => log(parser),
            Kind::HttpOut => {
                let endpoint = parser.argument(Parser::string)?;
                Ok(What::HttpOut { endpoint })
            }
            Kind::HttpPost => {
                let url = parser.argument(Parser::string)?;
                Ok(What::HttpPost { url })
            }
        }
    }

    /// `from`, whose name has been taken. Its properties follow as long as the chain allows them.
    pub(super) fn from(&mut self) -> Parsed<What> {
        let mut measurement = None;
        self.parser.arguments(|parser| {
            let span = parser.span;
            let name = parser.string()?;
            let takes = "one measurement";
            match measurement.replace(name) {
                None => Ok(()),
                Some(_) => fail(
                    Problem::Surplus {
                        node: "from",
                        takes,
                    },
                    span,
                ),
            }
        })?;
        Ok(What::From {
            database: None,
            policy: None,
            measurement,
        })
    }

    /// A property of a `from` that has been read.
    pub(super) fn property_of_from(
        &mut self,
        place: usize,
        property: &'static str,
        span: Span,
    ) -> Parsed<()> {
        let value = self.parser.argument(Parser::string)?;
        let What::From {
            database,
            policy,
            measurement,
        } = &mut self.drafts[place].what
        else {
            unreachable!("chains remember only a `from`");
        };
        let slot = match property {
            "database" => database,
            "retentionPolicy" => policy,
            _ => measurement,
        };
        set(slot, value, property, span)
    }

    fn join(&mut self, span: Span, chain: &Chain<'t>, inputs: &mut Vec<usize>) -> Parsed<What> {
        let (mut other, mut tolerance, mut names) = (None, None, None);
        self.parser.arguments(|parser| {
            let (word, span) = parser.word("the name of a var")?;
            if word == "tolerance" && matches!(parser.token, Token::Duration(_)) {
                return set(&mut tolerance, parser.duration()?, "tolerance", span);
            }
            match other.replace((word, span)) {
                None => Ok(()),
                Some(_) => fail(
                    Problem::Surplus {
                        node: "join",
                        takes: "one other chain: join more by joining again",
                    },
                    span,
                ),
            }
        })?;
        let Some((other, span_of_other)) = other else {
            return missing("join", "the var of another chain: `m1 | join(m2)`", span);
        };
        inputs.push(self.used(other, span_of_other)?);
        let parser = &mut self.parser;
        while let Some((property, span)) = parser.property(JOIN) {
            match property {
                "as" => set(&mut names, parser.names(2, span)?, "as", span)?,
                _ => {
                    let duration = parser.argument(Parser::duration)?;
                    set(&mut tolerance, duration, "tolerance", span)?;
                }
            }
        }
        let names = names.unwrap_or_else(|| vec![chain.var.unwrap_or("left").into(), other.into()]);
        let prefixes = names.try_into();
        Ok(What::Join {
            prefixes: prefixes.unwrap_or_else(|names| unreachable!("two names, not {names:?}")),
            tolerance: tolerance.unwrap_or_default(),
        })
    }
}

fn window(parser: &mut Parser<'_>, span: Span) -> Parsed<What> {
    let (mut period, mut every) = (None::<Duration>, None);
    parser.arguments(|parser| {
        let span = parser.span;
        if parser.is_word("every") {
            parser.advance();
            return set(&mut every, parser.duration()?, "every", span);
        }
        set(&mut period, parser.duration()?, "period", span)
    })?;
    while let Some((property, span)) = parser.property(WINDOW) {
        let slot = if property == "period" {
            &mut period
        } else {
            &mut every
        };
        set(slot, parser.argument(Parser::duration)?, property, span)?;
    }
    match period {
        Some(period) => Ok(What::Window {
            period,
            every: every.unwrap_or(period),
        }),
        None => missing("window", "a period: `window(10s)` or `.period(10s)`", span),
    }
}

/// The function of a field, with the name of its result if there is one.
fn aggregate(parser: &mut Parser<'_>, function: Aggregate, field: Arc<str>) -> Parsed<What> {
    let mut names = None;
    while let Some((_, span)) = parser.property(AS) {
        set(&mut names, parser.names(1, span)?, "as", span)?;
    }
    let name = names.and_then(|names| names.into_iter().next());
    Ok(What::Aggregate {
        function,
        field,
        into: name.unwrap_or_else(|| function.name().into()),
    })
}

fn eval(parser: &mut Parser<'_>, span: Span) -> Parsed<What> {
    let expressions = parser.list(Parser::condition)?;
    let mut names = None;
    while let Some((_, span)) = parser.property(AS) {
        set(
            &mut names,
            parser.names(expressions.len(), span)?,
            "as",
            span,
        )?;
    }
    match names {
        Some(names) => Ok(What::Eval(names.into_iter().zip(expressions).collect())),
        None => missing(
            "eval",
            "a name for each result: `eval(value * 2).as('double')`",
            span,
        ),
    }
}

fn alert(parser: &mut Parser<'_>) -> Parsed<What> {
    let nothing = |parser: &mut Parser<'_>| {
        let takes = "nothing in parentheses: its conditions follow, as in `.crit(value > 10)`";
        fail(
            Problem::Surplus {
                node: "alert",
                takes,
            },
            parser.span,
        )
    };
    parser.arguments(nothing)?;
    let mut alert = Alert::new();
    while let Some((property, span)) = parser.property(ALERT) {
        let slot = match property {
            "id" => {
                set(&mut alert.id, parser.argument(Parser::string)?, "id", span)?;
                continue;
            }
            "info" => &mut alert.info,
            "warn" => &mut alert.warn,
            _ => &mut alert.crit,
        };
        set(slot, parser.argument(Parser::condition)?, property, span)?;
    }
    Ok(What::Alert(alert))
}

fn log(parser: &mut Parser<'_>) -> Parsed<What> {
    let mut prefix = None;
    parser.arguments(|parser| {
        let span = parser.span;
        set(&mut prefix, parser.string()?, "prefix", span)
    })?;
    while let Some((property, span)) = parser.property(LOG) {
        set(
            &mut prefix,
            parser.argument(Parser::string)?,
            property,
            span,
        )?;
    }
    Ok(What::Log {
        prefix: prefix.unwrap_or_default(),
    })
}

fn missing<T>(node: &'static str, what: &'static str, span: Span) -> Parsed<T> {
    fail(Problem::Missing { node, what }, span)
}

impl<'t> Parser<'t> {
    /// Any number of arguments of one kind.
    fn list<T>(&mut self, one: impl Fn(&mut Parser<'t>) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        self.arguments(|parser| {
            list.push(one(parser)?);
            Ok(())
        })?;
        Ok(list)
    }

    /// The names in an `as`; `span` is the property's.
    fn names(&mut self, expected: usize, span: Span) -> Parsed<Vec<Arc<str>>> {
        let names = self.list(Parser::string)?;
        let found = names.len();
        match found == expected {
            true => Ok(names),
            false => fail(Problem::Names { expected, found }, span),
        }
    }
}
