//! `corsair capacity`: finds the highest load that an architecture can handle, by simulation.

mod size;
mod variants;

use crate::arch::source;
use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure};
use crate::style::{self, Cell, Meaning};
use crate::text::{self, GoDuration};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair::Config;
use corsair_arch::summary::CapacitySummary;
use corsair_arch::{
    Capacity, LoadText, PlacesDefinition, Plan, Point, Scale, Search, Slo, SloMeasure, Topology,
    capacity, picture,
};
use corsair_observe::Replacement;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The flags of `corsair capacity`.
#[derive(Debug, Args)]
pub struct CapacityArgs {
    /// Name of the architecture
    #[arg(long, short, value_name = "NAME", default_value = "netflixoss")]
    arch: String,
    /// Directory of definitions, NAME_arch.json
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// Step of a migration
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    stopstep: u32,
    /// Percentage of the definition's instances to create
    #[arg(long, short, value_name = "PERCENT", default_value_t = 100)]
    population: u32,
    /// Number of regions
    #[arg(long, short = 'w', value_name = "N", default_value_t = 1)]
    regions: u32,
    /// Minimum length of a run, in virtual seconds; runs are extended and repeated with other seeds until the answer is
    /// clear
    #[arg(long, short, value_name = "SECONDS", default_value = "5", value_parser = text::seconds)]
    duration: Duration,
    /// Highest acceptable 99th percentile of the response time [default: 100ms, unless --slo is given]
    #[arg(long, value_name = "TIME", value_parser = text::duration)]
    limit: Option<Duration>,
    /// Highest acceptable share of requests that fail or stay unanswered [default: 0.01, unless --slo errors is given]
    #[arg(long, value_name = "SHARE")]
    errors: Option<f64>,
    /// Service-level objective, for example 'p95 < 80ms', 'mean < 20ms', 'errors < 1%' or, of a kind of request,
    /// 'cart.list p95 < 80ms'; may be repeated
    #[arg(long = "slo", value_name = "SLO")]
    slos: Vec<Slo>,
    /// First load to try, in requests per second at each entry point
    #[arg(long, value_name = "LOAD", default_value_t = 10.0)]
    from: f64,
    /// Highest load to try
    #[arg(long, value_name = "LOAD", default_value_t = 100_000.0)]
    to: f64,
    /// Relative precision of the answer
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    precision: f64,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of runs in parallel
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Load whose rate is searched for (kinds of requests and arrivals); with --find, the load itself
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    /// Also search with each of these definitions, one per line (see `learn --variants`), and print the interval
    #[arg(long, value_name = "FILE", conflicts_with = "find")]
    variants: Option<PathBuf>,
    /// Search for the number of instances that a load needs, instead of for the load
    #[arg(long, value_name = "instances:SERVICE")]
    find: Option<String>,
    /// With --find, the highest number of instances to try
    #[arg(long, value_name = "N", default_value_t = 1000)]
    most: u32,
    /// Write a chart of load and response times to this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Searches for the capacity and prints it.
///
/// # Errors
/// If the flags or the architecture are invalid, or if the plot cannot be written.
pub fn run(args: &CapacityArgs) -> Result<()> {
    check(args)?;
    let scale = Scale {
        regions: args.regions,
        percent: args.population,
    };
    if args.arch == "fsm" {
        return Err(source::no_services(&args.arch)).context("-a");
    }
    let mut topology = source::defined(
        &args.arch,
        &args.arch_dir,
        args.stopstep,
        scale,
        &PlacesDefinition::default(),
    )?;
    let is_sized = source::is_built_in(&args.arch, &args.arch_dir);
    if is_sized {
        topology.add_sizes();
    }
    let load = args.load.as_deref().map(LoadText::read).transpose();
    let load = load.map_err(|error| anyhow!("--load: {error}"))?;
    if let Some(load) = &load {
        let applied = load.apply(&mut topology);
        applied.map_err(|error| anyhow!("--load: {error}"))?;
    }
    let plot = args.plot.as_deref().map(Replacement::begin).transpose();
    let plot = plot.context("--plot")?;
    let mut config = Config {
        seed: args.seed,
        ..Config::default()
    };
    config.workers = args.workers.unwrap_or(config.workers);
    interrupt::on_ctrl_c(config.cancel.clone());
    let plan = Plan {
        duration: args.duration,
        ..Plan::default()
    };
    let search = Search {
        slos: slos(args),
        from: args.from,
        to: args.to,
        precision: args.precision,
    };
    let console = Arc::new(Console::new(args.format == Format::Text));
    let _bar = Bar::begin(&console, Measure::Clock);
    if let Some(find) = &args.find {
        let run = size::SizeSearch {
            args,
            config: &config,
            plan: &plan,
            search: &search,
            load: load.as_ref(),
            scale,
        };
        return size::run(&run, find, &console);
    }
    console.line(style::row(&cells(HEAD.map(str::to_owned)), style::width()));
    let found = capacity(&config, &topology, &plan, &search, |point| {
        console.line(row(point, None));
    });
    let found = found.map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
    if let Some(mut file) = plot {
        let title = format!("{}: response time by load", topology.arch);
        let svg = picture::capacity(&title, &found, search.p99_limit());
        let svg = svg.map_err(|error| anyhow!("--plot: {error}"))?;
        let written = file.writer().write_all(svg.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--plot")?;
    }
    let spread = match &args.variants {
        None => None,
        Some(file) => Some(variants::spread(
            file,
            scale,
            load.as_ref(),
            &config,
            &plan,
            &search,
        )?),
    };
    match args.format {
        Format::Text => {
            let verdict = verdict(args, &search, &topology, &found);
            console.line(style::paint(&verdict, Meaning::Result));
            if let Some(bottleneck) = bottleneck(&topology, &found) {
                console.line(bottleneck);
            }
            if let Some(unlimited) = unlimited(&topology).filter(|_| found.limited) {
                console.line(unlimited);
            }
            if let Some(spread) = &spread {
                console.line(spread);
            }
            if is_sized {
                console.line(format_args!("{ILLUSTRATIVE}"));
            }
        }
        Format::Json => console.print(|out| {
            let mut found = CapacitySummary::new(&args.arch, &search, &topology, &found);
            found.variants = spread.as_ref().map(|spread| spread.loads.clone());
            serde_json::to_writer(&mut *out, &found).map_err(io::Error::from)?;
            writeln!(out)
        }),
    }
    Ok(())
}

/// The note about the sizes of built-in architectures.
const ILLUSTRATIVE: &str = "  sizes        illustrative: built-in architectures state no service times, so that each package has a typical one";

fn check(args: &CapacityArgs) -> Result<()> {
    if !(args.from > 0.0 && args.from <= args.to && args.to <= 1_000_000.0) {
        bail!(
            "cannot search the loads from {} to {}; give --from above 0, and --to between --from and 1000000",
            args.from,
            args.to
        );
    }
    if let Some(errors) = args.errors.filter(|errors| !(0.0..=1.0).contains(errors)) {
        bail!("--errors: {errors} is not a share; give a number from 0 to 1");
    }
    if !(args.precision > 0.0 && args.precision < 1.0) {
        bail!(
            "--precision: {} is not a share; give a number above 0 and below 1",
            args.precision
        );
    }
    if args.find.is_some() && args.plot.is_some() {
        bail!(
            "--plot draws a search for the load, and --find searches for instances; leave one of them out"
        );
    }
    if args.duration.is_zero() {
        bail!("--duration: 0 seconds have no load; give 1 second or more");
    }
    Ok(())
}

/// The columns of a table of loads.
const HEAD: [&str; 8] = [
    "load/s",
    "throughput/s",
    "p50",
    "p95",
    "p99",
    "+/-",
    "errors",
    "runs",
];

/// Returns a row of the table of loads; a narrow terminal shows only some columns.
fn cells(row: [String; 8]) -> Vec<Cell> {
    let widths = [
        (10, 0),
        (12, 3),
        (9, 2),
        (9, 4),
        (9, 0),
        (9, 5),
        (7, 0),
        (4, 6),
    ];
    let cells = row.into_iter().zip(widths);
    cells
        .map(|(text, (width, rank))| Cell::right(text, width, rank))
        .collect()
}

/// The text at the end of the row of a load that is too high.
const TOO_MUCH: &str = "  too much";

fn row(point: &Point, before: Option<Cell>) -> String {
    let [p50, p95, p99] =
        [point.p50, point.p95, point.p99].map(|time| GoDuration::rounded(time).to_string());
    let within = point.p99_within.map(GoDuration::rounded);
    let within = within.map_or(String::new(), |within| within.to_string());
    let (load, throughput) = (
        format!("{:.1}", point.load),
        format!("{:.1}", point.throughput),
    );
    let (errors, runs) = (
        format!("{:.2}%", point.errors * 100.0),
        point.runs.to_string(),
    );
    let mut all: Vec<Cell> = before.into_iter().collect();
    all.extend(cells([
        load, throughput, p50, p95, p99, within, errors, runs,
    ]));
    let room = style::width().map(|width| width.saturating_sub(TOO_MUCH.len()));
    let row = style::row(&all, room);
    match point.holds {
        true => row,
        false => row + &style::paint(TOO_MUCH, Meaning::Bad),
    }
}

/// Returns the objectives from the flags, and the default objectives that the flags do not replace.
fn slos(args: &CapacityArgs) -> Vec<Slo> {
    let has = |measures: fn(&Slo) -> bool| {
        args.slos
            .iter()
            .any(|slo| slo.kind.is_none() && measures(slo))
    };
    let limit = args.limit.unwrap_or(Duration::from_millis(100));
    let usual = Slo::usual(limit, args.errors.unwrap_or(0.01));
    let is_wanted = |slo: &Slo| match slo.measure {
        SloMeasure::Errors => args.errors.is_some() || !has(|slo| !slo.is_time()),
        _ => args.limit.is_some() || args.slos.is_empty(),
    };
    let usual = usual.into_iter().filter(is_wanted);
    usual.chain(args.slos.iter().cloned()).collect()
}

/// Formats the objectives as a part of a sentence.
fn with(args: &CapacityArgs, search: &Search) -> String {
    match search.p99_limit().filter(|_| args.slos.is_empty()) {
        Some(limit) => format!("with a p99 of at most {}", GoDuration(limit)),
        None => {
            let slos: Vec<String> = search.slos.iter().map(ToString::to_string).collect();
            format!("with {}", slos.join(", "))
        }
    }
}

fn verdict(args: &CapacityArgs, search: &Search, topology: &Topology, found: &Capacity) -> String {
    let (arch, with) = (&args.arch, with(args, search));
    match found.load {
        _ if !found.limited => {
            let holds = if found.beyond {
                ""
            } else {
                ", but response times are too long at any load"
            };
            format!(
                "corsair: nothing limits the load of {arch}: all of its services take any number of requests at once{holds}; \
                 give services concurrency, processors or a rate_limit to find a capacity"
            )
        }
        Some(load) if found.beyond => {
            let unlimited = topology.unlimited().join(", ");
            let others = match unlimited.as_str() {
                "" => String::new(),
                names => format!(", or give {names} concurrency, since nothing limits them"),
            };
            format!(
                "corsair: {arch} sustains at least {load:.1} requests per second at each entry point; raise --to to find its limit{others}"
            )
        }
        Some(load) => format!(
            "corsair: {arch} sustains {load:.1} requests per second at each entry point {with}{}",
            interval(found)
        ),
        None => {
            let least = found.points.first().map_or(args.from, |point| point.load);
            format!(
                "corsair: {arch} does not sustain even {least} requests per second at each entry point {with}"
            )
        }
    }
}

/// Names the services that have no limit, so that they cannot be the bottleneck.
fn unlimited(topology: &Topology) -> Option<String> {
    let names = topology.unlimited();
    (!names.is_empty()).then(|| {
        format!(
            "  unlimited    {} (any number of requests at once)",
            names.join(", ")
        )
    })
}

/// Formats the interval that contains the limit, if it is known.
fn interval(found: &Capacity) -> String {
    match found.between {
        (Some(least), Some(most)) => format!(" (95 %: {least:.1} to {most:.1})"),
        _ => String::new(),
    }
}

/// Formats the utilisation of services at the highest load that meets the objectives, the busiest first.
fn bottleneck(topology: &Topology, found: &Capacity) -> Option<String> {
    let load = found.load?;
    let point = found.points.iter().find(|point| point.load == load)?;
    busiest(topology, point)
}

/// Formats the utilisation of services, the busiest first.
fn busiest(topology: &Topology, point: &Point) -> Option<String> {
    let (first, others) = point.utilisations.split_first()?;
    let name = |service: u32| &topology.services[service as usize].name;
    let mut line = format!(
        "  bottleneck   {}, {:.0} % busy",
        name(first.0),
        first.1 * 100.0
    );
    for &(service, part) in others {
        let _ = write!(line, "; {} {:.0} %", name(service), part * 100.0);
    }
    Some(line)
}
