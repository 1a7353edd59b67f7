//! Nodes: their arguments and properties.

mod alert;
mod join;
mod not_here;
mod values;
mod window;

pub(super) use not_here::{FUNCTIONS_NOT_HERE, NOT_HERE};

use super::error::Problem;
use super::lexer::{Span, Token};
use super::parser::{Constant, Parsed, Parser, fail, set};
use super::program::{Chain, Program};
use crate::Value;
use crate::expression::Expression;
use crate::pipeline::{Aggregate, What};
use std::sync::Arc;

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
    Default,
    Derivative,
    Stats,
    Deadman,
    Union,
    Join,
    Alert,
    Log,
    HttpOut,
    HttpPost,
}

/// All nodes, and how they are written.
pub(super) const NODES: [(&str, Kind); 29] = [
    ("from", Kind::From),
    ("where", Kind::Where),
    ("groupBy", Kind::GroupBy),
    ("window", Kind::Window),
    ("count", Kind::Aggregate(Aggregate::Count)),
    ("sum", Kind::Aggregate(Aggregate::Sum)),
    ("mean", Kind::Aggregate(Aggregate::Mean)),
    ("min", Kind::Aggregate(Aggregate::Min)),
    ("max", Kind::Aggregate(Aggregate::Max)),
    ("first", Kind::Aggregate(Aggregate::First)),
    ("last", Kind::Aggregate(Aggregate::Last)),
    ("median", Kind::Aggregate(Aggregate::Median)),
    ("spread", Kind::Aggregate(Aggregate::Spread)),
    ("stddev", Kind::Aggregate(Aggregate::Stddev)),
    ("distinct", Kind::Aggregate(Aggregate::Distinct)),
    ("percentile", Kind::Percentile),
    ("eval", Kind::Eval),
    ("default", Kind::Default),
    ("derivative", Kind::Derivative),
    ("stats", Kind::Stats),
    ("deadman", Kind::Deadman),
    ("union", Kind::Union),
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
const GROUP_BY: &[&str] = &["exclude", "byMeasurement"];
const WINDOW: &[&str] = &[
    "period",
    "every",
    "align",
    "fillPeriod",
    "periodCount",
    "everyCount",
];
const AGGREGATE: &[&str] = &["as", "usePointTimes"];
const EVAL: &[&str] = &["as", "tags", "keep"];
const DEFAULT: &[&str] = &["field", "tag"];
const DERIVATIVE: &[&str] = &["as", "unit", "nonNegative"];
const STATS: &[&str] = &["align"];
const UNION: &[&str] = &["rename"];
const JOIN: &[&str] = &["as", "tolerance", "delimiter", "streamName", "fill", "on"];
const ALERT: &[&str] = &alert::PROPERTIES;
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
            Kind::Aggregate(_) | Kind::Percentile => AGGREGATE,
            Kind::Eval => EVAL,
            Kind::Default => DEFAULT,
            Kind::Derivative => DERIVATIVE,
            Kind::Stats => STATS,
            Kind::Union => UNION,
            Kind::GroupBy => GROUP_BY,
            Kind::Join => JOIN,
            Kind::Alert | Kind::Deadman => ALERT,
            Kind::Log => LOG,
            Kind::Where | Kind::HttpOut | Kind::HttpPost => &[],
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
            Kind::GroupBy => window::group_by(parser),
            Kind::Default => values::default(parser),
            Kind::Derivative => values::derivative(parser),
            Kind::Stats => alert::stats(parser),
            Kind::Deadman => self.deadman(span, inputs),
            Kind::Union => self.union(inputs),
            Kind::Window => window::window(parser, span),
            Kind::Aggregate(function) => {
                let field = parser.argument(Parser::field)?;
                values::aggregate(parser, function, field)
            }
            Kind::Percentile => {
                let (field, percent) = parser.argument(|parser| {
                    let field = parser.field()?;
                    parser.expect(",", "`,` and a number from 0 to 100")?;
                    Ok((field, parser.number()?))
                })?;
                values::aggregate(parser, Aggregate::Percentile(percent), field)
            }
            Kind::Eval => values::eval(parser, span),
            Kind::Join => self.join(span, chain, inputs),
            Kind::Alert => Ok(What::Alert(Box::new(alert::alert(parser)?))),
            Kind::Log => log(parser),
            Kind::HttpOut => {
                let endpoint = parser.argument(Parser::string)?;
                Ok(What::HttpOut { endpoint })
            }
            Kind::HttpPost => {
                let empty = parser.following == Token::Symbol(")");
                if empty || !parser.is("(") {
                    let what = "a URL, as in `http_post('http://host/path')`; there is no file with endpoints";
                    return missing("http_post", what, span);
                }
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
}

fn log(parser: &mut Parser<'_>) -> Parsed<What> {
    let mut prefix = None;
    parser.arguments(|parser| {
        let span = parser.span;
        set(&mut prefix, parser.string()?, "prefix", span)
    })?;
    while let Some((property, span)) = parser.property(LOG)? {
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
    /// Empty parentheses, or none.
    pub(super) fn nothing(&mut self) -> Parsed<()> {
        match self.eat("(") {
            true => self.expect(")", "`)`"),
            false => Ok(()),
        }
    }

    /// A number, string or boolean.
    fn value(&mut self) -> Parsed<Value> {
        let span = self.span;
        match self.constant()? {
            Some(Constant::Expression(Expression::Literal(value))) => Ok(value),
            Some(Constant::Expression(Expression::Duration(nanos))) => Ok(Value::Integer(nanos)),
            _ => {
                let found = "something else".to_owned();
                let expected = "a number, a string, TRUE or FALSE";
                fail(Problem::Unexpected { expected, found }, span)
            }
        }
    }

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
