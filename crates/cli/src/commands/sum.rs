//! `corsair sum`: adds up a range of numbers. Each range is divided into two halves, which are added up in parallel,
//! until single numbers remain.

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use corsair::fork_join::{Pool, fork_join, join};
use std::io::Write;
use std::num::{NonZeroU32, NonZeroUsize};
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum length of a range that can be added up with an OS thread for every half.
const MOST_THREADS: u64 = 2_000;

/// The flags of `corsair sum`.
#[derive(Args, Clone, Debug)]
pub struct SumArgs {
    /// First number
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    low: u64,
    /// Last number
    #[arg(long, value_name = "NUMBER", default_value = "10000000")]
    high: u64,
    /// Number of rounds
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    rounds: NonZeroU32,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "NUMBER")]
    workers: Option<NonZeroUsize>,
    /// Executor of the two halves
    #[arg(long, value_enum, default_value = "corsair")]
    executor: Executor,
}

/// The implementation that runs the halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// This project's fork-join of closures
    Corsair,
    /// This project's fork-join of futures
    Async,
    /// The join of rayon
    Rayon,
    /// Two tokio tasks for every fork
    Tokio,
    /// Two OS threads for every fork; for small ranges
    Threads,
}

/// Runs the command and prints the measurements.
///
/// # Errors
/// If the range is reversed, its sum is too large, its halves need too many threads, or the system does not provide the
/// needed resources.
pub fn run(args: &SumArgs) -> Result<()> {
    let expected = expected(args)?;
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let workers = args.workers.unwrap_or_else(cores);
    let mut executor = args.executor.start(workers.get())?;
    let begin = Instant::now();
    for round in 1..=args.rounds.get() {
        let sum = executor(args.low, args.high);
        ensure!(
            sum == expected,
            "round {round} gave {sum} instead of {expected}"
        );
    }
    let report = report(args, expected, begin.elapsed(), Memory::now());
    std::io::stdout()
        .lock()
        .write_all(report.as_bytes())
        .context("cannot write the result")
}

/// The memory that the process has used.
#[derive(Clone, Copy)]
struct Memory {
    /// The peak in bytes.
    peak: u64,
    /// The part of this memory that consists of pages of the program's file and of libraries. The system reads most of
    /// these pages in advance and shares them with other processes.
    files: Option<u64>,
}

impl Memory {
    /// Reads the memory, if the system reports it (Linux does).
    fn now() -> Option<Memory> {
        let peak = corsair::peak_memory()?;
        Some(Memory {
            peak,
            files: corsair::file_memory(),
        })
    }
}

/// Returns the correct sum.
fn expected(args: &SumArgs) -> Result<u64> {
    let (low, high) = (args.low, args.high);
    ensure!(
        low <= high,
        "the range from {low} to {high} is reversed; give --low the smaller number"
    );
    let count = u128::from(high - low) + 1;
    // If the product exceeds 128 bits, the sum exceeds 64 bits, too.
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

/// Returns the lines that the command prints.
fn report(args: &SumArgs, sum: u64, time: Duration, memory: Option<Memory>) -> String {
    let rounds = args.rounds.get();
    let seconds = time.as_secs_f64() / f64::from(rounds);
    // A range of n numbers has n − 1 forks, and every fork has two processes.
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
    if let Some(memory) = memory {
        report += &format!(", {:.1} MB of memory at most", memory.peak as f64 / 1e6);
        if let Some(files) = memory.files {
            report += &format!(
                " ({:.1} MB of it program and libraries)",
                files as f64 / 1e6
            );
        }
    }
    report + ".\n"
}

impl Executor {
    /// Creates the implementation.
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
            #[cfg(not(feature = "rayon"))]
            Executor::Rayon => bail!(
                "this build has no rayon; build it with --features rayon, or use --executor corsair"
            ),
            #[cfg(feature = "rayon")]
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

#[allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that is to be `Send` does not compile"
)]
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

#[cfg(feature = "rayon")]
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
    use clap::{Command, FromArgMatches};

    fn parse(flags: &[&str]) -> Result<SumArgs, clap::Error> {
        let line = std::iter::once(&"sum").chain(flags);
        let command = SumArgs::augment_args(Command::new("sum"));
        SumArgs::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    fn args(flags: &[&str]) -> SumArgs {
        parse(flags).expect("the flags of the tests are right")
    }

    #[test]
    fn every_executor_adds_up_the_same() {
        for executor in Executor::value_variants() {
            for workers in [1, 2] {
                let started = executor.start(workers);
                if *executor == Executor::Rayon && cfg!(not(feature = "rayon")) {
                    let said = started.err().expect("rayon is not built").to_string();
                    assert!(said.contains("--features rayon"), "{said}");
                    continue;
                }
                let mut sum = started.expect("two workers are few");
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
            Some(Memory {
                peak: 2_500_000,
                files: Some(2_200_000),
            }),
        );
        assert_eq!(
            report,
            "The result is 50000005000000, ran 10 rounds, 0.031415 seconds per round.\n\
             20000000 processes per round, 1.57 nanoseconds per process, \
             2.5 MB of memory at most (2.2 MB of it program and libraries).\n"
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
