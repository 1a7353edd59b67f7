//! `corsair marshal`: compares the costs of bulk marshalling strategies.
//!
//! The documents of every strategy are compared with the documents of the serial strategy before anything is timed.
//! Allocations are counted for the whole process by its global allocator.

mod measure;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use corsair_serial::{
    Chunked, Format, Json, ParallelTasks, ParallelThreads, Pooled, Postcard, Serial, Strategy,
};
use corsair_testing::allocations::{Count, Counting};
use corsair_testing::people::{self, Person};
use measure::{Allocated, Subject, Table, measure};
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The maximum number of workers that can be requested.
const MOST_WORKERS: usize = 1024;

/// The flags of `corsair marshal`.
#[derive(Debug, Args)]
pub struct MarshalArgs {
    /// Strategy to measure; the serial one is always measured as well
    #[arg(long, value_enum, default_value_t = Which::All)]
    strategy: Which,
    /// Number of workers: a number, a multiple of the cores such as 2x, or a range such as 1x..10x
    #[arg(long, value_name = "N|1x..10x", default_value = "1x", value_parser = workers)]
    workers: Workers,
    /// Number of people to generate
    #[arg(long, default_value_t = 1000, conflicts_with = "file")]
    count: usize,
    /// Seed of the generated people
    #[arg(long, default_value_t = 7, conflicts_with = "file")]
    seed: u64,
    /// Format of the documents
    #[arg(long, value_enum, default_value_t = Encoding::Json)]
    format: Encoding,
    /// Time to measure each line of the table, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300)]
    time: u64,
    /// A JSON array of values to marshal instead of generated people
    file: Option<PathBuf>,
}

/// Strategies to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    All,
    Serial,
    Parallel,
    Pooled,
    Chunked,
}

impl Which {
    fn includes(self, other: Which) -> bool {
        self == Which::All || self == other
    }
}

/// Formats to marshal to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Encoding {
    /// JSON by serde_json
    Json,
    /// JSON by sonic-rs
    Sonic,
    /// Compact binary
    Postcard,
}

/// The numbers of workers; each strategy has a table line for each number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Workers(Vec<usize>);

/// Parses `4`, `2x` or `1x..10x`.
fn workers(text: &str) -> Result<Workers, String> {
    let cores = available_parallelism().map_or(1, usize::from);
    let refusal = || {
        format!(
            "give a number from 1 to {MOST_WORKERS} like 4, a multiple of the {cores} cores like 2x, or a range like 1x..10x"
        )
    };
    let times = |text: &str| text.strip_suffix('x').and_then(|times| times.parse().ok());
    let counts: Option<Vec<usize>> = match text.split_once("..") {
        Some((first, last)) => times(first)
            .zip(times(last))
            .filter(|&(first, last): &(usize, usize)| first <= last && last <= MOST_WORKERS)
            .map(|(first, last)| (first..=last).map(|times| times * cores).collect()),
        None => match times(text) {
            Some(times) => Some(vec![cores.saturating_mul(times)]),
            None => text.parse().ok().map(|workers| vec![workers]),
        },
    };
    counts
        .filter(|counts| {
            counts
                .iter()
                .all(|count| (1..=MOST_WORKERS).contains(count))
        })
        .map(Workers)
        .ok_or_else(refusal)
}

/// The contents of a file.
enum Records {
    /// Records with the same fields as the generated people.
    People(Vec<Person>),
    /// Any other JSON values.
    Values(Vec<serde_json::Value>),
}

/// Measures, and prints the table.
///
/// # Errors
///
/// If the file cannot be read or is not a JSON array, a value cannot be marshalled, or a thread
/// cannot be started.
pub fn run(args: &MarshalArgs) -> anyhow::Result<()> {
    let table = match &args.file {
        None => table(
            args,
            "generated people",
            &people::generate(args.count, args.seed),
        )?,
        Some(path) => match read(path)? {
            Records::People(people) => table(args, "people", &people)?,
            Records::Values(values) => table(args, "values", &values)?,
        },
    };
    io::stdout().write_all(table.as_bytes())?;
    Ok(())
}

/// Reads a JSON array.
fn read(path: &Path) -> anyhow::Result<Records> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if let Ok(people) = serde_json::from_slice(&text) {
        return Ok(Records::People(people));
    }
    serde_json::from_slice(&text)
        .map(Records::Values)
        .with_context(|| {
            format!(
                "{} is not a JSON array; put the values in [ and ], with commas between them",
                path.display()
            )
        })
}

/// Prints the table in the requested format.
fn table<T: Serialize + Sync>(
    args: &MarshalArgs,
    what: &str,
    values: &[T],
) -> anyhow::Result<String> {
    match args.format {
        Encoding::Json => compare(args, what, &Json, values),
        Encoding::Postcard => compare(args, what, &Postcard, values),
        #[cfg(feature = "sonic")]
        Encoding::Sonic => compare(args, what, &corsair_serial::Sonic, values),
        #[cfg(not(feature = "sonic"))]
        Encoding::Sonic => bail!(
            "this build has no sonic-rs; build it with --features sonic, or use --format json"
        ),
    }
}

/// Measures the requested strategies.
fn compare<F: Format, T: Serialize + Sync>(
    args: &MarshalArgs,
    what: &str,
    format: &F,
    values: &[T],
) -> anyhow::Result<String> {
    if values.is_empty() {
        bail!("there is nothing to marshal; give a --count above 0, or a file with values");
    }
    let expected = Serial.marshal(format, values)?;
    // The strategies must outlive the subjects, which borrow them.
    let asked = |which| match args.strategy.includes(which) {
        true => args.workers.0.as_slice(),
        false => &[],
    };
    let parallel = asked(Which::Parallel).iter();
    let threads: Vec<_> = parallel.clone().map(|&n| ParallelThreads::new(n)).collect();
    let tasks = parallel
        .map(|&n| ParallelTasks::new(n))
        .collect::<Result<Vec<_>, _>>()?;
    let pooled = asked(Which::Pooled)
        .iter()
        .map(|&n| Pooled::new(n))
        .collect::<Result<Vec<_>, _>>()?;
    let chunked = asked(Which::Chunked)
        .iter()
        .map(|&n| Chunked::new(n))
        .collect::<Result<Vec<_>, _>>()?;
    let mut subjects = vec![Subject::verified(&Serial, format, values, &expected)?];
    for strategy in &threads {
        subjects.push(Subject::verified(strategy, format, values, &expected)?);
    }
    for strategy in &tasks {
        subjects.push(Subject::verified(strategy, format, values, &expected)?);
    }
    for strategy in &pooled {
        subjects.push(Subject::verified(strategy, format, values, &expected)?);
    }
    for strategy in &chunked {
        subjects.push(Subject::verified(strategy, format, values, &expected)?);
    }

    let measurements = measure(&mut subjects, Duration::from_millis(args.time), &allocated)?;
    Ok(format!(
        "{} {what} as {}, {} bytes each; bytes/run and allocs/run are the allocations of a run\n{}",
        values.len(),
        F::NAME,
        expected.size() / values.len(),
        Table(&measurements)
    ))
}

/// Returns the allocations of the process during `run`.
fn allocated(run: &mut dyn FnMut()) -> Allocated {
    let count = Count::start();
    run();
    let total = count.stop();
    Allocated {
        allocations: total.allocations,
        bytes: total.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: MarshalArgs,
    }

    fn args(line: &str) -> MarshalArgs {
        let words = std::iter::once("marshal").chain(line.split_whitespace());
        Command::try_parse_from(words).unwrap().args
    }

    #[test]
    fn workers_are_a_number_a_multiple_of_the_cores_or_a_range() {
        let cores = available_parallelism().unwrap().get();
        assert_eq!(workers("4").unwrap().0, [4]);
        assert_eq!(workers("3x").unwrap().0, [3 * cores]);
        assert_eq!(workers("1x..3x").unwrap().0, [cores, 2 * cores, 3 * cores]);
        for wrong in [
            "", "0", "0x", "x", "3x..1x", "1..3", "1x..", "-1", "9999999x", "1e3",
        ] {
            let message = workers(wrong).unwrap_err();
            assert!(message.contains("1x..10x"), "{wrong}: {message}");
        }
    }

    #[test]
    fn the_table_has_a_line_per_strategy_and_worker_count_and_counts_allocations() {
        let args = args("--workers 1x..2x --count 50 --time 1 --format postcard");
        let people = people::generate(args.count, args.seed);
        let text = table(&args, "people", &people).unwrap();
        assert_eq!(text.lines().count(), 2 + 1 + 4 * 2, "{text}");
        let threads = text
            .lines()
            .find(|line| line.starts_with("parallel (threads)"));
        let allocations: u64 = threads
            .and_then(|line| line.split_whitespace().rev().nth(1))
            .and_then(|number| number.parse().ok())
            .unwrap();
        assert!(allocations > 0, "{text}");
    }

    #[test]
    fn one_strategy_is_measured_along_with_the_serial_one() {
        let args = args("--strategy chunked --workers 2 --count 10 --time 1");
        let text = table(&args, "people", &people::generate(10, 1)).unwrap();
        let names: Vec<_> = text
            .lines()
            .skip(2)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(names, ["serial", "chunked"]);
    }

    #[test]
    fn nothing_to_marshal_is_an_error() {
        let error = table::<Person>(&args(""), "people", &[]).unwrap_err();
        assert!(error.to_string().contains("--count"), "{error}");
    }
}
