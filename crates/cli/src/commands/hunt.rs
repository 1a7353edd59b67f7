//! `corsair hunt`: searches for a fault, or a pair of faults, that breaks the budgets of an architecture.

use crate::commands::variants::{self, RunArgs};
use crate::console::Console;
use crate::interrupt;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use corsair::Config;
use corsair_arch::hunt::{Budget, Finding, Hunt, HuntError, Trial, describe};
use corsair_arch::input_file::read_bytes;
use corsair_arch::sweep::Shard;
use corsair_arch::{DefinitionText, PlaceFault, Scale, Setup, TimeSpan, in_parallel};
use corsair_observe::Replacement;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The exit code if a budget is broken.
const BROKEN: u8 = 1;
/// The exit code of a hunt whose time ran out.
const UNFINISHED: u8 = 3;
/// Longest finding that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The flags of `corsair hunt`.
#[derive(Debug, Args)]
pub struct HuntArgs {
    /// Architecture: a name or a file
    #[arg(long, short, value_name = "NAME", required_unless_present = "replay")]
    arch: Option<String>,
    /// Budget that must hold: 'p99 < 200ms', 'errors < 1%', 'recovers within 60s'; repeat it for several
    /// [default: errors < 1%, recovers within 1s]
    #[arg(long, value_name = "BUDGET")]
    budget: Vec<Budget>,
    /// Start of each fault [default: a quarter of the run]
    #[arg(long, value_name = "TIME")]
    at: Option<TimeSpan>,
    /// Duration of each fault [default: a quarter of the run]
    #[arg(long = "for", value_name = "TIME")]
    lasting: Option<TimeSpan>,
    /// Also try pairs of faults that break no budget alone
    #[arg(long)]
    pairs: bool,
    /// Write the first finding to this file
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Run a finding again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arch", "budget", "pairs", "out", "shard", "at", "lasting"])]
    replay: Option<PathBuf>,
    /// Longest time for the hunt
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::text::duration)]
    time: Duration,
    /// Try only every N-th set of faults, beginning with the I-th
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    run: RunArgs,
}

/// Hunts, or replays. The exit code is 0 if no budget is broken, 1 if one is, and 3 if the time ran
/// out first.
///
/// # Errors
/// If the flags, the definition or a file are invalid.
pub fn run(args: &HuntArgs) -> Result<ExitCode> {
    match (&args.replay, &args.arch) {
        (Some(file), _) => replay(args, file),
        (None, Some(arch)) => search(args, arch),
        (None, None) => Err(anyhow!("give an architecture (-a) or a finding (--replay)")),
    }
}

/// The result of a hunt.
struct Found {
    faults: Vec<PlaceFault>,
    trial: Trial,
}

struct Searcher<'a> {
    args: &'a HuntArgs,
    hunt: Hunt,
    config: Config,
    deadline: Option<Instant>,
    console: Console,
    found: Vec<Found>,
    is_whole: bool,
}

fn search(args: &HuntArgs, arch: &str) -> Result<ExitCode> {
    let quarter = || format!("{}ns", (args.run.duration / 4).as_nanos()).parse();
    let quarter: TimeSpan = quarter().map_err(|error: String| anyhow!(error).context("-d"))?;
    let mut budgets = args.budget.clone();
    if budgets.is_empty() {
        budgets.push(Budget::Errors(0.01));
        let second = "1s".parse().map_err(|error: String| anyhow!(error))?;
        budgets.push(Budget::Recovers(second));
    }
    let config = args.run.config();
    interrupt::on_ctrl_c(config.cancel.clone());
    let mut searcher = Searcher {
        args,
        hunt: Hunt {
            text: args.run.find(arch)?,
            setup: args.run.setup(false),
            budgets,
        },
        config,
        deadline: Instant::now().checked_add(args.time),
        console: Console::new(true),
        found: Vec::new(),
        is_whole: true,
    };
    let calm = searcher.hunt.run(&[], &searcher.config, args.run.seed);
    let Some(calm) = calm.map_err(flagged)? else {
        return Ok(ExitCode::from(UNFINISHED));
    };
    searcher
        .console
        .line(format_args!("without faults: {}", numbers(&calm)));
    if !calm.broken.is_empty() {
        return Err(anyhow!(
            "{arch} breaks its budgets without any fault ({}); give it less load or wider budgets",
            calm.broken.join(", ")
        ));
    }
    let (at, lasting) = (args.at.unwrap_or(quarter), args.lasting.unwrap_or(quarter));
    let faults = searcher.hunt.faults(at, lasting).map_err(flagged)?;
    let single: Vec<Vec<PlaceFault>> = faults.iter().map(|fault| vec![fault.clone()]).collect();
    let breaking = searcher.try_all("faults", &single)?;
    if args.pairs {
        let harmless: Vec<&PlaceFault> = (0..faults.len())
            .filter(|index| !breaking.contains(index))
            .map(|index| &faults[index])
            .collect();
        let mut pairs = Vec::new();
        for (index, one) in harmless.iter().enumerate() {
            let others = harmless[index + 1..].iter();
            pairs.extend(others.map(|other| vec![(*one).clone(), (*other).clone()]));
        }
        searcher.try_all("pairs of the others", &pairs)?;
    }
    searcher.finish(arch)
}

impl Searcher<'_> {
    /// Runs all sets of faults that belong to this shard, prints those that break a budget, and returns them.
    fn try_all(&mut self, what: &str, sets: &[Vec<PlaceFault>]) -> Result<BTreeSet<usize>> {
        let shard = self.args.shard.unwrap_or(Shard::WHOLE);
        let chosen: Vec<usize> = (0..shard.runs(sets.len())).map(|n| shard.run(n)).collect();
        let style =
            ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {per_sec}, {eta} left")?;
        let bar = ProgressBar::new(chosen.len() as u64).with_style(style);
        self.console.set_bar(Some(bar.clone()));
        let began = Instant::now();
        let (hunt, config, deadline) = (&self.hunt, &self.config, self.deadline);
        let (seed, workers) = (self.args.run.seed, config.workers.get());
        let trials = in_parallel(workers, chosen.len(), |number| {
            if deadline.is_some_and(|end| Instant::now() >= end) {
                return Ok(None);
            }
            let trial = hunt.run(&sets[chosen[number]], config, seed);
            bar.inc(1);
            trial
        });
        bar.finish_and_clear();
        self.console.set_bar(None);
        let (mut breaking, mut lines, mut made) = (BTreeSet::new(), Vec::new(), 0u32);
        for (index, trial) in chosen.into_iter().zip(trials) {
            let Some(trial) = trial.map_err(flagged)? else {
                self.is_whole = false;
                continue;
            };
            made += 1;
            if !trial.broken.is_empty() {
                let faults = sets[index].clone();
                let words: Vec<String> = faults.iter().map(describe).collect();
                lines.push(format!(
                    "  {}: {}",
                    words.join(" and "),
                    trial.broken.join(", ")
                ));
                breaking.insert(index);
                self.found.push(Found { faults, trial });
            }
        }
        let rate = f64::from(made) / began.elapsed().as_secs_f64().max(1e-9);
        self.console.line(format_args!(
            "{made} of {} {what} in {rate:.1} runs/s: {} break a budget",
            sets.len(),
            breaking.len()
        ));
        lines.iter().for_each(|line| self.console.line(line));
        Ok(breaking)
    }

    fn finish(self, arch: &str) -> Result<ExitCode> {
        if let (Some(path), Some(found)) = (&self.args.out, self.found.first()) {
            let run = &self.args.run;
            let duration = format!("{}ns", run.duration.as_nanos());
            let finding = Finding {
                arch: arch.to_owned(),
                regions: self.hunt.setup.scale.regions,
                population: run.population,
                duration: duration.parse().map_err(|error: String| anyhow!(error))?,
                load: run.load.clone(),
                seed: run.seed,
                budgets: self.hunt.budgets.clone(),
                faults: found.faults.clone(),
                digest: format!("{:016x}", found.trial.digest),
            };
            let mut file = Replacement::begin(path).context("--out")?;
            let text = serde_json::to_string_pretty(&finding)? + "\n";
            file.write_all(text.as_bytes())
                .map_err(|error| file.failed(error))?;
            file.finish()?;
            let path = path.display();
            self.console.line(format_args!(
                "the first is in {path}; corsair hunt --replay {path} runs it again"
            ));
        }
        if !self.is_whole {
            let line = "the time ran out (--time) before all were tried";
            self.console.line(line);
        }
        Ok(match (self.found.is_empty(), self.is_whole) {
            (false, _) => ExitCode::from(BROKEN),
            (true, false) => ExitCode::from(UNFINISHED),
            (true, true) => ExitCode::SUCCESS,
        })
    }
}

fn replay(args: &HuntArgs, path: &Path) -> Result<ExitCode> {
    let shown = path.display();
    let bytes =
        read_bytes(path, MOST_BYTES).map_err(|error| anyhow!("cannot read {shown}: {error}"))?;
    let finding: Finding = serde_json::from_slice(&bytes)
        .map_err(|error| anyhow!("{shown} is not a finding of corsair hunt: {error}"))?;
    let text: DefinitionText = args.run.find(&finding.arch)?;
    let hunt = Hunt {
        text,
        setup: Setup {
            scale: Scale {
                regions: finding.regions,
                percent: finding.population,
            },
            duration: Duration::from_nanos(finding.duration.nanos()),
            warm_up: args.run.warm_up,
            load: finding.load,
            sized: false,
        },
        budgets: finding.budgets,
    };
    let config = args.run.config();
    interrupt::on_ctrl_c(config.cancel.clone());
    let Some(trial) = hunt
        .run(&finding.faults, &config, finding.seed)
        .map_err(flagged)?
    else {
        return Ok(ExitCode::from(UNFINISHED));
    };
    let console = Console::new(true);
    for fault in &finding.faults {
        console.line(describe(fault));
    }
    console.line(numbers(&trial));
    let digest = format!("{:016x}", trial.digest);
    console.line(match digest == finding.digest {
        true => format!("digest {digest}, as in {shown}"),
        false => format!(
            "digest {digest}, but {shown} has {}; the definition has changed",
            finding.digest
        ),
    });
    if trial.broken.is_empty() {
        console.line("all budgets hold");
        return Ok(ExitCode::SUCCESS);
    }
    console.line(format_args!("breaks a budget: {}", trial.broken.join(", ")));
    Ok(ExitCode::from(BROKEN))
}

fn numbers(trial: &Trial) -> String {
    let measured = &trial.measured;
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, errors {:.2} %",
        measured.p50 * 1e3,
        measured.p99 * 1e3,
        measured.errors * 100.0
    )
}

/// Returns an error with the flag that caused it.
fn flagged(error: HuntError) -> anyhow::Error {
    match error {
        HuntError::Setup(setup) => variants::flagged(setup),
        HuntError::NoTime(..) => anyhow!("{error}; give -d more, or --at and --for less"),
        other => anyhow!("{other}"),
    }
}
