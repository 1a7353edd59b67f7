//! `window` and `groupBy`: which points belong together.

use super::super::lexer::Span;
use super::super::parser::{Parsed, Parser, set};
use super::{GROUP_BY, WINDOW, missing};
use crate::pipeline::{Buffer, GroupBy, What};
use std::time::Duration;

pub(super) fn group_by(parser: &mut Parser<'_>) -> Parsed<What> {
    let mut by = GroupBy::default();
    parser.arguments(|parser| {
        if parser.eat("*") {
            by.all = true;
            return Ok(());
        }
        if parser.eat("[") {
            while !parser.eat("]") {
                by.tags.push(parser.field()?);
                if !parser.eat(",") {
                    return parser.expect("]", "`,` or `]`");
                }
            }
            return Ok(());
        }
        by.tags.push(parser.field()?);
        Ok(())
    })?;
    while let Some((property, _)) = parser.property(GROUP_BY)? {
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

pub(super) fn window(parser: &mut Parser<'_>, span: Span) -> Parsed<What> {
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
    while let Some((property, span)) = parser.property(allowed)? {
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
