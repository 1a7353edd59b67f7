//! Searches for faults of a cluster of `corsair-courier serve` in virtual time: the unedited program runs under faults
//! that are drawn from seeds, and the histories of its clients are checked.

mod clients;
mod cluster;
mod faults;
mod nodes;

use anyhow::{Context, Result, bail};
use clap::Parser;
use cluster::{Cluster, OPERATIONS, SECONDS};
use corsair_hunt::{
    Failure, Hunt, HuntError, Hunted, Replay, Subject, explain, hunt_with, shrink_within,
};
use faults::LEAST;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The number of runs between two reports.
const REPORT: u64 = 20;

/// The number of lines of a history that are printed.
const SHOWN: usize = 12;

/// The file of a failure as it was found, with which a later build searches for it.
const FOUND: &str = "found.json";
/// The file of the shrunk failure.
const SHRUNK: &str = "replay.json";

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// The number of nodes
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    nodes: u32,
    /// The virtual seconds of a run; faults stop after two thirds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(3..=3600))]
    length: u32,
    /// The maximum number of runs
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    runs: u64,
    /// The maximum duration of the search in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    time: u64,
    /// The seed of the search
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// The number of this search, of several that run side by side
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    shard: u64,
    /// The directory for what is found: the failure, its explanation, the picture of the history and the log
    #[arg(long, value_name = "DIR", default_value = "found")]
    out: PathBuf,
    /// The maximum duration of shrinking in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    shrink: u64,
    /// Run each seed on two workers as well, and compare the digests
    #[arg(long)]
    repeat: bool,
    /// Run the failure in this file instead; if the program has changed since, search for it with its faults
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    if let Err(error) = corsair_host::init() {
        eprintln!("courier-hunt: {error}");
        return ExitCode::from(2);
    }
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("courier-hunt: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode> {
    let cluster = Cluster {
        nodes: args.nodes,
        time: args.length * 1_000,
        repeats: args.repeat,
        ..Cluster::default()
    };
    let begun = Instant::now();
    let hunt = Hunt {
        seed: args.seed,
        runs: args.runs,
        time: Duration::from_secs(args.time),
        threads: 1,
        shard: args.shard,
        ..Hunt::default()
    };
    let progress = |runs: u64| {
        let totals = &cluster.totals;
        println!(
            "{runs} runs in {:.0} s, {} with {OPERATIONS} operations, {LEAST} faults and {SECONDS} virtual seconds; {} operations, {} messages at sockets, {} faults",
            begun.elapsed().as_secs_f64(),
            totals.counted.load(Relaxed),
            totals.operations.load(Relaxed),
            totals.shown.load(Relaxed),
            totals.faults.load(Relaxed)
        );
    };
    let report_progress = |hunted: &Hunted| {
        if hunted.runs.is_multiple_of(REPORT) {
            progress(hunted.runs);
        }
    };
    let hunted = match &args.replay {
        None => hunt_with(&cluster, &hunt, report_progress)?,
        Some(path) => {
            let replay = Replay::load(path)?;
            if let Some(failure) = again(&cluster, &replay)? {
                report(&cluster, &failure, &args.out)?;
                return Ok(ExitCode::FAILURE);
            }
            println!(
                "the seed does not violate '{}'; other seeds, faults nearby:",
                replay.property
            );
            replay.search(&cluster, &hunt, report_progress)?
        }
    };
    progress(hunted.runs);
    let Some(failure) = hunted.failure else {
        println!("no violation");
        return Ok(ExitCode::SUCCESS);
    };
    println!("violated: {} (seed {})", failure.property, failure.seed);
    write_replay(&cluster, &failure, &args.out, FOUND)?;
    let shrunk = shrink_within(&cluster, &failure, Duration::from_secs(args.shrink))?;
    println!(
        "shrunk in {} runs from {} to {} faults and from {} to {} system calls",
        shrunk.runs,
        failure.plan.faults.len(),
        shrunk.failure.plan.faults.len(),
        failure.events,
        shrunk.failure.events
    );
    report(&cluster, &shrunk.failure, &args.out)?;
    Ok(ExitCode::FAILURE)
}

/// Runs a replay, and returns its failure; `None` if this build has another run for the seed, or the fault is repaired.
fn again(cluster: &Cluster, replay: &Replay) -> Result<Option<Failure>> {
    match replay.run(cluster, 1) {
        Ok(result) => {
            println!(
                "violated: {} (digest {:016x})",
                replay.property, result.digest
            );
            Ok(Some(Failure {
                property: replay.property.clone(),
                seed: replay.seed,
                plan: replay.plan.clone(),
                events: result.events,
            }))
        }
        Err(HuntError::NotReproduced { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn write(out: &Path, name: &str, contents: &str) -> Result<()> {
    let path = out.join(name);
    let written = std::fs::create_dir_all(out).and_then(|()| std::fs::write(&path, contents));
    written.with_context(|| path.display().to_string())
}

fn write_replay(cluster: &Cluster, failure: &Failure, out: &Path, name: &str) -> Result<()> {
    let replay = Replay {
        program: cluster.name().to_owned(),
        property: failure.property.clone(),
        seed: failure.seed,
        plan: failure.plan.clone(),
    };
    write(out, name, &replay.to_json())
}

/// Runs a failure again, writes what there is to see of it, and prints the explanation.
fn report(cluster: &Cluster, failure: &Failure, out: &Path) -> Result<()> {
    write_replay(cluster, failure, out, SHRUNK)?;
    let (answer, _) = cluster.simulate(failure.seed, &failure.plan, 1);
    let Some(violation) = answer.violation else {
        bail!("the run does not violate '{}' again", failure.property);
    };
    let faults = explain(cluster, failure)?.text();
    let history = violation.explanation;
    write(out, "explanation.txt", &format!("{faults}\n{history}"))?;
    write(out, "log.txt", &violation.log)?;
    if let Some(picture) = violation.picture {
        write(out, "history.svg", &picture)?;
    }
    println!("{faults}\n{}", end_of(&history));
    println!(
        "the picture, the log and the replay are in {}",
        out.display()
    );
    Ok(())
}

/// Returns the last lines of a text.
fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(SHOWN);
    let note = match left_out {
        0 => String::new(),
        _ => format!("({left_out} earlier lines are in explanation.txt)\n"),
    };
    note + &lines[left_out..].join("\n")
}
