//! Nodes that make values of others: aggregates, `eval`, `default`, `derivative`.

use super::super::lexer::Span;
use super::super::parser::{Parsed, Parser, set};
use super::{AGGREGATE, DEFAULT, DERIVATIVE, EVAL, missing};
use crate::pipeline::{Aggregate, Eval, Keep, What};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn default(parser: &mut Parser<'_>) -> Parsed<What> {
    parser.nothing()?;
    let (mut fields, mut tags) = (Vec::new(), Vec::new());
    while let Some((property, _)) = parser.property(DEFAULT)? {
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

pub(super) fn derivative(parser: &mut Parser<'_>) -> Parsed<What> {
    let field = parser.argument(Parser::field)?;
    let (mut names, mut unit, mut non_negative) = (None, None, false);
    while let Some((property, span)) = parser.property(DERIVATIVE)? {
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
pub(super) fn aggregate(
    parser: &mut Parser<'_>,
    function: Aggregate,
    field: Arc<str>,
) -> Parsed<What> {
    let (mut names, mut point_times) = (None, false);
    while let Some((property, span)) = parser.property(AGGREGATE)? {
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

pub(super) fn eval(parser: &mut Parser<'_>, span: Span) -> Parsed<What> {
    let expressions = parser.list(Parser::condition)?;
    let (mut names, mut tags, mut keep) = (None, None, None);
    while let Some((property, span)) = parser.property(EVAL)? {
        match property {
            "as" => {
                let given = parser.names(expressions.len(), span)?;
                set(&mut names, given, "as", span)?;
            }
            "tags" => set(&mut tags, parser.list(Parser::string)?, "tags", span)?,
            _ => {
                let these = parser.list(Parser::string)?;
                let given = match these.is_empty() {
                    true => Keep::All,
                    false => Keep::These(these),
                };
                set(&mut keep, given, "keep", span)?;
            }
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
