//! `alert`, and `deadman`, which is one of how many points have come.

use super::super::error::Problem;
use super::super::lexer::Span;
use super::super::parser::{Parsed, Parser, fail, set};
use super::super::program::Program;
use super::{ALERT, STATS};
use crate::expression::{Expression, key};
use crate::pipeline::{Added, Alert, What};
use std::sync::Arc;
use std::time::Duration;

/// Properties that are neither conditions nor add anything to points.
const OTHERS: [&str; 8] = [
    "id",
    "message",
    "details",
    "stateChangesOnly",
    "noRecoveries",
    "all",
    "log",
    "post",
];

/// All properties.
pub(super) const PROPERTIES: [&str; Alert::CONDITIONS.len() + Added::ALL.len() + OTHERS.len()] = {
    let (conditions, adds) = (Alert::CONDITIONS.len(), Added::ALL.len());
    let mut all = [""; Alert::CONDITIONS.len() + Added::ALL.len() + OTHERS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < conditions {
            Alert::CONDITIONS[at]
        } else if at < conditions + adds {
            Added::ALL[at - conditions].0
        } else {
            OTHERS[at - conditions - adds]
        };
        at += 1;
    }
    all
};

/// `stats`, whose name has been taken.
pub(super) fn stats(parser: &mut Parser<'_>) -> Parsed<What> {
    let interval = parser.argument(Parser::duration)?;
    let mut align = false;
    while parser.property(STATS)?.is_some() {
        parser.nothing()?;
        align = true;
    }
    Ok(What::Stats { interval, align })
}

impl Program<'_> {
    /// `deadman`, whose name has been taken: the `stats` of its input, their `derivative`, and an `alert`
    /// of that.
    pub(super) fn deadman(&mut self, span: Span, inputs: &mut [usize]) -> Parsed<What> {
        let of = inputs[0];
        let node = format!("{}{of}", self.drafts[of].what.kind_name());
        let (threshold, interval, others) = self.parser.argument(|parser| {
            let threshold = parser.number()?;
            parser.expect(",", "`,` and an interval, such as `10s`")?;
            let interval = parser.duration()?;
            let mut others = Vec::new();
            while parser.eat(",") {
                others.push(parser.condition()?);
            }
            Ok((threshold, interval, others))
        })?;
        let mut alert = properties(&mut self.parser)?;
        alert.levels[2].get_or_insert_with(|| {
            let dead = key("emitted").le(threshold);
            others.into_iter().fold(dead, Expression::and)
        });
        let align = true;
        let stats = self.push(What::Stats { interval, align }, vec![of], span);
        let emitted: Arc<str> = "emitted".into();
        let rate = What::Derivative {
            field: emitted.clone(),
            into: emitted,
            unit: interval,
            non_negative: true,
        };
        inputs[0] = self.push(rate, vec![stats], span);
        let alert = alert.deadman(&node, threshold, interval);
        Ok(What::Alert(Box::new(alert)))
    }
}

/// `alert`, whose name has been taken.
pub(super) fn alert(parser: &mut Parser<'_>) -> Parsed<Alert> {
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
    properties(parser)
}

/// The properties of an `alert`, in any order.
fn properties(parser: &mut Parser<'_>) -> Parsed<Alert> {
    let mut alert = Alert::new();
    while let Some((property, span)) = parser.property(ALERT)? {
        let mut conditions = Alert::CONDITIONS.iter();
        if let Some(place) = conditions.position(|condition| *condition == property) {
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
            "noRecoveries" | "all" => {
                parser.nothing()?;
                alert.no_recoveries |= property == "noRecoveries";
                alert.all |= property == "all";
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
    Ok(alert)
}
