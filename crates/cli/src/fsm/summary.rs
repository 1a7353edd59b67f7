//! The part of a run's summary that is specific to pirates.

use crate::summary::Subject;
use corsair::Report;
use corsair::fsm::{Form, Tally};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The results of pirates.
#[derive(Clone, Debug, Serialize)]
pub struct PiratesSummary {
    form: &'static str,
    pirates: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<Delivery>,
    dead_letters_total: u64,
    dead_letters: BTreeMap<&'static str, u64>,
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<Gold>,
}

/// The FSM's first messages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Delivery {
    /// The number of messages.
    pub messages: u64,
    /// The wall-clock time from the first sent message until all messages were handled.
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Gold {
    minted: u64,
    returned: u64,
    salvaged: u64,
    missing: i64,
    goodbyes: u32,
}

impl PiratesSummary {
    /// Creates the summary of these pirates.
    pub fn new(
        form: Form,
        pirates: u32,
        report: &Report,
        delivered: Option<Delivery>,
        tally: Option<Tally>,
    ) -> PiratesSummary {
        let dead_letters = report.dead_letters.iter();
        PiratesSummary {
            form: match form {
                Form::Async => "async",
                Form::Handler => "handler",
            },
            pirates,
            delivered,
            dead_letters_total: report.dead(),
            dead_letters: dead_letters.map(|kind| (kind.kind, kind.count)).collect(),
            dropped: report.dropped,
            gold: tally.map(|tally| Gold {
                minted: tally.minted,
                returned: tally.returned,
                salvaged: tally.salvaged,
                missing: tally.missing_gold(),
                goodbyes: tally.goodbyes,
            }),
        }
    }
}

impl Subject for PiratesSummary {
    fn headline(&self, outcome: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "corsair: {outcome}")
    }

    fn how(&self) -> String {
        format!(", {} form", self.form)
    }

    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  dead letters {}", self.dead_letters_total)?;
        if self.dropped > 0 {
            write!(f, ", and {} dropped by full mailboxes", self.dropped)?;
        }
        writeln!(f)?;
        let gold = self
            .gold
            .filter(|gold| gold.missing != 0 || gold.goodbyes != self.pirates);
        let Some(gold) = gold else {
            return Ok(());
        };
        let missing = self.pirates - gold.goodbyes.min(self.pirates);
        writeln!(
            f,
            "  missing      {} gold, {missing} goodbyes",
            gold.missing
        )
    }
}
