//! `corsair maelstrom -w WORKLOAD`: runs the workloads of Jepsen's Maelstrom, with the flags of the original.

use crate::console::Console;
use crate::interrupt;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use corsair_arch::input_file::read_bytes;
use corsair_maelstrom::{LatencyShape, Program, Report, TOPOLOGIES, Test, Topology, nodes};
use corsair_observe::Replacement;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The exit code of a violation.
const INVALID: u8 = 1;
/// The exit code if the checker could not decide.
const UNKNOWN: u8 = 3;
/// Longest fault plan that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The flags of `corsair maelstrom`.
#[derive(Debug, Args)]
pub struct MaelstromArgs {
    /// Workload: echo, unique-ids, broadcast, g-set, g-counter, pn-counter, kafka or lin-kv
    #[arg(long, short, value_name = "NAME", value_parser = PossibleValuesParser::new(corsair_maelstrom::workloads()), hide_possible_values = true)]
    workload: String,
    /// Program of the nodes; without it, nodes are actors in virtual time
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    node_count: u32,
    /// Number of clients, or a multiple of the nodes: 4n
    #[arg(long, value_name = "N", default_value = "1n")]
    concurrency: Multiple,
    /// Operations a second
    #[arg(long, value_name = "RATE", default_value_t = 5.0)]
    rate: f64,
    /// Duration of the load, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    time_limit: f64,
    /// Mean latency between nodes, in milliseconds
    #[arg(long, value_name = "MILLIS", default_value_t = 0)]
    latency: u32,
    /// Distribution of latencies: constant, uniform or exponential
    #[arg(long, value_name = "TYPE", default_value = "constant", value_parser = PossibleValuesParser::new(["constant", "uniform", "exponential"]).try_map(|name| name.parse::<LatencyShape>()), hide_possible_values = true)]
    latency_dist: LatencyShape,
    /// Neighbours that broadcast offers: line, grid, tree, tree2, tree3, tree4 or total
    #[arg(long, value_name = "SPEC", default_value = "grid", value_parser = PossibleValuesParser::new(TOPOLOGIES), hide_possible_values = true)]
    topology: String,
    /// Faults: partition
    #[arg(long, value_name = "FAULTS", value_parser = PossibleValuesParser::new(["partition"]), hide_possible_values = true)]
    nemesis: Option<String>,
    /// Mean time between the beginnings and ends of partitions, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    nemesis_interval: f64,
    /// Further faults: a plan in JSON with loss, duplicates, late messages, partitions and delays
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Part of operations that must succeed: total, or a number from 0 to 1
    #[arg(long, value_name = "EXPECTED")]
    availability: Option<String>,
    /// Keys that kafka uses at a time
    #[arg(long, value_name = "N", default_value_t = 10)]
    key_count: u32,
    /// Messages that kafka sends to a key
    #[arg(long, value_name = "N", default_value_t = 16)]
    max_writes_per_key: u32,
    /// Show what nodes write to standard error
    #[arg(long)]
    log_stderr: bool,
    /// Write the history to this file, for corsair check
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Threads, if nodes are actors
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN)]
    workers: NonZeroUsize,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// A number of clients: `10`, or `4n` for four on each node.
#[derive(Clone, Copy, Debug)]
struct Multiple {
    number: u32,
    is_for_each_node: bool,
}

impl std::str::FromStr for Multiple {
    type Err = String;

    fn from_str(text: &str) -> Result<Multiple, String> {
        let digits = text.strip_suffix('n').unwrap_or(text);
        let number = digits.parse().map_err(|_| {
            format!("'{text}' is not a number of clients; expected one like 10, or 4n for four on each node")
        })?;
        let is_for_each_node = digits.len() < text.len();
        Ok(Multiple {
            number,
            is_for_each_node,
        })
    }
}

/// Runs the test. The exit code is 0 if the result is valid, 1 if it is invalid, and 3 if the checker could not decide.
///
/// # Errors
/// If the flags, a file or a node are invalid.
pub fn run(args: &MaelstromArgs) -> Result<ExitCode> {
    let test = test(args)?;
    interrupt::on_ctrl_c(test.cancel.clone());
    let began = Instant::now();
    let report = match &args.bin {
        Some(bin) => test.run_processes(&Program {
            bin: bin.clone(),
            args: args.args.clone(),
            log_stderr: args.log_stderr,
        })?,
        None if args.args.is_empty() => nodes::run(&test)?,
        None => return Err(anyhow!("arguments after -- are for a program (--bin)")),
    };
    let elapsed = began.elapsed();
    print(args, &report, elapsed);
    if let Some(path) = &args.history {
        let mut file = Replacement::begin(path).context("--history")?;
        let text = report.to_json();
        file.write_all(text.as_bytes())
            .map_err(|error| file.failed(error))?;
        file.finish()?;
    }
    Ok(
        match (report.is_valid(), report.findings.violations.is_empty()) {
            (true, _) => ExitCode::SUCCESS,
            (false, false) => ExitCode::from(INVALID),
            (false, true) => ExitCode::from(UNKNOWN),
        },
    )
}

fn print(args: &MaelstromArgs, report: &Report, elapsed: Duration) {
    let console = Console::new(true);
    let text = report.to_string();
    let (facts, verdict) = text.trim_end().rsplit_once('\n').unwrap_or(("", &text));
    console.line(facts);
    // Actors run as fast as they can; processes at the speed of the clock.
    if let (None, Some(digest)) = (&args.bin, report.digest) {
        let messages = report.messages.clients + report.messages.nodes;
        let rate = messages as f64 / elapsed.as_secs_f64().max(1e-9);
        console.line(format_args!(
            "  {messages} messages in {:.0} ms, check included: {:.0} a second; digest {digest:016x}",
            elapsed.as_secs_f64() * 1e3,
            rate
        ));
    }
    console.line(verdict);
}

fn test(args: &MaelstromArgs) -> Result<Test> {
    let seconds = |flag: &str, seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| anyhow!("{flag}: {seconds} is not a number of seconds"))
    };
    let clients = match args.concurrency {
        Multiple {
            number,
            is_for_each_node: true,
        } => number.saturating_mul(args.node_count),
        Multiple { number, .. } => number,
    };
    let faults = match &args.faults {
        None => Default::default(),
        Some(path) => {
            let shown = path.display();
            let bytes = read_bytes(path, MOST_BYTES)
                .map_err(|error| anyhow!("cannot read {shown}: {error}"))?;
            serde_json::from_slice(&bytes)
                .map_err(|error| anyhow!("{shown} is not a fault plan: {error}"))?
        }
    };
    let availability = match args.availability.as_deref() {
        None => None,
        Some("total") => Some(1.0),
        Some(text) => Some(text.parse().map_err(|_| {
            anyhow!("--availability: '{text}' is not 'total' or a number from 0 to 1")
        })?),
    };
    let topology: Topology = args
        .topology
        .parse()
        .map_err(|error: String| anyhow!(error))?;
    let interval = seconds("--nemesis-interval", args.nemesis_interval)?;
    Ok(Test {
        node_count: args.node_count,
        concurrency: clients,
        rate: args.rate,
        time_limit: seconds("--time-limit", args.time_limit)?,
        latency: Duration::from_millis(args.latency.into()),
        latency_shape: args.latency_dist,
        topology,
        partitions: args.nemesis.as_ref().map(|_| interval),
        faults,
        availability,
        key_count: args.key_count,
        max_writes_per_key: args.max_writes_per_key,
        seed: args.seed,
        workers: args.workers,
        ..Test::new(&*args.workload)
    })
}
