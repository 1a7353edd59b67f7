//! Short-lived actors, one spawn after the other, and the memory that their run takes.
//!
//! ```sh
//! cargo run --release -p corsair-conformance --example churn                     # ten million
//! cargo run --release -p corsair-conformance --example churn -- 1000000000 1000  # 10⁹, a thousand at a time
//! cargo run --release -p corsair-conformance --example churn -- 1000000000 1 2   # one at a time, two workers
//! ```
//!
//! Exit code 1 if memory grows after the first tenth of the run.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it tells what the run took"
)]

use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Message, Scenario, Spawn,
    resident_memory,
};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What memory may grow by, beside what the allocator keeps: nothing of an actor that has ended.
const SLACK: u64 = 4 << 20;

#[derive(Message)]
struct Done;

/// Tells its parent that it was there.
struct Brief;

impl Actor<Done> for Brief {
    fn start<C: Context<Done>>(&mut self, cx: &mut C) {
        let parent = cx.parent();
        cx.send(parent, Done);
    }

    fn on<C: Context<Done>>(&mut self, _: Event<Done>, _: &mut C) -> Flow {
        Flow::Stop
    }
}

struct Churn {
    actors: u64,
    together: u32,
    /// The most memory in the first tenth, and after it.
    peaks: Arc<[AtomicU64; 2]>,
}

impl Scenario<Done> for Churn {
    async fn root<C: AsyncContext<Done>>(self, mut cx: C) {
        let rounds = self.actors / u64::from(self.together);
        let looks = rounds.div_ceil(1000);
        for round in 0..rounds {
            if round % looks == 0 {
                let late = usize::from(round > rounds / 10);
                let now = resident_memory().unwrap_or_default();
                self.peaks[late].fetch_max(now, Ordering::Relaxed);
            }
            let how = Spawn::many(self.together, "brief", "");
            cx.spawn_actors(how, |_| Brief).await;
            for _ in 0..self.together {
                if let Event::Message { from, .. } = cx.recv().await {
                    cx.send(from, Done);
                }
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments: Result<Vec<u64>, _> =
        std::env::args().skip(1).map(|text| text.parse()).collect();
    let numbers = match &arguments {
        Ok(numbers) => [0, 1, 2].map(|place| numbers.get(place).copied()),
        Err(_) => return refuse("give up to three numbers: actors, how many at a time, workers"),
    };
    let [actors, together, workers] = numbers;
    let actors = actors.unwrap_or(10_000_000);
    let together = together.unwrap_or(1000);
    let (Ok(together), Some(workers)) = (
        u32::try_from(together.max(1)),
        NonZeroUsize::new(workers.unwrap_or(1) as usize),
    ) else {
        return refuse("there is at least one worker, and at most 4,294,967,295 actors at a time");
    };
    let peaks = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let scenario = Churn {
        actors,
        together,
        peaks: Arc::clone(&peaks),
    };
    let config = Config {
        workers,
        ..Config::default()
    };
    let report = match corsair::run(Executor::Virtual, &config, scenario) {
        Ok(report) => report,
        Err(error) => return refuse(&error.to_string()),
    };
    let [early, late] = [&peaks[0], &peaks[1]].map(|peak| peak.load(Ordering::Relaxed));
    println!(
        "{} actors have come and gone, {together} at a time, in {:.1} s; {early} bytes resident in the first tenth, {late} after it",
        report.ended,
        report.wall.as_secs_f64(),
    );
    if late > early + SLACK + u64::from(together) * 100 {
        eprintln!("churn: memory grew by {} bytes", late - early);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("churn: {why}");
    ExitCode::from(2)
}
