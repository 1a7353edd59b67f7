//! `join`: joins points of several inputs that have the same time.
//!
//! Times are rounded to the nearest multiple of the tolerance. Points of one group with the same rounded time are
//! joined: the first point of each input with the first points of the others, and so on. When every input has passed a
//! time, or all inputs have ended, points without a partner are filled, or counted and left out. If too many points
//! wait, the oldest are also left out. With `.on`, [`matching`] decides which points are joined.

mod matching;
mod operator;

use crate::Value;
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Program, Token, set};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Input, Kind};
use crate::pipeline::{Chain, Rule, Time, Writer, distinct, fits};
use operator::JoinOperator;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["join"],
    properties: &["as", "tolerance", "delimiter", "streamName", "fill", "on"],
    parse,
};

/// Joins the points of several inputs whose times belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// The prefix of the fields of each input.
    pub names: Vec<Arc<str>>,
    /// Points are joined if their times round to the same multiple of the tolerance; with zero, if their times are
    /// equal.
    pub tolerance: Duration,
    /// The separator between a prefix and the name of a field.
    pub delimiter: Arc<str>,
    /// The measurement of the joined points; `None` for the first point's measurement.
    pub stream_name: Option<Arc<str>>,
    /// The treatment of a point without a partner.
    pub fill: Fill,
    /// Inputs that are grouped by these tags alone are joined with each group of inputs that are grouped by more tags.
    pub on: Vec<Arc<str>>,
}

/// The treatment of a point without a partner in one of the inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fill {
    /// The point is left out.
    #[default]
    None,
    /// The partner's fields are missing.
    Null,
    /// The partner's fields have this value.
    Value(Value),
}

impl Join {
    /// Creates a join of inputs whose fields get these prefixes, followed by a dot.
    pub fn new<T: Into<Arc<str>>>(names: impl IntoIterator<Item = T>, tolerance: Duration) -> Join {
        Join {
            names: names.into_iter().map(Into::into).collect(),
            tolerance,
            delimiter: ".".into(),
            stream_name: None,
            fill: Fill::None,
            on: Vec::new(),
        }
    }
}

impl<'p> Chain<'p> {
    /// Adds a `join` of this and another chain, whose fields get these prefixes.
    pub fn join<T: Into<Arc<str>>>(
        self,
        other: impl Into<Chain<'p>>,
        prefixes: [T; 2],
        tolerance: Duration,
    ) -> Chain<'p> {
        self.join_with([other.into()], Join::new(prefixes, tolerance))
    }

    /// Adds a `join` of this and other chains, with its properties.
    pub fn join_with(self, others: impl IntoIterator<Item = Chain<'p>>, join: Join) -> Chain<'p> {
        self.then_with(others, join)
    }
}

fn parse<'t>(program: &mut Program<'t>, call: &mut Call<'t>) -> Parsed<AnyDefinition> {
    let (mut tolerance, mut names) = (None, None);
    let span = call.span;
    let others = program.others(call, |parser, word| {
        let given = word == "tolerance" && matches!(parser.token, Token::Duration(_));
        if given {
            set(&mut tolerance, parser.duration()?, "tolerance", span)?;
        }
        Ok(given)
    })?;
    if others.is_empty() {
        return call.missing("the var of another chain: `m1 | join(m2)`");
    }
    let (mut delimiter, mut stream_name, mut fill, mut on) = (None, None, None, None);
    let parser = &mut program.parser;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut names, parser.names(call.inputs.len(), span)?, "as", span)?,
            "on" => set(&mut on, parser.list(Parser::string)?, "on", span)?,
            "fill" => set(&mut fill, parser.argument(filling)?, "fill", span)?,
            "tolerance" => {
                let duration = parser.argument(Parser::duration)?;
                set(&mut tolerance, duration, "tolerance", span)?;
            }
            _ => {
                let text = parser.argument(Parser::string)?;
                let slot = match property {
                    "delimiter" => &mut delimiter,
                    _ => &mut stream_name,
                };
                set(slot, text, property, span)?;
            }
        }
    }
    let names = names.unwrap_or_else(|| {
        let first = std::iter::once(call.var.unwrap_or("left"));
        first.chain(others).map(Into::into).collect()
    });
    Ok(AnyDefinition::from(Join {
        delimiter: delimiter.unwrap_or_else(|| ".".into()),
        stream_name,
        fill: fill.unwrap_or_default(),
        on: on.unwrap_or_default(),
        ..Join::new(names, tolerance.unwrap_or_default())
    }))
}

/// Parses the value that fills the fields of an input without a partner.
fn filling(parser: &mut Parser<'_>) -> Parsed<Fill> {
    Ok(match parser.value()? {
        Value::Text(word) if &*word == "null" => Fill::Null,
        Value::Text(word) if &*word == "none" => Fill::None,
        value => Fill::Value(value),
    })
}

impl Definition for Join {
    fn name(&self) -> &'static str {
        "join"
    }

    fn gives_windows(&self, _: bool) -> bool {
        false
    }

    fn check_inputs(&self, inputs: &[Input<'_>]) -> Result<(), Rule> {
        let (inputs_count, names) = (inputs.len(), self.names.len());
        if names != inputs_count {
            let inputs = inputs_count;
            return Err(Rule::JoinNames { inputs, names });
        }
        match Input::of_windows(inputs) {
            Some(input) => Err(Rule::JoinOfWindows { input }),
            None => Ok(()),
        }
    }

    fn check(&mut self) -> Result<(), Rule> {
        fits("tolerance", self.tolerance)?;
        self.on.sort();
        distinct(&self.names)?;
        distinct(&self.on)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let tolerance = format!("tolerance {}", Time(self.tolerance));
        out.others((!self.tolerance.is_zero()).then_some(&tolerance))?;
        out.names("as", &self.names)?;
        out.text("delimiter", (*self.delimiter != *".").then_some(&self.delimiter))?;
        out.text("streamName", self.stream_name.as_ref())?;
        match &self.fill {
            Fill::None => {}
            Fill::Null => out.text("fill", Some(&"null".into()))?,
            Fill::Value(value) => out.property("fill", &[&Expression::Literal(value.clone())])?,
        }
        match self.on.is_empty() {
            true => Ok(()),
            false => out.names("on", &self.on),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(JoinOperator::new(self.clone(), context.limits))
    }
}
