//! Runs of the pirates, checked, with the wall-clock time of each phase.

use corsair::fsm::{self, Fsm, Tally, Watch};
use corsair::{Config, Executor, Report, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The report of a run, and the durations of its phases on the wall clock.
#[derive(Clone, Debug)]
pub struct Run {
    /// The report of the executor.
    pub report: Report,
    /// The FSM's tally.
    pub tally: Tally,
    /// The wall-clock time of the complete run.
    pub whole: Duration,
    /// The time from the FSM's first message until all of its messages had been handled.
    pub delivery: Duration,
    /// The time from the end of the delivery to the first goodbye.
    pub talk: Duration,
}

impl Run {
    /// Returns the number of messages and timers handled during the talk. The FSM's own messages and the answers to
    /// them are not counted.
    pub fn talk_events(&self) -> u64 {
        let scripted = 7 * u64::from(self.tally.pirates);
        self.report.delivered() + self.report.timers - scripted
    }
}

/// Runs the scenario and times its phases. Only one run may take place at a time, because the timestamps of the phases
/// are global to the process.
///
/// # Panics
/// If the run fails, or a pirate or any gold is missing at its end.
pub fn run(executor: Executor, config: &Config, fsm: Fsm) -> Run {
    let begin = Instant::now();
    let (report, tally) = fsm::run(executor, config, fsm.watched_by(Marks)).expect("the run");
    let whole = begin.elapsed();
    let tally = tally.expect("the run was not cancelled");
    assert!(tally.is_complete(), "{executor:?}: {tally:?}");
    let [talk, delivered, shutdown] = marks().map(|mark| mark.expect("the FSM reaches every mark"));
    Run {
        report,
        tally,
        whole,
        delivery: delivered - talk,
        talk: shutdown - delivered,
    }
}

/// A watch that records when the FSM begins to send, when all messages are delivered, and when the
/// goodbyes begin.
#[derive(Clone, Debug)]
struct Marks;

static MARKS: Mutex<[Option<Instant>; 3]> = Mutex::new([None; 3]);

fn marks() -> MutexGuard<'static, [Option<Instant>; 3]> {
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch for Marks {
    type Pirate = ();

    fn pirate(&self) {}

    fn talk(&self, _: Duration) {
        marks()[0] = Some(Instant::now());
    }
    fn delivered(&self, _: Time, _: u64) {
        marks()[1] = Some(Instant::now());
    }
    fn shutdown(&self, _: Time) {
        marks()[2] = Some(Instant::now());
    }
}
