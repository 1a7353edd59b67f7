//! The report of `corsair learn`, as text and as JSON.

use crate::console::Console;
use crate::text::GoDuration;
use anyhow::Result;
use corsair_arch::summary::LearnedSummary;
use corsair_arch::{LearnReport, LearnedParameter, Quantile, Resemblance};
use serde::Serialize;
use serde_json::value::RawValue;
use std::io;
use std::time::Duration;

/// The complete result, for JSON output.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    summary: LearnedSummary,
    definition: Box<RawValue>,
}

/// Words with which the names of times end.
const TIMES: [&str; 6] = [
    "work",
    "timeout",
    "backoff",
    "hedge",
    "connect",
    "processor",
];

/// The maximum number of pairs of services whose unseen policies are printed.
const MOST_UNSEEN: usize = 5;

/// Prints one JSON object.
///
/// # Errors
/// If the definition is not JSON.
pub fn json(learned: &LearnReport, judged: &[Resemblance], text: &str) -> Result<()> {
    let report = Report {
        summary: LearnedSummary::new(learned, judged),
        definition: RawValue::from_string(text.to_owned())?,
    };
    Console::new(true).print(|out| {
        serde_json::to_writer(&mut *out, &report).map_err(io::Error::from)?;
        writeln!(out)
    });
    Ok(())
}

/// Prints the report as lines.
pub fn lines(learned: &LearnReport, judged: &[Resemblance], print: impl Fn(String)) {
    let services = learned.definition.services.len() - learned.definition.load.len();
    print(format!(
        "corsair: learned {services} services from {} spans of {} traces in {}",
        learned.spans,
        learned.traces,
        GoDuration::rounded(learned.lasted)
    ));
    let has_intervals = judged
        .iter()
        .flat_map(|kind| &kind.quantiles)
        .any(|one| one.between.is_some());
    print(format!(
        "  {:<32} {:>9} {:>6} {:>10} {:>10} {:>7}{}",
        "request",
        "recorded",
        "",
        "recorded",
        "simulated",
        "off",
        if has_intervals {
            "   95 % interval"
        } else {
            ""
        }
    ));
    if learned.is_held_out {
        print("  compared with the part of the recording that was not learned from".to_owned());
    }
    for kind in judged {
        kind_lines(kind, &print);
    }
    // A service without measurable work has nothing to be uncertain about.
    let numbers = learned.numbers.iter();
    let numbers: Vec<&LearnedParameter> = numbers.filter(|one| one.between.1 != 0.0).collect();
    if !numbers.is_empty() {
        print(format!(
            "  {:<40} {:>11}   95 % interval",
            "number", "learned"
        ));
    }
    for number in numbers {
        print(number_line(number));
    }
    for remark in &learned.remarks {
        print(format!("  note: {remark}"));
    }
    for unseen in learned.unseen.iter().take(MOST_UNSEEN) {
        print(format!("  unknown: {unseen}"));
    }
    let more = learned.unseen.len().saturating_sub(MOST_UNSEEN);
    if more > 0 {
        print(format!(
            "  unknown: policies of {more} further pairs of services; --format json has them"
        ));
    }
}

fn kind_lines(kind: &Resemblance, print: &impl Fn(String)) {
    let name = format!("{} {}", kind.entry, kind.kind);
    if kind.simulated == 0 {
        print(format!(
            "  {name:<32} {:>9} recorded, no requests simulated",
            kind.recorded
        ));
        return;
    }
    for (place, quantile) in kind.quantiles.iter().enumerate() {
        let [first, count] = match place {
            0 => [name.clone(), kind.recorded.to_string()],
            _ => Default::default(),
        };
        print(format!(
            "  {first:<32} {count:>9} {}",
            quantile_text(quantile)
        ));
    }
    print(format!(
        "  {:<32} Kolmogorov-Smirnov {:.3} over {} simulated",
        "", kind.distance, kind.simulated
    ));
}

fn quantile_text(quantile: &Quantile) -> String {
    let (recorded, simulated) = (quantile.recorded, quantile.simulated);
    let off = simulated.as_secs_f64() / recorded.as_secs_f64().max(1e-9) - 1.0;
    let between = quantile.between.map(|(least, most)| {
        format!(
            "   {} to {}",
            GoDuration::rounded(least),
            GoDuration::rounded(most)
        )
    });
    format!(
        "{:>6} {:>10} {:>10} {:>+6.1}%{}",
        format!("p{}", quantile.part * 100.0),
        GoDuration::rounded(recorded).to_string(),
        GoDuration::rounded(simulated).to_string(),
        off * 100.0,
        between.unwrap_or_default()
    )
}

fn number_line(number: &LearnedParameter) -> String {
    let is_time = TIMES
        .iter()
        .any(|word| number.name.ends_with(&format!(" {word}")));
    let shown = |value: f64| match Duration::try_from_secs_f64(value) {
        Ok(time) if is_time => GoDuration::rounded(time).to_string(),
        _ => format!("{value:.4}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
    };
    let (least, most) = number.between;
    format!(
        "  {:<40} {:>11}   {} to {}",
        number.name,
        shown(number.value),
        shown(least),
        shown(most)
    )
}
