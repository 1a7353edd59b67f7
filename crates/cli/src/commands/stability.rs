//! `corsair stability`: maps where a system is stable, degraded or metastable, by load and another quantity.

use crate::commands::variants;
use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure};
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::summary::MapSummary;
use corsair_arch::{Axis, Fault, MapRules, Slo, TimeSpan, Trigger, picture, stability};
use corsair_observe::Replacement;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The flags of `corsair stability`.
#[derive(Debug, Args)]
pub struct StabilityArgs {
    /// Architecture: a name or a file
    arch: String,
    /// Loads, in requests per second at each entry point: 50,100,200 or 50..450..50
    #[arg(long, value_name = "LOADS")]
    loads: String,
    /// Lengths of the trigger, the second axis of the map: 0s,500ms,2s
    #[arg(
        long,
        value_name = "TIMES",
        value_delimiter = ',',
        conflicts_with = "set"
    )]
    lengths: Vec<TimeSpan>,
    /// A field and its values, as the second axis of the map: services.db.concurrency=2,4,8
    #[arg(long, value_name = "FIELD=VALUES")]
    set: Option<String>,
    /// With --set, how long the trigger lasts
    #[arg(long = "for", value_name = "TIME", default_value = "2s")]
    lasting: TimeSpan,
    /// The trigger: the load is multiplied by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0)]
    spike: f64,
    /// The trigger: a fault of a service instead of a spike, such as 'db={"kind":"slow","factor":5}'
    #[arg(long, value_name = "SERVICE=FAULT", conflicts_with = "spike")]
    fault: Option<String>,
    /// Objective of each interval, such as 'errors < 10%' or 'p99 < 1s'; may be repeated [default: errors < 10%]
    #[arg(long = "slo", value_name = "SLO")]
    slos: Vec<Slo>,
    /// When the trigger begins
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = text::duration)]
    at: Duration,
    /// Duration of the observation after the trigger
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = text::duration)]
    after: Duration,
    /// Length of the intervals in which the objectives are evaluated
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = text::duration)]
    interval: Duration,
    /// Number of seeds with which each point is run
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: usize,
    /// First seed of the random numbers; further runs use the seeds after it
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<std::num::NonZeroUsize>,
    /// Directory of definitions, NAME_arch.json
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// Write the map to this file, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the map to this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Makes a map and prints it.
///
/// # Errors
/// If the flags or the definition are invalid, or if a file cannot be written.
pub fn run(args: &StabilityArgs) -> Result<()> {
    let text = variants::find(&args.arch, &args.arch_dir)?;
    let rules = rules(args)?;
    let begin = |file: &Option<PathBuf>| file.as_deref().map(Replacement::begin).transpose();
    let (out, plot) = (
        begin(&args.out).context("--out")?,
        begin(&args.plot).context("--plot")?,
    );
    let config = variants::seeded(args.seed, args.workers);
    interrupt::on_ctrl_c(config.cancel.clone());
    let console = Arc::new(Console::new(true));
    let bar = Bar::begin(&console, Measure::Clock);
    let map = stability(&config, &text, &rules);
    drop(bar);
    let Some(map) = map.map_err(|error| anyhow!("{error}"))? else {
        bail!("stopped before all runs were made");
    };
    let write = |file: Option<Replacement>, text: String, flag: &'static str| -> Result<()> {
        let Some(mut file) = file else {
            return Ok(());
        };
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context(flag)
    };
    write(out, map.csv(), "--out")?;
    if plot.is_some() {
        let drawn = picture::stability(&map).map_err(|error| anyhow!("--plot: {error}"))?;
        write(plot, drawn, "--plot")?;
    }
    console.print(|out| match args.format {
        Format::Text => {
            out.write_all(map.table().as_bytes())?;
            writeln!(
                out,
                "corsair: S recovers after the trigger, in this time; D misses its objectives without it; M does not recover, in this share of {} runs",
                args.seeds
            )
        }
        Format::Json => {
            serde_json::to_writer(&mut *out, &MapSummary::new(&map)).map_err(io::Error::from)?;
            writeln!(out)
        }
    });
    Ok(())
}

fn rules(args: &StabilityArgs) -> Result<MapRules> {
    let loads = corsair_arch::sweep::values_of(&args.loads);
    let loads: Result<Vec<f64>> = (loads
        .map_err(|error| anyhow!(error).context("--loads"))?
        .iter())
    .map(|load| {
        let number = load.parse().ok();
        number.ok_or_else(|| {
            anyhow!("--loads: '{load}' is not a number; write for example 50..450..50")
        })
    })
    .collect();
    let axis = match &args.set {
        Some(set) => {
            let (path, values) = variants::split(set).map_err(|error| anyhow!("--set: {error}"))?;
            let values = corsair_arch::sweep::values_of(values);
            let values = values.map_err(|error| anyhow!(error).context("--set"))?;
            Axis::Field(path.to_owned(), values, args.lasting)
        }
        None if args.lengths.is_empty() => {
            bail!("a map has two axes; give --lengths, or --set with a field and its values")
        }
        None => Axis::Lengths(args.lengths.clone()),
    };
    let trigger = match &args.fault {
        None => Trigger::Spike(args.spike),
        Some(fault) => fault_of(fault).context("--fault")?,
    };
    let slos = match args.slos.is_empty() {
        true => vec!["errors < 10%".parse()?],
        false => args.slos.clone(),
    };
    Ok(MapRules {
        slos,
        loads: loads?,
        axis,
        trigger,
        at: args.at,
        after: args.after,
        interval: args.interval,
        seeds: args.seeds,
    })
}

/// Reads `db={"kind": "slow", "factor": 5}` or `db=kill`; the map sets the times.
fn fault_of(text: &str) -> Result<Trigger> {
    let (service, fault) = text.split_once('=').ok_or_else(|| {
        anyhow!("'{text}' is not a fault; write for example db=kill or 'db={{\"kind\":\"slow\",\"factor\":5}}'")
    })?;
    let value = serde_json::from_str(fault).unwrap_or(serde_json::Value::String(fault.to_owned()));
    let mut fields = match value {
        serde_json::Value::Object(fields) => fields,
        kind => serde_json::Map::from_iter([("kind".to_owned(), kind)]),
    };
    if fields.contains_key("at") || fields.contains_key("for") {
        bail!(
            "the map sets when a fault begins and how long it lasts; leave out \"at\" and \"for\""
        );
    }
    fields.insert("at".to_owned(), "0s".into());
    let fault: Fault = serde_json::from_value(fields.into())?;
    Ok(Trigger::Fault(service.to_owned(), fault))
}
