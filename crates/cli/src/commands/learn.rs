//! `corsair learn`: derives a definition from recorded traces, and measures how well it resembles them.

mod jaeger;
mod prometheus;
#[cfg(feature = "otlp")]
mod receiver;
mod report;
mod source;
mod web;

use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::options::session::address;
use crate::progress::{Bar, Measure};
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair::Config;
use corsair_arch::{LearnOptions, LearnReport, Recording};
use corsair_observe::Replacement;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The flags of `corsair learn`.
#[derive(Debug, Args)]
pub struct LearnArgs {
    /// Files of traces: OTLP/JSON, Zipkin's JSON or Jaeger's JSON
    #[arg(required_unless_present_any = ["listen", "jaeger"])]
    traces: Vec<PathBuf>,
    /// Record spans that services send to this address by OTLP: HTTP and gRPC, protobuf and JSON; `:4318` opens the
    /// standard ports 4318 and 4317 of this machine. Ctrl-C ends the recording
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with_all = ["traces", "jaeger"])]
    listen: Option<SocketAddr>,
    /// End the recording of --listen after this time [default: Ctrl-C ends it]
    #[arg(long = "for", value_name = "TIME", value_parser = text::duration, requires = "listen")]
    lasting: Option<Duration>,
    /// Maximum number of traces that --listen keeps of each kind of request; rates are those of all
    #[arg(long, value_name = "N", default_value_t = 50_000, requires = "listen")]
    per_kind: usize,
    /// Read the traces from the query API of Jaeger at this address, for example http://localhost:16686
    #[arg(
        long,
        value_name = "URL",
        requires = "service",
        conflicts_with = "traces"
    )]
    jaeger: Option<String>,
    /// Service whose traces --jaeger reads; may be repeated
    #[arg(long, value_name = "NAME", requires = "jaeger")]
    service: Vec<String>,
    /// Maximum number of traces of a service that --jaeger reads
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "jaeger")]
    limit: usize,
    /// How far --jaeger and --prometheus look back from now
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = text::duration)]
    lookback: Duration,
    /// Take --rate and --cpu from Prometheus at this address, for example http://localhost:9090
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// Query for the requests from outside per second, which replaces the recorded rate
    #[arg(long, value_name = "PROMQL", requires = "prometheus")]
    rate: Option<String>,
    /// Query for the processors that each service uses, with a label that names the service
    #[arg(long, value_name = "PROMQL", requires = "prometheus")]
    cpu: Option<String>,
    /// Definition from which policies and limits are taken that the traces do not show; what they show wins
    #[arg(long = "with", value_name = "FILE")]
    configured: Option<PathBuf>,
    /// Name of the architecture
    #[arg(long, value_name = "NAME", default_value = "learned")]
    name: String,
    /// Write the definition to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Share of all requests with traces, for example 0.1 [default: the share stated in the traces, or 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    sampled: Option<f64>,
    /// Attribute of spans with the key of a request, from which caches are learned [default: cache.key and
    /// db.query.parameter.*]
    #[arg(long, value_name = "ATTRIBUTE", requires = "traces")]
    key: Option<String>,
    /// Exclude this last part of the recording from learning, and compare only with it
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = part)]
    holdout: f64,
    /// Number of resampled recordings from which the intervals of the learned numbers are estimated; 0: none [default:
    /// 20, or 0 for more than 200000 spans]
    #[arg(long, value_name = "N")]
    resamples: Option<usize>,
    /// Write the definitions learned from resampled recordings to this file, one per line, for `capacity
    /// --variants`
    #[arg(long, value_name = "FILE")]
    variants: Option<PathBuf>,
    /// Seed of the simulation that is compared with the traces
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Output: text, or one JSON object that contains the definition
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Learns a definition, writes it, and reports how well it resembles the traces.
///
/// # Errors
/// If the traces are invalid, or if the definition cannot be written.
pub fn run(args: &LearnArgs) -> Result<()> {
    check(args)?;
    let out = args.out.as_deref().map(Replacement::begin).transpose();
    let out = out.context("--out")?;
    let variants = args.variants.as_deref().map(Replacement::begin).transpose();
    let variants = variants.context("--variants")?;
    let console = Arc::new(Console::new(false));
    let source = source::Source::of(args);
    let recording = source.record(&console)?;
    let options = LearnOptions {
        sampled: args.sampled,
        holdout: args.holdout,
        resamples: (args.resamples).unwrap_or_else(|| recording.usual_resamples()),
        seed: args.seed,
    };
    let bar = Bar::begin(&console, Measure::Clock);
    let learned = recording.learn(&args.name, &options);
    let mut learned = learned.map_err(|error| anyhow!("{error}"))?;
    if let Some(file) = &args.configured {
        let taken = learned.take_configured(file);
        taken.map_err(|error| anyhow!("--with {error}"))?;
    }
    let config = Config {
        seed: args.seed,
        ..Config::default()
    };
    if args.listen.is_none() {
        interrupt::on_ctrl_c(config.cancel.clone());
    }
    let judged = learned.judge(&config).map_err(|error| anyhow!("{error}"))?;
    if let Some(address) = &args.prometheus {
        let query = prometheus::Query {
            address,
            lookback: args.lookback,
            rate: args.rate.as_deref(),
            cpu: args.cpu.as_deref(),
        };
        prometheus::apply(&query, &mut learned)?;
    }
    drop(bar);
    learned.definition.args = format!("[corsair learn {}]", source.shown());
    let text = learned.definition.to_text();
    if let Some(file) = variants {
        write_variants(file, &learned)?;
    }
    let is_written = out.is_some();
    if let Some(mut file) = out {
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--out")?;
    }
    match args.format {
        Format::Json => report::json(&learned, &judged, &text),
        Format::Text if is_written => {
            let console = Console::new(true);
            report::lines(&learned, &judged, |line| console.line(line));
            Ok(())
        }
        Format::Text => {
            Console::new(true).print(|out| out.write_all(text.as_bytes()));
            // Remarks go to stderr, so that a pipe receives only the definition.
            report::lines(&learned, &judged, |line| {
                let _ = writeln!(io::stderr(), "{line}");
            });
            Ok(())
        }
    }
}

/// Checks flags before anything is recorded.
fn check(args: &LearnArgs) -> Result<()> {
    if args.listen.is_some() && cfg!(not(feature = "otlp")) {
        bail!(
            "this build has no OTLP receiver; run `cargo run --features otlp -- learn --listen :4318`"
        );
    }
    let most = Recording::MOST_RESAMPLES;
    if let Some(resamples) = args.resamples.filter(|&resamples| resamples > most) {
        bail!("--resamples: {resamples} is out of range; give 0 to {most}");
    }
    for (flag, value) in [("--per-kind", args.per_kind), ("--limit", args.limit)] {
        if !(1..=10_000_000).contains(&value) {
            bail!("{flag}: {value} is out of range; give 1 to 10000000");
        }
    }
    for (flag, time) in [("--lookback", Some(args.lookback)), ("--for", args.lasting)] {
        if time.is_some_and(|time| time.is_zero()) {
            bail!("{flag}: give a time above 0s, for example 10m");
        }
    }
    if args.prometheus.is_some() && args.rate.is_none() && args.cpu.is_none() {
        bail!(
            "--prometheus needs --rate or --cpu, for example --rate 'sum(rate(http_requests_total[1m]))'"
        );
    }
    Ok(())
}

fn write_variants(mut file: Replacement, learned: &LearnReport) -> Result<()> {
    for definition in &learned.resampled {
        let line = serde_json::to_string(definition)?;
        let written = writeln!(file.writer(), "{line}");
        written.map_err(|error| anyhow!(file.failed(error)))?;
    }
    file.finish().context("--variants")?;
    Ok(())
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
