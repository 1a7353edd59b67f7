//! corsair: an unmodified [`corsair::fsm`](::corsair::fsm) with a talk of no duration, on all executors of corsair.
//!
//! corsair's pirates do work that the other contenders do not do, and the measured time includes this work. Pirates
//! draw their own random numbers. They start when their first message arrives, so creating them is a part of the
//! delivery. Each pirate sets a timer to chat. Every message contains its sender and a number. The send time and the
//! trace of a message are stored only on request, and are not stored here.

use super::{Contender, cores};
use ::corsair::fsm::{self, Form, Fsm, Watch};
use ::corsair::{Config, Executor, Report, Time};
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use versus::{Load, Run};

/// corsair on one of its executors.
pub struct Corsair {
    name: &'static str,
    executor: Executor,
    /// True to use all cores, false to use one.
    all_cores: bool,
    form: Form,
}

const fn virtual_time(name: &'static str, form: Form, all_cores: bool) -> Corsair {
    Corsair {
        name,
        executor: Executor::Virtual,
        all_cores,
        form,
    }
}

const fn wall_clock(name: &'static str, executor: Executor) -> Corsair {
    Corsair {
        name,
        executor,
        all_cores: true,
        form: Form::Async,
    }
}

/// Virtual time, async form, one worker.
pub static ASYNC_1: Corsair = virtual_time("corsair-async-1", Form::Async, false);
/// Virtual time, async form, a worker per core.
pub static ASYNC: Corsair = virtual_time("corsair-async", Form::Async, true);
/// Virtual time, handler form, one worker.
pub static HANDLER_1: Corsair = virtual_time("corsair-handler-1", Form::Handler, false);
/// Virtual time, handler form, a worker per core.
pub static HANDLER: Corsair = virtual_time("corsair-handler", Form::Handler, true);
/// The wall clock, async form, on tokio.
pub static TOKIO: Corsair = wall_clock("corsair-tokio", Executor::Tokio);
/// The wall clock, async form, on a pool of threads.
pub static POOL: Corsair = wall_clock("corsair-pool", Executor::Pool);

impl Contender for Corsair {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, load: Load) -> Result<Run, String> {
        let workers = if self.all_cores { cores() } else { 1 };
        let config = Config {
            seed: load.seed,
            workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
            ..Config::default()
        };
        // With a shorter period, the first chats of a large delivery would begin before its last messages have arrived.
        let chat = Some(LONGEST_PERIOD);
        let scenario = Fsm {
            population: load.pirates,
            talk: Duration::ZERO,
            form: self.form,
            chat,
            ..Fsm::default()
        };
        let (report, tally) = fsm::run(self.executor, &config, scenario.watched_by(Stopwatch))
            .map_err(|error| error.to_string())?;
        let tally = tally.ok_or("the run was cancelled")?;
        Ok(Run {
            delivery: DELIVERY.get().copied().unwrap_or_default(),
            given: tally.minted,
            returned: tally.returned + tally.salvaged,
            goodbyes: tally.goodbyes,
            complete: complete(&report, load.pirates),
            peak_memory: 0,
        })
    }
}

/// The longest chat period that a pirate supports.
const LONGEST_PERIOD: Duration = Duration::from_millis(u16::MAX as u64);

/// Returns the number of pirates that can have received their six messages: all pirates, if the number of delivered
/// messages of each kind is as expected (including the answers to the Goodbyes) and no message was lost.
fn complete(report: &Report, pirates: u32) -> u32 {
    let due = |kind: &str| match kind {
        "NameDrop" | "Goodbye" => 2 * u64::from(pirates),
        _ => u64::from(pirates),
    };
    let all = report
        .messages
        .iter()
        .all(|sent| sent.count == due(sent.kind));
    if all && report.dead() == 0 && report.dropped == 0 {
        pirates
    } else {
        0
    }
}

/// Measures the time of the delivery. There is only one run in this process.
#[derive(Clone)]
struct Stopwatch;

static BEGAN: OnceLock<Instant> = OnceLock::new();
static DELIVERY: OnceLock<Duration> = OnceLock::new();

impl Watch for Stopwatch {
    type Pirate = ();

    fn pirate(&self) {}

    fn talk(&self, _: Duration) {
        BEGAN.get_or_init(Instant::now);
    }

    fn delivered(&self, _: Time, _: u64) {
        if let Some(began) = BEGAN.get() {
            DELIVERY.get_or_init(|| began.elapsed());
        }
    }
}
