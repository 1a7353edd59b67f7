//! Runs simulations in tests and programs. Each test runs in a separate process at a fixed address, and each seed in a
//! fork of this process. So neither the test harness nor other tests influence a simulation.
#![allow(unsafe_code, reason = "forks processes")]

use crate::error::SimError;
use crate::heap::{self, Zone};
use crate::image;
use crate::options::{Options, Outcome};
use crate::setup;
use crate::sim::Sim;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable with the name of the test for which this process was started.
const TEST: &str = "CORSAIR_HOST_TEST";

/// The environment variable that requests the digest of each seed to be printed.
const SHOW_DIGESTS: &str = "CORSAIR_HOST_DIGESTS";

/// Runs a test. The attribute [`test`](macro@crate::test) expands to a call of this function. `path` is the path of
/// the test, including the crate's name.
///
/// # Panics
/// If the test fails.
pub fn run_test<O: Outcome>(path: &str, options: Options, body: fn(&mut Sim) -> O) {
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    if image::is_fixed() && image::variable(TEST) == Some(name) {
        run_seeds(options, &|sim| body(sim).failure());
        return;
    }
    let mut command = image::command().unwrap_or_else(|error| panic!("{error}"));
    command.args([
        "--exact",
        "--nocapture",
        "--include-ignored",
        "--test-threads=1",
    ]);
    // The name is repeated to provide space for the arguments of programs.
    command.args(std::iter::repeat_n(name, crate::arguments::MOST));
    command.env(TEST, name).env("RUST_TEST_THREADS", "1");
    // The harness would read a description of the terminal, which differs between machines, into memory.
    command.env("TERM", "dumb");
    if crate::debug::stops() {
        // The output is not captured, so that the message of a stopped host is visible.
        let status = command.status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the test failed"
        );
        return;
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot start the test again: {error}"));
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    print_captured(&text[0]);
    assert!(output.status.success(), "{}", text[1]);
    assert!(
        text[0].contains("1 passed"),
        "the test {name} was not found when it was started again:\n{}{}",
        text[0],
        text[1]
    );
    print_captured(&text[1]);
}

/// Prints text that the harness shows only with a failed test.
#[allow(clippy::print_stdout, reason = "the output of a test")]
fn print_captured(text: impl std::fmt::Display) {
    print!("{text}");
}

/// Prepares a program for [`simulate`]. Call this function first in `main`. It restarts the program at a fixed address,
/// unless the program already runs there.
///
/// # Errors
/// If the program cannot be started again.
pub fn init() -> Result<(), String> {
    if image::is_fixed() {
        crate::arguments::strip_padding();
        setup::end();
        return Ok(());
    }
    let mut command = image::command()?;
    command.args(std::env::args_os().skip(1));
    command.args(crate::arguments::padding());
    Err(format!(
        "cannot start the program again: {}",
        command.exec()
    ))
}

/// Runs one simulation in a fork of this process, on `workers` threads. Returns the result of `body` as text, and the
/// digest.
///
/// # Errors
/// If [`init`] was not called, or a process cannot be created.
pub fn simulate<O: Outcome>(
    seed: u64,
    workers: NonZeroUsize,
    body: impl Fn(&mut Sim) -> O,
) -> Result<(Option<String>, u64), SimError> {
    if !image::is_fixed() {
        return Err(SimError::NotPrepared);
    }
    fork_simulation(seed, workers, &|sim| body(sim).failure())
}

/// Returns the seeds of a test: those of the environment variable `SEED`, a number, or `SEEDS`, a count or a range such as
/// `501..1000`, whose end is included.
///
/// # Errors
/// If the text is neither, or gives no seed: a test without seeds would pass.
fn seeds(options: Options, seed: Option<&str>, seeds: Option<&str>) -> Result<Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().ok();
    let from = |first: u64, count: u64| first..first.saturating_add(count);
    if let Some(text) = seed {
        let seed = number(text).filter(|seed| *seed < u64::MAX);
        let seed =
            seed.ok_or_else(|| format!("SEED: '{text}' is not a seed; expected a number"))?;
        return Ok(from(seed, 1));
    }
    let Some(text) = seeds else {
        return Ok(from(options.first_seed, options.seeds));
    };
    let range = match text.split_once("..") {
        Some((first, last)) => number(first)
            .zip(number(last))
            .map(|(first, last)| first..last.saturating_add(1)),
        None => number(text).map(|count| from(options.first_seed, count)),
    };
    range.filter(|range| !range.is_empty()).ok_or_else(|| format!(
        "SEEDS: '{text}' gives no seeds; expected a number of seeds such as 1000, or a range such as 501..1000"
    ))
}

/// Returns the number of workers in the environment variable `WORKERS`.
fn workers(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| format!("WORKERS: '{text}' is not a number of workers; expected 1 or more"))
}

/// Runs all seeds of a test. If the environment variable `WORKERS` is set, each seed runs once, on that number of workers.
fn run_seeds(options: Options, body: &dyn Fn(&mut Sim) -> Option<String>) {
    let [seed, some, count] = ["SEED", "SEEDS", "WORKERS"].map(image::variable);
    let count = count.map(workers).transpose();
    let workers = count.unwrap_or_else(|error| panic!("{error}"));
    let all = seeds(options, seed, some);
    let all = all.unwrap_or_else(|error| panic!("{error}"));
    let shows = image::variable(SHOW_DIGESTS).is_some();
    // Nothing here allocates unless it fails, so each simulation is forked from the same state of the allocator.
    for seed in all {
        let run = |workers| {
            let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
            let (failure, digest) =
                fork_simulation(seed, workers, body).unwrap_or_else(|error| panic!("{error}"));
            if let Some(failure) = failure {
                panic!("seed {seed}: {failure}\nrun this seed alone with SEED={seed}");
            }
            digest
        };
        let first = run(workers.map_or(1, NonZeroUsize::get));
        if shows {
            print_captured(format_args!("digest of seed {seed}: {first:016x}\n"));
        }
        if options.deterministic && workers.is_none() {
            for workers in [2, 4] {
                let digest = run(workers);
                assert_eq!(
                    first, digest,
                    "seed {seed}: {workers} workers have another digest than one"
                );
            }
        }
    }
}

/// The report of the fork: whether the report is complete, the digest of the run, and the failure as text.
#[repr(C)]
struct Answer {
    is_complete: AtomicU64,
    digest: AtomicU64,
    length: AtomicU64,
    text: std::cell::UnsafeCell<[u8; TEXT]>,
}

const TEXT: usize = 8 << 20;

fn fork_simulation(
    seed: u64,
    workers: NonZeroUsize,
    body: &dyn Fn(&mut Sim) -> Option<String>,
) -> Result<(Option<String>, u64), SimError> {
    let system = |what| SimError::System {
        what,
        source: std::io::Error::last_os_error(),
    };
    // SAFETY: a new mapping affects no existing memory, and all-zero bytes are a valid `Answer`.
    let answer = unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            size_of::<Answer>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(system("memory for the answer"));
        }
        &*memory.cast::<Answer>()
    };
    let _ = std::io::Write::flush(&mut std::io::stdout());
    // SAFETY: the other thread of a test's process, if there is one, waits for this thread and holds no lock.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(system("the simulation's process")),
        0 => run_forked(seed, workers, body, answer),
        pid => pid,
    };
    let mut status = 0;
    // SAFETY: the process is a child of this one, and the status is valid for a write.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {}
    let is_complete = answer.is_complete.load(Ordering::Acquire) == 1;
    let length = answer.length.load(Ordering::Acquire) as usize;
    // SAFETY: the forked process has ended, so it does not write.
    let text =
        unsafe { String::from_utf8_lossy(&(&*answer.text.get())[..length.min(TEXT)]).into_owned() };
    let digest = answer.digest.load(Ordering::Relaxed);
    // SAFETY: no reference to the mapping is used afterwards.
    unsafe {
        libc::munmap(
            std::ptr::from_ref(answer).cast_mut().cast(),
            size_of::<Answer>(),
        )
    };
    Ok(match (is_complete, length) {
        (true, 0) => (None, digest),
        (true, _) => (Some(text), digest),
        (false, _) => (
            Some(format!(
                "the simulation's process ended with wait status {status:#x}"
            )),
            0,
        ),
    })
}

/// Runs the simulation in the fork, writes the answer, and exits.
fn run_forked(
    seed: u64,
    workers: NonZeroUsize,
    body: &dyn Fn(&mut Sim) -> Option<String>,
    answer: &Answer,
) -> ! {
    crate::zygote::die_with_parent();
    heap::enter(Zone::Simulation);
    let mut sim = Sim::new(seed, workers);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut sim)));
    heap::enter(Zone::Process);
    let failure = match outcome {
        Ok(failure) => failure,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Some(format!(
                "{}\n{}",
                said.unwrap_or_else(|| "panicked".to_string()),
                sim.log()
            ))
        }
    };
    answer.digest.store(sim.digest(), Ordering::Relaxed);
    if let Some(failure) = failure {
        let bytes = failure.as_bytes();
        let count = bytes.len().clamp(1, TEXT);
        // SAFETY: the parent reads only after this process has ended.
        unsafe {
            (&mut *answer.text.get())[..bytes.len().min(TEXT)]
                .copy_from_slice(&bytes[..bytes.len().min(TEXT)])
        };
        answer.length.store(count as u64, Ordering::Release);
    }
    drop(sim);
    answer.is_complete.store(1, Ordering::Release);
    let _ = std::io::Write::flush(&mut std::io::stdout());
    // SAFETY: exits without the cleanup of the test harness, which belongs to the parent.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_count_or_a_range() {
        let options = Options {
            seeds: 3,
            first_seed: 10,
            ..Options::default()
        };
        let read = |seed, some| seeds(options, seed, some);
        assert_eq!(read(None, None), Ok(10..13));
        assert_eq!(read(Some("7"), Some("9")), Ok(7..8));
        assert_eq!(read(None, Some("5")), Ok(10..15));
        assert_eq!(read(None, Some("501..1000")), Ok(501..1001));
    }

    #[test]
    fn a_test_without_seeds_or_workers_is_refused() {
        for text in ["", "0", "10..5", "5..", "many", "-1", "1..2..3"] {
            let error = seeds(Options::default(), None, Some(text)).unwrap_err();
            assert!(error.contains("a range such as 501..1000"), "{error}");
        }
        let error = seeds(Options::default(), Some("one"), None).unwrap_err();
        assert!(error.contains("'one' is not a seed"), "{error}");
        for text in ["0", "two", "-1"] {
            let error = workers(text).unwrap_err();
            assert!(error.contains("expected 1 or more"), "{error}");
        }
    }
}
