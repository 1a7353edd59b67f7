//! `corsair fork DIR --branches FILE`: runs many branches of one saved run and compares them.

use crate::arch::{self, saved, source};
use crate::checkpoint;
use crate::commands::compare::shown;
use crate::commands::{resume, variants};
use crate::console::Console;
use crate::flags::values::Values;
use crate::format::Format;
use crate::options::{Options, ServiceOptions, WorkloadOptions};
use crate::progress::{Bar, Measure};
use crate::{interrupt, text};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair::{Config, Outcome, Snapshot, Time};
use corsair_arch::input_file::read_file_text;
use corsair_arch::live::Live;
use corsair_arch::summary::ComparedRow;
use corsair_arch::{
    Architecture, Branch, Compared, Measurement, Plan, Setting, Topology, compared, in_parallel,
    measured,
};
use serde_json::{Map, Value};
use std::io::{self};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of branches of one saved run.
const MOST_BRANCHES: usize = 1_000;

/// The arguments of `corsair fork`.
#[derive(Args, Clone, Debug)]
pub struct ForkArgs {
    /// Directory given as --checkpoint-dir, or one of the checkpoints in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// File with a line for each branch, NAME: FIELD=VALUE FIELD=VALUE; fields as for `corsair sweep`, or load=N% of the
    /// load
    #[arg(long, value_name = "FILE")]
    branches: PathBuf,
    /// Number of runs of each branch; the first one continues the random numbers of the saved run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seeds: usize,
    /// Stop at this point of virtual time [default: the end of the load]
    #[arg(long, value_name = "TIME", value_parser = text::duration)]
    until: Option<Duration>,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A branch with its name and its settings.
#[derive(Clone, Debug, PartialEq)]
struct NamedBranch {
    name: String,
    set: Vec<Setting>,
}

/// Runs all branches, and prints how they differ from the saved run.
///
/// # Errors
/// If the saved run, the file or a branch is invalid, or if a run fails.
pub fn run(args: &ForkArgs) -> Result<()> {
    if !(1..=10_000).contains(&args.seeds) {
        bail!("--seeds: {} is out of range; give 1 to 10000", args.seeds);
    }
    let mut branches = vec![NamedBranch {
        name: "as saved".to_owned(),
        set: Vec::new(),
    }];
    branches.extend(read(&args.branches)?);
    let from = checkpoint::read(&args.directory)?;
    let mut values = Values::default();
    resume::add_flags(&from, &mut values)?;
    let options = Options::read(&values)?;
    let WorkloadOptions::Services(services) = &options.what else {
        bail!(
            "{}: pirates have no fields that branches could set; see `corsair resume --seed-from-here`",
            from.directory.display()
        );
    };
    let topology = source::topology(&options, services)?;
    saved::check(&options, &from, &topology)?;
    let forks = Forks {
        snapshot: checkpoint::snapshot_of(&from)?,
        plan: plan(&options, services),
        config: Config {
            workers: NonZeroUsize::MIN,
            ..options.config.clone()
        },
        topology,
        until: args.until.map(|until| Time::ZERO.after(until)),
    };
    let made = branches.iter().map(|named| {
        let branch = saved::branch(&options, &forks.topology, &named.set, None);
        let branch = branch.and_then(|branch| forks.check(branch));
        branch.with_context(|| format!("--branches: {}", named.name))
    });
    let made = made.collect::<Result<Vec<Branch>>>()?;
    interrupt::on_ctrl_c(options.config.cancel.clone());
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let workers = args.workers.unwrap_or(cores).get();
    let console = Arc::new(Console::new(true));
    let bar = Bar::begin(&console, Measure::Clock);
    let runs = in_parallel(workers, made.len() * args.seeds, |number| {
        let (branch, repeat) = (number / args.seeds, number % args.seeds);
        // Branches use the same random numbers, so random variation does not affect the comparison.
        let seed = (repeat > 0).then(|| options.config.seed.wrapping_add(repeat as u64));
        let branch = Branch {
            seed,
            ..made[branch].clone()
        };
        forks.measure(&branch)
    });
    let mut rows: Vec<Vec<Measurement>> = vec![Vec::new(); made.len()];
    for (number, run) in runs.into_iter().enumerate() {
        let Some(run) = run? else {
            bail!("stopped before all branches were run");
        };
        rows[number / args.seeds].push(run);
    }
    drop(bar);
    print_measurements(args, &branches, &rows);
    Ok(())
}

/// A saved run with its branches.
struct Forks {
    snapshot: Snapshot,
    plan: Plan,
    config: Config,
    topology: Topology,
    until: Option<Time>,
}

impl Forks {
    /// Starts a branch. Its requests are counted from the checkpoint.
    fn begin(&self, branch: &Branch) -> Result<Live> {
        let branched = Architecture::branch(
            &self.config,
            &self.topology,
            branch,
            &self.plan,
            &self.snapshot,
        );
        let live = branched.and_then(|(branch, snapshot)| Live::hold(branch, snapshot));
        live.map_err(|error| anyhow!("{error}"))
    }

    /// Checks that a branch can be run, before any branch runs.
    fn check(&self, branch: Branch) -> Result<Branch> {
        let branch = Branch {
            counts_from_here: true,
            ..branch
        };
        let live = self.begin(&branch)?;
        if self.counted(&live).is_zero() {
            let (_, ends) = live.load();
            let (now, until) = (live.now(), self.until.unwrap_or(ends).min(ends));
            bail!("there is no load between {now}, when the run was saved, and {until}");
        }
        Ok(branch)
    }

    /// Returns the time during which requests are counted.
    fn counted(&self, live: &Live) -> Duration {
        let (begins, ends) = live.load();
        let until = self.until.unwrap_or(ends).min(ends);
        let from = begins.max(self.snapshot.time().unwrap_or(Time::ZERO));
        until.max(from).since(from)
    }

    /// Measures a branch; returns `None` if it was cancelled.
    fn measure(&self, branch: &Branch) -> Result<Option<Measurement>> {
        let mut live = self.begin(branch)?;
        let counted = self.counted(&live);
        let (report, totals) = match self.until {
            Some(until) if until < live.load().1 => {
                live.simulation().run_until(until);
                live.stop()
            }
            _ => live.finish()?,
        };
        let is_cancelled =
            report.outcome == Outcome::Cancelled || self.config.cancel.is_cancelled();
        Ok((!is_cancelled).then(|| measured(&totals, counted)))
    }
}

/// Returns the plan of the saved run, without its recorder.
fn plan(options: &Options, services: &ServiceOptions) -> Plan {
    Plan {
        interval: None,
        ..arch::plan(options, services, corsair_observe::Recorder::off())
    }
}

/// Reads the branches of a file.
fn read(path: &Path) -> Result<Vec<NamedBranch>> {
    let text = read_file_text(path);
    let text = text.with_context(|| format!("--branches: {}", path.display()))?;
    let mut branches: Vec<NamedBranch> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("--branches: {}:{number}", path.display());
        let branch = branch(line).map_err(|wrong| anyhow!("{wrong}"));
        let branch = branch.with_context(place)?;
        if branches.iter().any(|other| other.name == branch.name) {
            bail!("{}: there are two branches '{}'", place(), branch.name);
        }
        branches.push(branch);
    }
    match branches.len() {
        0 => bail!(
            "--branches: {} has no branches; write a line such as more: load=150%",
            path.display()
        ),
        more if more > MOST_BRANCHES => bail!(
            "--branches: {} has {} branches; make it at most {MOST_BRANCHES}",
            path.display(),
            more
        ),
        _ => Ok(branches),
    }
}

/// Parses a branch, for example `slow: services.db.service_time=4ms load=150%`.
fn branch(line: &str) -> Result<NamedBranch, String> {
    let (name, rest) = line
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty() && !name.contains('='))
        .ok_or_else(|| {
            format!("'{line}' has no name; write for example slow-db: services.db.service_time=4ms")
        })?;
    let name = name.trim();
    if name.starts_with('.') || name.contains(['/', '\\']) || name.contains(char::is_control) {
        return Err(format!(
            "'{name}' is not a name for a branch; use letters, digits, spaces, - and _, for example slow-db"
        ));
    }
    let set = rest.split_whitespace().map(variants::setting);
    let set = set.collect::<Result<Vec<Setting>, String>>()?;
    if set.is_empty() {
        return Err(format!(
            "'{name}' changes nothing; write for example {name}: load=150%"
        ));
    }
    Ok(NamedBranch {
        name: name.to_owned(),
        set,
    })
}

/// Prints the measurements of each branch, and their differences from the first branch.
fn print_measurements(args: &ForkArgs, branches: &[NamedBranch], rows: &[Vec<Measurement>]) {
    let [base, others @ ..] = rows else {
        return;
    };
    let tables: Vec<(&NamedBranch, Vec<Compared>)> = (branches[1..].iter())
        .zip(others)
        .map(|(branch, row)| (branch, compared(base, row)))
        .collect();
    let console = Console::new(true);
    if args.format == Format::Json {
        let tables = tables.iter().map(|(branch, table)| {
            let rows: Vec<ComparedRow> = table.iter().map(ComparedRow::new).collect();
            (branch.name.clone(), serde_json::json!(rows))
        });
        let tables: Map<String, Value> = tables.collect();
        return console.print(|out| {
            serde_json::to_writer(&mut *out, &tables).map_err(io::Error::from)?;
            writeln!(out)
        });
    }
    let mut head = format!("{:<11} {:>22}", "", branches[0].name);
    for (branch, _) in &tables {
        head += &format!(" {:>24}", branch.name);
    }
    console.line(head);
    for (place, name) in Measurement::NAMES.into_iter().enumerate() {
        let first = tables[0].1[place].of[0];
        let mut line = format!(
            "{:<11} {:>22}",
            name.trim_end_matches("_seconds"),
            shown(name, first)
        );
        for (_, table) in &tables {
            let row = &table[place];
            let mark = if row.difference.is_clear() { "*" } else { " " };
            line += &format!(" {:>22} {mark}", shown(name, row.of[1]));
        }
        console.line(line.trim_end());
    }
    if args.seeds == 1 {
        return console
            .line("corsair: one run of each branch: no interval; give --seeds 2 or more");
    }
    console.line(format_args!(
        "corsair: 95 % intervals from {} runs of each branch; * where a branch differs from the unchanged run",
        args.seeds
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_what_is_set() {
        let read = branch("slow db: services.db.service_time=4ms load=150%").unwrap();
        let set: Vec<_> = read
            .set
            .iter()
            .map(|one| (&*one.path, one.typed()))
            .collect();
        assert_eq!(read.name, "slow db");
        let expected = [
            ("services.db.service_time", "4ms".to_owned()),
            ("load", "150%".to_owned()),
        ];
        assert_eq!(set, expected);
        for wrong in [
            "load=3",
            "a:",
            "a: b",
            ": load=3",
            "../../x: load=3%",
            "a\\b: load=3%",
        ] {
            assert!(branch(wrong).is_err(), "{wrong}");
        }
    }
}
