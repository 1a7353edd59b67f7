//! `corsair sum`: adds up a range by halving it down to single numbers, both halves of every
//! range a process each.

use anyhow::{Context, Result, bail, ensure};
use clap::builder::EnumValueParser;
use clap::{Arg, ArgMatches, Command, ValueEnum, value_parser};
use corsair::fork_join::{Pool, fork_join, join};
use std::io::Write;
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

/// The range that is added up with an OS thread for every half spans at most so much.
const MOST_THREADS: u64 = 2_000;

/// The subcommand and its flags.
pub fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("NUMBER")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help(help)
    };
    Command::new("sum")
        .about("Add up a range of numbers by fork-join, and say what a fork costs")
        .arg(number("low", "0", "The first number"))
        .arg(number("high", "10000000", "The last number"))
        .arg(
            number("rounds", "10", "How often to do it")
                .value_parser(value_parser!(u32).range(1..)),
        )
        .arg(
            Arg::new("workers")
                .long("workers")
                .value_name("NUMBER")
                .value_parser(value_parser!(u16).range(1..=1024))
                .help("Worker threads [default: one for each core]"),
        )
        .arg(
            Arg::new("executor")
                .long("executor")
                .default_value("corsair")
                .value_parser(EnumValueParser::<Executor>::new())
                .help("Who runs the halves"),
        )
}

/// What the flags say.
#[derive(Clone, Debug)]
struct Args {
    low: u64,
    high: u64,
    rounds: u32,
    workers: usize,
    executor: Executor,
}

impl Args {
    fn read(given: &ArgMatches) -> Args {
        let number = |name| given.get_one::<u64>(name).copied().unwrap_or_default();
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Args {
            low: number("low"),
            high: number("high"),
            rounds: given.get_one::<u32>("rounds").copied().unwrap_or(1),
            workers: given
                .get_one::<u16>("workers")
                .map_or_else(cores, |n| usize::from(*n)),
            executor: given
                .get_one("executor")
                .copied()
                .unwrap_or(Executor::Corsair),
        }
    }
}

/// Who runs the halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// This project's fork-join of closures.
    Corsair,
    /// This project's fork-join of futures.
    Async,
    /// The join of rayon.
    Rayon,
    /// Two tokio tasks for every fork.
    Tokio,
    /// Two OS threads for every fork.
    Threads,
}

impl ValueEnum for Executor {
    fn value_variants<'a>() -> &'a [Executor] {
        use Executor::{Async, Corsair, Rayon, Threads, Tokio};
        &[Corsair, Async, Rayon, Tokio, Threads]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, help) = match self {
            Executor::Corsair => ("corsair", "this project's fork-join of closures"),
            Executor::Async => ("async", "this project's fork-join of futures"),
            Executor::Rayon => ("rayon", "rayon's join"),
            Executor::Tokio => ("tokio", "two tokio tasks for every fork"),
            Executor::Threads => ("threads", "two OS threads for every fork; for small ranges"),
        };
        Some(clap::builder::PossibleValue::new(name).help(help))
    }
}

/// Runs the command and prints what it measured.
///
/// # Errors
/// If the range is reversed, or its sum too large, or its halves are too many threads; and if the
/// system refuses what the executor needs.
pub fn run(given: &ArgMatches) -> Result<()> {
    let args = &Args::read(given);
    let expected = expected(args)?;
    let mut executor = args.executor.start(args.workers)?;
    let begin = Instant::now();
    for round in 1..=args.rounds {
        let sum = executor(args.low, args.high);
        ensure!(
            sum == expected,
            "round {round} gave {sum} instead of {expected}"
        );
    }
    let report = report(args, expected, begin.elapsed(), corsair::peak_memory());
    std::io::stdout()
        .lock()
        .write_all(report.as_bytes())
        .context("cannot write the result")
}

/// What the sum must be.
fn expected(args: &Args) -> Result<u64> {
    let (low, high) = (args.low, args.high);
    ensure!(
        low <= high,
        "the range from {low} to {high} is reversed; give --low the smaller number"
    );
    let count = u128::from(high - low) + 1;
    // At most 2^64 times 2^65, halved: just fits.
    let twice = (u128::from(low) + u128::from(high)).checked_mul(count);
    let Some(sum) = twice.and_then(|twice| u64::try_from(twice / 2).ok()) else {
        bail!("the sum from {low} to {high} does not fit into 64 bits; choose a smaller --high");
    };
    if args.executor == Executor::Threads && high - low > MOST_THREADS {
        bail!(
            "{} threads for the range from {low} to {high} are too many; with --executor threads \
             the range may span {MOST_THREADS} numbers",
            2 * u128::from(high - low)
        );
    }
    Ok(sum)
}

/// The lines that the command prints.
fn report(args: &Args, sum: u64, time: Duration, memory: Option<u64>) -> String {
    let rounds = args.rounds;
    let seconds = time.as_secs_f64() / f64::from(rounds);
    // A fork for every number but one, and two processes for every fork.
    let processes = 2 * u128::from(args.high - args.low);
    let mut report = format!(
        "The result is {sum}, ran {rounds} rounds, {seconds:.6} seconds per round.\n\
         {processes} processes per round"
    );
    if processes > 0 {
        report += &format!(
            ", {:.2} nanoseconds per process",
            seconds * 1e9 / processes as f64
        );
    }
    if let Some(bytes) = memory {
        report += &format!(", {:.1} MB of memory at most", bytes as f64 / 1e6);
    }
    report + ".\n"
}

impl Executor {
    /// Something that adds up ranges.
    fn start(self, workers: usize) -> Result<Box<dyn FnMut(u64, u64) -> u64>> {
        Ok(match self {
            Executor::Corsair => {
                let pool = Pool::new(workers)?;
                Box::new(move |low, high| pool.install(|| by_closures(low, high)))
            }
            Executor::Async => {
                let pool = Pool::new(workers)?;
                Box::new(move |low, high| pool.block_on(by_futures(low, high)))
            }
            Executor::Rayon => {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(workers)
                    .build()?;
                Box::new(move |low, high| pool.install(|| by_rayon(low, high)))
            }
            Executor::Tokio => {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(workers)
                    .build()
                    .context("cannot start tokio")?;
                Box::new(move |low, high| runtime.block_on(by_tasks(low, high)))
            }
            Executor::Threads => Box::new(by_threads),
        })
    }
}

fn middle(low: u64, high: u64) -> u64 {
    low + (high - low) / 2
}

fn by_closures(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    let (a, b) = join(|| by_closures(low, mid), || by_closures(mid + 1, high));
    a + b
}

// Not `async fn`: the compiler cannot tell that a recursive one is `Send`.
fn by_futures(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            return low;
        }
        let mid = middle(low, high);
        let (a, b) = fork_join(by_futures(low, mid), by_futures(mid + 1, high)).await;
        a + b
    }
}

fn by_rayon(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    let (a, b) = rayon::join(|| by_rayon(low, mid), || by_rayon(mid + 1, high));
    a + b
}

fn by_tasks(low: u64, high: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if low == high {
            return low;
        }
        let mid = middle(low, high);
        let a = tokio::spawn(by_tasks(low, mid));
        let b = tokio::spawn(by_tasks(mid + 1, high));
        a.await.expect("a sum does not panic") + b.await.expect("a sum does not panic")
    })
}

fn by_threads(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    thread::scope(|scope| {
        let a = scope.spawn(|| by_threads(low, mid));
        let b = scope.spawn(|| by_threads(mid + 1, high));
        a.join().expect("a sum does not panic") + b.join().expect("a sum does not panic")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &[&str]) -> Result<ArgMatches, clap::Error> {
        command().try_get_matches_from(std::iter::once(&"sum").chain(flags))
    }

    fn args(flags: &[&str]) -> Args {
        Args::read(&parse(flags).expect("the flags of the tests are right"))
    }

    #[test]
    fn every_executor_adds_up_the_same() {
        for executor in Executor::value_variants() {
            for workers in [1, 2] {
                let mut sum = executor.start(workers).expect("two workers are few");
                assert_eq!(sum(10, 210), 22_110, "{executor:?} with {workers} workers");
                assert_eq!(sum(7, 7), 7, "{executor:?} with {workers} workers");
            }
        }
    }

    #[test]
    fn without_flags_it_is_the_published_sum() {
        assert_eq!(expected(&args(&[])).expect("it fits"), 50_000_005_000_000);
    }

    #[test]
    fn the_first_line_is_that_of_the_published_program() {
        let report = report(
            &args(&[]),
            50_000_005_000_000,
            Duration::from_micros(314_150),
            Some(2_500_000),
        );
        assert_eq!(
            report,
            "The result is 50000005000000, ran 10 rounds, 0.031415 seconds per round.\n\
             20000000 processes per round, 1.57 nanoseconds per process, \
             2.5 MB of memory at most.\n"
        );
    }

    #[test]
    fn a_single_number_takes_no_process() {
        let report = report(&args(&["--high", "0"]), 0, Duration::ZERO, None);
        assert!(report.ends_with("\n0 processes per round.\n"), "{report}");
    }

    #[test]
    fn a_reversed_range_says_which_flag_to_change() {
        let error = expected(&args(&["--low", "5", "--high", "3"])).expect_err("reversed");
        assert_eq!(
            error.to_string(),
            "the range from 5 to 3 is reversed; give --low the smaller number"
        );
    }

    #[test]
    fn a_sum_beyond_64_bits_is_refused_and_one_that_just_fits_is_not() {
        let most = u64::MAX.to_string();
        let error = expected(&args(&["--high", &most])).expect_err("far too large");
        assert!(
            error.to_string().contains("does not fit into 64 bits"),
            "{error}"
        );
        assert_eq!(
            expected(&args(&["--low", &most, "--high", &most])).expect("fits"),
            u64::MAX
        );
    }

    #[test]
    fn a_thread_for_each_half_is_for_small_ranges() {
        let error = expected(&args(&["--executor", "threads"])).expect_err("too many threads");
        assert!(error.to_string().contains("20000000 threads"), "{error}");
    }

    #[test]
    fn no_rounds_and_no_workers_are_refused() {
        assert!(parse(&["--rounds", "0"]).is_err());
        assert!(parse(&["--workers", "0"]).is_err());
    }
}
