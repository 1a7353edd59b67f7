//! Nodes: their arguments and properties.

use super::error::Problem;
use super::lexer::{Span, Token};
use super::parser::{Constant, Parsed, Parser, fail, set};
use super::program::{Chain, Program};
use crate::Value;
use crate::expression::Expression;
use crate::pipeline::{Added, Aggregate, Alert, Buffer, Eval, Fill, GroupBy, Join, Keep, What};
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
    Default,
    Derivative,
    Union,
    Join,
    Alert,
    Log,
    HttpOut,
    HttpPost,
}

/// All nodes, and how they are written.
pub(super) const NODES: [(&str, Kind); 27] = [
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
    ("union", Kind::Union),
    ("join", Kind::Join),
    ("alert", Kind::Alert),
    ("log", Kind::Log),
    ("http_out", Kind::HttpOut),
    ("httpOut", Kind::HttpOut),
    ("http_post", Kind::HttpPost),
    ("httpPost", Kind::HttpPost),
];

/// Nodes of kapacitor that are not here, and what to do without them.
pub(super) const NOT_HERE: [(&str, &str); 38] = [
    ("autoscale", "act on what an `http_post` sends"),
    ("barrier", "windows go by the points' time alone"),
    (
        "batch",
        "there is no database to query; write the points here",
    ),
    ("bottom", "use `min`, or `percentile` for a rank"),
    ("changeDetect", "use an `alert` with `.stateChangesOnly()`"),
    ("combine", "join the streams by name instead"),
    ("cumulativeSum", "use `sum` of a window"),
    ("deadman", "watch the edges' counters at /metrics"),
    ("delete", "`eval(…).keep(…)` says what is kept"),
    ("difference", "use `derivative`"),
    ("ec2Autoscale", "act on what an `http_post` sends"),
    ("elapsed", "use `derivative`"),
    ("flatten", "use `eval`, or group by the tag"),
    ("holtWinters", "there are no forecasts"),
    ("holtWintersWithFit", "there are no forecasts"),
    ("influxdbOut", "post the points with `http_post`"),
    ("influxDBOut", "post the points with `http_post`"),
    ("k8sAutoscale", "act on what an `http_post` sends"),
    ("kapacitorLoopback", "write the points to this server again"),
    ("mode", "use `median`"),
    (
        "movingAverage",
        "use `mean` of `window().periodCount(N).everyCount(1)`",
    ),
    ("noOp", "leave it out"),
    ("sample", "use a window, and `first` of it"),
    ("scraper", "let an agent write the points"),
    ("shift", "times stay what they are"),
    ("sideload", "use `default` for fields that are missing"),
    ("stateCount", "use an `alert` with `.durationField('…')`"),
    ("stateDuration", "use an `alert` with `.durationField('…')`"),
    ("stats", "the counters of nodes are at /tasks and /metrics"),
    ("swarmAutoscale", "act on what an `http_post` sends"),
    ("top", "use `max`, or `percentile` for a rank"),
    ("trickle", "aggregate the window"),
    ("exec", "act on what an `http_post` sends"),
    ("email", "act on what `.post('URL')` of an `alert` sends"),
    ("slack", "act on what `.post('URL')` of an `alert` sends"),
    ("tcp", "use `.post('URL')` of an `alert`"),
    ("details", "use `.message('…')`"),
    (
        "quiet",
        "what a node leaves out is counted, and logged at most once in ten seconds",
    ),
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
const EVAL: &[&str] = &["as", "keep", "tags", "quiet"];
const DEFAULT: &[&str] = &["field", "tag"];
const DERIVATIVE: &[&str] = &["as", "unit", "nonNegative"];
const UNION: &[&str] = &["rename"];
const JOIN: &[&str] = &["as", "tolerance", "delimiter", "streamName", "fill", "on"];
const ALERT: &[&str] = &[
    "info",
    "warn",
    "crit",
    "infoReset",
    "warnReset",
    "critReset",
    "id",
    "message",
    "details",
    "stateChangesOnly",
    "noRecoveries",
    "levelField",
    "levelTag",
    "idField",
    "idTag",
    "messageField",
    "durationField",
    "previousField",
    "log",
    "post",
];
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
            Kind::Union => UNION,
            Kind::GroupBy => GROUP_BY,
            Kind::Join => JOIN,
            Kind::Alert => ALERT,
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
            Kind::GroupBy => group_by(parser),
            Kind::Default => default(parser),
            Kind::Derivative => derivative(parser),
            Kind::Union => self.union(inputs),
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

    fn union(&mut self, inputs: &mut Vec<usize>) -> Parsed<What> {
        self.others(inputs, |_, _| Ok(false))?;
        let mut rename = None;
        while let Some((property, span)) = self.parser.property(UNION) {
            let name = self.parser.argument(Parser::string)?;
            set(&mut rename, name, property, span)?;
        }
        Ok(What::Union { rename })
    }

    /// The vars of other chains, in parentheses; what else stands there, `special` takes. Returns their
    /// names.
    fn others(
        &mut self,
        inputs: &mut Vec<usize>,
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
            inputs.push(self.used(name, *span)?);
        }
        Ok(others.into_iter().map(|(name, _)| name).collect())
    }

    fn join(&mut self, span: Span, chain: &Chain<'t>, inputs: &mut Vec<usize>) -> Parsed<What> {
        let (mut tolerance, mut names) = (None, None);
        let others = self.others(inputs, |parser, word| {
            let given = word == "tolerance" && matches!(parser.token, Token::Duration(_));
            if given {
                set(&mut tolerance, parser.duration()?, "tolerance", span)?;
            }
            Ok(given)
        })?;
        if others.is_empty() {
            return missing("join", "the var of another chain: `m1 | join(m2)`", span);
        }
        let (mut delimiter, mut stream_name, mut fill, mut on) = (None, None, None, None);
        let parser = &mut self.parser;
        while let Some((property, span)) = parser.property(JOIN) {
            match property {
                "as" => set(&mut names, parser.names(inputs.len(), span)?, "as", span)?,
                "on" => set(&mut on, parser.list(Parser::string)?, "on", span)?,
                "fill" => set(&mut fill, parser.argument(Parser::fill)?, "fill", span)?,
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
            let first = std::iter::once(chain.var.unwrap_or("left"));
            first.chain(others).map(Into::into).collect()
        });
        Ok(What::Join(Join {
            delimiter: delimiter.unwrap_or_else(|| ".".into()),
            stream_name,
            fill: fill.unwrap_or_default(),
            on: on.unwrap_or_default(),
            ..Join::new(names, tolerance.unwrap_or_default())
        }))
    }
}

fn group_by(parser: &mut Parser<'_>) -> Parsed<What> {
    let mut by = GroupBy::default();
    parser.arguments(|parser| {
        if parser.eat("*") {
            by.all = true;
            return Ok(());
        }
        if parser.eat("[") {
            loop {
                by.tags.push(parser.field()?);
                if !parser.eat(",") {
                    return parser.expect("]", "`,` or `]`");
                }
            }
        }
        by.tags.push(parser.field()?);
        Ok(())
    })?;
    while let Some((property, _)) = parser.property(GROUP_BY) {
        match property {
            "exclude" => by.except.extend(parser.list(Parser::string)?),
            _ => {
                parser.nothing()?;
                by.measurement = true;
            }
        }
    }
    Ok(What::GroupBy(by))
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
    let on_grid = period.is_some();
    let (mut align, mut fill_period) = (false, false);
    let (mut period_count, mut every_count) = (None, None);
    let allowed = if on_grid { &WINDOW[..2] } else { WINDOW };
    while let Some((property, span)) = parser.property(allowed) {
        match property {
            "align" => {
                parser.nothing()?;
                align = true;
            }
            "fillPeriod" => {
                parser.nothing()?;
                fill_period = true;
            }
            "periodCount" | "everyCount" => {
                let slot = match property {
                    "periodCount" => &mut period_count,
                    _ => &mut every_count,
                };
                set(slot, parser.argument(Parser::count)?, property, span)?;
            }
            _ => {
                let slot = match property {
                    "period" => &mut period,
                    _ => &mut every,
                };
                set(slot, parser.argument(Parser::duration)?, property, span)?;
            }
        }
    }
    match (period, period_count) {
        (Some(period), None) if on_grid => Ok(What::Window {
            period,
            every: every.unwrap_or(period),
        }),
        (Some(period), None) if every_count.is_none() => Ok(What::Buffer(Buffer::Time {
            period,
            every: every.unwrap_or_default(),
            align,
            fill_period,
        })),
        (None, Some(period)) if every.is_none() && !align => Ok(What::Buffer(Buffer::Count {
            period,
            every: every_count.unwrap_or(1),
            fill_period,
        })),
        (None, None) => missing("window", "a period: `window(10s)` or `.period(10s)`", span),
        _ => missing(
            "window",
            "either `.period(…)` and `.every(…)`, or `.periodCount(…)` and `.everyCount(…)`",
            span,
        ),
    }
}

fn default(parser: &mut Parser<'_>) -> Parsed<What> {
    parser.nothing()?;
    let (mut fields, mut tags) = (Vec::new(), Vec::new());
    while let Some((property, _)) = parser.property(DEFAULT) {
        parser.argument(|parser| {
            let name = parser.string()?;
            parser.expect(",", "`,` and a value")?;
            match property {
                "field" => fields.push((name, parser.value()?)),
                _ => tags.push((name, parser.string()?)),
            }
            Ok(())
        })?;
    }
    Ok(What::Default { fields, tags })
}

fn derivative(parser: &mut Parser<'_>) -> Parsed<What> {
    let field = parser.argument(Parser::field)?;
    let (mut names, mut unit, mut non_negative) = (None, None, false);
    while let Some((property, span)) = parser.property(DERIVATIVE) {
        match property {
            "as" => set(&mut names, parser.names(1, span)?, "as", span)?,
            "unit" => set(&mut unit, parser.argument(Parser::duration)?, "unit", span)?,
            _ => {
                parser.nothing()?;
                non_negative = true;
            }
        }
    }
    let name = names.and_then(|names| names.into_iter().next());
    Ok(What::Derivative {
        into: name.unwrap_or_else(|| field.clone()),
        field,
        unit: unit.unwrap_or(Duration::from_secs(1)),
        non_negative,
    })
}

/// The function of a field, with the name of its result if there is one.
fn aggregate(parser: &mut Parser<'_>, function: Aggregate, field: Arc<str>) -> Parsed<What> {
    let (mut names, mut point_times) = (None, false);
    while let Some((property, span)) = parser.property(AGGREGATE) {
        match property {
            "as" => set(&mut names, parser.names(1, span)?, "as", span)?,
            _ => {
                parser.nothing()?;
                point_times = true;
            }
        }
    }
    let name = names.and_then(|names| names.into_iter().next());
    Ok(What::Aggregate {
        function,
        field,
        into: name.unwrap_or_else(|| function.name().into()),
        point_times,
    })
}

fn eval(parser: &mut Parser<'_>, span: Span) -> Parsed<What> {
    let expressions = parser.list(Parser::condition)?;
    let (mut names, mut tags, mut keep) = (None, None, None);
    while let Some((property, span)) = parser.property(EVAL) {
        match property {
            "as" => {
                let given = parser.names(expressions.len(), span)?;
                set(&mut names, given, "as", span)?;
            }
            "tags" => set(&mut tags, parser.list(Parser::string)?, "tags", span)?,
            "keep" => {
                let these = parser.list(Parser::string)?;
                let given = match these.is_empty() {
                    true => Keep::All,
                    false => Keep::These(these),
                };
                set(&mut keep, given, "keep", span)?;
            }
            // What a node leaves out is logged rarely anyhow.
            _ => parser.nothing()?,
        }
    }
    match names {
        Some(names) => Ok(What::Eval(Eval {
            fields: names.into_iter().zip(expressions).collect(),
            tags: tags.unwrap_or_default(),
            keep: keep.unwrap_or_default(),
        })),
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
        let levels = [
            "info",
            "warn",
            "crit",
            "infoReset",
            "warnReset",
            "critReset",
        ];
        if let Some(place) = levels.iter().position(|level| *level == property) {
            let slot = match place {
                0..3 => &mut alert.levels[place],
                _ => &mut alert.resets[place - 3],
            };
            set(slot, parser.argument(Parser::condition)?, property, span)?;
            continue;
        }
        match property {
            "stateChangesOnly" => {
                let mut after = Duration::ZERO;
                parser.arguments(|parser| {
                    after = parser.duration()?;
                    Ok(())
                })?;
                set(&mut alert.changes_only, after, property, span)?;
            }
            "noRecoveries" => {
                parser.nothing()?;
                alert.no_recoveries = true;
            }
            _ => {
                let text = parser.argument(Parser::string)?;
                match property {
                    "id" => set(&mut alert.id, text, property, span)?,
                    "message" => set(&mut alert.message, text, property, span)?,
                    "log" => alert.logs.push(text),
                    "post" => alert.posts.push(text),
                    "details" => {}
                    _ => {
                        let mut all = Added::ALL.iter();
                        let found = all.find(|(name, _)| *name == property);
                        alert.adds.extend(found.map(|(_, added)| (*added, text)));
                    }
                }
            }
        }
    }
    Ok(What::Alert(Box::new(alert)))
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

    /// What fills the fields of an input without a partner.
    fn fill(&mut self) -> Parsed<Fill> {
        Ok(match self.value()? {
            Value::Text(word) if &*word == "null" => Fill::Null,
            Value::Text(word) if &*word == "none" => Fill::None,
            value => Fill::Value(value),
        })
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
