//! A run in virtual time is bit-identical on any number of worker threads: a thousand pirates that talk for ten seconds
//! have exactly the same events on one worker and on four.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::fsm::{self, Fsm, FsmError};
use corsair::{Config, Executor};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Returns the digest of all events of a run: their receivers, senders, contents, times and order.
fn digest(seed: u64, workers: usize) -> Result<u64, FsmError> {
    let workers = NonZeroUsize::new(workers).expect("at least one worker");
    let config = Config {
        seed,
        workers,
        ..Config::default()
    };
    let pirates = Fsm {
        population: 1_000,
        talk: Duration::from_secs(10),
        ..Fsm::default()
    };
    let (report, _) = fsm::run(Executor::Virtual, &config, pirates)?;
    let digest = report.digest.expect("runs in virtual time have a digest");
    println!(
        "seed {seed}, {workers} workers: digest {digest:016x}, {} messages and {} timers, {} of virtual time in {:?}",
        report.delivered(),
        report.timers,
        report.time,
        report.wall,
    );
    Ok(digest)
}

fn main() -> Result<(), FsmError> {
    let [one, four] = [digest(1, 1)?, digest(1, 4)?];
    assert_eq!(one, four, "the number of workers changes nothing");
    assert_ne!(one, digest(2, 4)?, "another seed is another run");
    Ok(())
}
