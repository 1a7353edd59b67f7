//! `corsair learn`: derives a definition from recorded traces, and measures how well it resembles them.

use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure};
use crate::text::GoDuration;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair::Config;
use corsair_arch::summary::LearnedSummary;
use corsair_arch::{LearnOptions, LearnReport, Resemblance, learn_with};
use corsair_observe::Replacement;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The flags of `corsair learn`.
#[derive(Debug, Args)]
pub struct LearnArgs {
    /// Files of traces: OTLP/JSON, Zipkin's JSON or Jaeger's JSON
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Name of the architecture
    #[arg(long, value_name = "NAME", default_value = "learned")]
    name: String,
    /// Write the definition to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Share of all requests with traces, for example 0.1 [default: the share stated in the traces, or 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sampled: Option<f64>,
    /// Exclude this last part of the recording from learning, and compare only with it
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = part)]
    holdout: f64,
    /// Number of resampled recordings from which the intervals of the learned numbers are estimated; 0: none
    #[arg(long, value_name = "N", default_value_t = 0)]
    resamples: usize,
    /// Write the definitions learned from resampled recordings to this file, one per line, for `capacity
    /// --variants`
    #[arg(long, value_name = "FILE", requires = "resamples")]
    variants: Option<PathBuf>,
    /// Seed of the simulation that is compared with the traces
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Output: text, or one JSON object that contains the definition
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The complete result, for JSON output.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    summary: LearnedSummary,
    definition: Box<RawValue>,
}

/// Learns a definition, writes it, and reports how well it resembles the traces.
///
/// # Errors
/// If the traces are invalid, or if the definition cannot be written.
pub fn run(args: &LearnArgs) -> Result<()> {
    let out = args.out.as_deref().map(Replacement::begin).transpose();
    let out = out.context("--out")?;
    if args.resamples > 1_000 {
        bail!(
            "--resamples: {} is out of range; give 0 to 1000",
            args.resamples
        );
    }
    let variants = args.variants.as_deref().map(Replacement::begin).transpose();
    let variants = variants.context("--variants")?;
    let options = LearnOptions {
        sampled: args.sampled,
        holdout: args.holdout,
        resamples: args.resamples,
        seed: args.seed,
    };
    let console = Arc::new(Console::new(false));
    let bar = Bar::begin(&console, Measure::Clock);
    let learned = learn_with(&args.traces, &args.name, &options);
    let mut learned = learned.map_err(|error| anyhow!("{error}"))?;
    learned.definition.args = format!("[corsair learn {}]", shown(&args.traces));
    let text = learned.definition.to_text();
    let config = Config {
        seed: args.seed,
        ..Config::default()
    };
    interrupt::on_ctrl_c(config.cancel.clone());
    let judged = learned.judge(&config).map_err(|error| anyhow!("{error}"))?;
    drop(bar);
    if let Some(mut file) = variants {
        for definition in &learned.resampled {
            let line = serde_json::to_string(definition)?;
            let written = writeln!(file.writer(), "{line}");
            written.map_err(|error| anyhow!(file.failed(error)))?;
        }
        file.finish().context("--variants")?;
    }
    let is_written = out.is_some();
    if let Some(mut file) = out {
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--out")?;
    }
    match args.format {
        Format::Json => json(&learned, &judged, &text),
        Format::Text if is_written => {
            let console = Console::new(true);
            lines(&learned, &judged, |line| console.line(line));
            Ok(())
        }
        Format::Text => {
            Console::new(true).print(|out| out.write_all(text.as_bytes()));
            // Remarks go to stderr, so that a pipe receives only the definition.
            lines(&learned, &judged, |line| {
                let _ = writeln!(io::stderr(), "{line}");
            });
            Ok(())
        }
    }
}

/// Parses a share above 0.
fn share(text: &str) -> std::result::Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| {
        format!("'{text}' is not a share; give a number above 0 and up to 1, for example 0.1")
    })
}

/// Parses a fraction below 1.
fn part(text: &str) -> std::result::Result<f64, String> {
    let part = text
        .parse()
        .ok()
        .filter(|part: &f64| (0.0..=0.9).contains(part));
    part.ok_or_else(|| {
        format!("'{text}' is not a fraction; give a number from 0 to 0.9, for example 0.2")
    })
}

fn shown(files: &[PathBuf]) -> String {
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    files.join(" ")
}

fn json(learned: &LearnReport, judged: &[Resemblance], text: &str) -> Result<()> {
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

fn lines(learned: &LearnReport, judged: &[Resemblance], print: impl Fn(String)) {
    let services = learned.definition.services.len() - learned.definition.load.len();
    print(format!(
        "corsair: learned {services} services from {} spans of {} traces in {}",
        learned.spans,
        learned.traces,
        GoDuration::rounded(learned.lasted)
    ));
    print(format!(
        "  {:<32} {:>9} {:>6} {:>10} {:>10} {:>7}",
        "request", "recorded", "", "recorded", "simulated", "off"
    ));
    if learned.is_held_out {
        print("  compared with the part of the recording that was not learned from".to_owned());
    }
    for kind in judged {
        let name = format!("{} {}", kind.entry, kind.kind);
        for (place, quantile) in kind.quantiles.iter().enumerate() {
            let (recorded, simulated) = (quantile.recorded, quantile.simulated);
            if kind.simulated == 0 {
                continue;
            }
            let off = simulated.as_secs_f64() / recorded.as_secs_f64().max(1e-9) - 1.0;
            let [first, count] = match place {
                0 => [name.clone(), kind.recorded.to_string()],
                _ => Default::default(),
            };
            print(format!(
                "  {first:<32} {count:>9} {:>6} {:>10} {:>10} {:>+6.1}%",
                format!("p{}", quantile.part * 100.0),
                GoDuration::rounded(recorded).to_string(),
                GoDuration::rounded(simulated).to_string(),
                off * 100.0
            ));
        }
        if kind.simulated == 0 {
            print(format!(
                "  {name:<32} {:>9} recorded, no requests simulated",
                kind.recorded
            ));
            continue;
        }
        print(format!(
            "  {:<32} Kolmogorov-Smirnov {:.3} over {} simulated",
            "", kind.distance, kind.simulated
        ));
    }
    if !learned.numbers.is_empty() {
        print(format!(
            "  {:<40} {:>11}   95 % interval",
            "number", "learned"
        ));
    }
    for number in &learned.numbers {
        let shown = |value: f64| match number.name.ends_with(" work") {
            true => GoDuration::rounded(Duration::from_secs_f64(value)).to_string(),
            false => format!("{:.4}", value)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned(),
        };
        let (least, most) = number.between;
        print(format!(
            "  {:<40} {:>11}   {} to {}",
            number.name,
            shown(number.value),
            shown(least),
            shown(most)
        ));
    }
    for remark in &learned.remarks {
        print(format!("  note: {remark}"));
    }
}
