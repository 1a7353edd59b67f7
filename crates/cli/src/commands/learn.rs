//! `corsair learn`: from recorded traces to a definition, and how well it resembles them.

use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::text::GoDuration;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use corsair::Config;
use corsair_arch::summary::LearnedSummary;
use corsair_arch::{Learned, Resemblance, learn};
use corsair_observe::Replacement;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::path::PathBuf;

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
    /// Seed of the simulation that the traces are compared with
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Output: text, or one JSON object that contains the definition
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Everything, as JSON.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    summary: LearnedSummary,
    definition: Box<RawValue>,
}

/// Learns a definition, writes it, and tells how well it resembles the traces.
///
/// # Errors
/// What is wrong with the traces, or that the definition cannot be written.
pub fn run(args: &LearnArgs) -> Result<()> {
    let out = args.out.as_deref().map(Replacement::begin).transpose();
    let out = out.context("--out")?;
    let mut learned = learn(&args.traces, &args.name).map_err(|error| anyhow!("{error}"))?;
    learned.definition.args = format!("[corsair learn {}]", shown(&args.traces));
    let text = learned.definition.to_text();
    let config = Config {
        seed: args.seed,
        ..Config::default()
    };
    interrupt::on_ctrl_c(config.cancel.clone());
    let judged = learned.judge(&config).map_err(|error| anyhow!("{error}"))?;
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
            // What is piped on is the definition alone.
            lines(&learned, &judged, |line| {
                let _ = writeln!(io::stderr(), "{line}");
            });
            Ok(())
        }
    }
}

fn shown(files: &[PathBuf]) -> String {
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    files.join(" ")
}

fn json(learned: &Learned, judged: &[Resemblance], text: &str) -> Result<()> {
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

fn lines(learned: &Learned, judged: &[Resemblance], tell: impl Fn(String)) {
    let services = learned.definition.services.len() - learned.definition.load.len();
    tell(format!(
        "corsair: learned {services} services from {} spans of {} traces in {}",
        learned.spans,
        learned.traces,
        GoDuration::rounded(learned.lasted)
    ));
    tell(format!(
        "  {:<32} {:>9} {:>6} {:>10} {:>10} {:>7}",
        "request", "recorded", "", "recorded", "simulated", "off"
    ));
    for kind in judged {
        let name = format!("{} {}", kind.entry, kind.kind);
        for (place, quantile) in kind.quantiles.iter().enumerate() {
            let (recorded, simulated) = (quantile.recorded, quantile.simulated);
            let off = simulated.as_secs_f64() / recorded.as_secs_f64().max(1e-9) - 1.0;
            let [first, count] = match place {
                0 => [name.clone(), kind.recorded.to_string()],
                _ => Default::default(),
            };
            tell(format!(
                "  {first:<32} {count:>9} {:>6} {:>10} {:>10} {:>+6.1}%",
                format!("p{}", quantile.part * 100.0),
                GoDuration::rounded(recorded).to_string(),
                GoDuration::rounded(simulated).to_string(),
                off * 100.0
            ));
        }
        tell(format!(
            "  {:<32} Kolmogorov-Smirnov {:.3} over {} simulated",
            "", kind.distance, kind.simulated
        ));
    }
    for remark in &learned.remarks {
        tell(format!("  note: {remark}"));
    }
}
