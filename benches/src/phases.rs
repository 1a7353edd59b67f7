//! Runs of the pirates, checked, with the wall-clock time of each phase.

use corsair::fsm::{self, Fsm, Tally, Watch};
use corsair::{Config, Executor, Report, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The report of a run, and how long its phases took on the wall clock.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the executor reports.
    pub report: Report,
    /// What the FSM has counted.
    pub tally: Tally,
    /// From before the run to after it.
    pub whole: Duration,
    /// From the FSM's first message to the moment at which its messages had been handled.
    pub delivery: Duration,
    /// From then to the first goodbye.
    pub talk: Duration,
}

impl Run {
    /// Messages and timers handled in the talk: all but the FSM's own and the answers to it.
    pub fn talk_events(&self) -> u64 {
        let scripted = 7 * u64::from(self.tally.pirates);
        self.report.delivered() + self.report.timers - scripted
    }
}

/// Runs the scenario and times its phases. One run at a time: the marks are the process's.
///
/// # Panics
/// If the run fails, or a pirate or any gold is missing at its end.
pub fn run(executor: Executor, config: &Config, fsm: Fsm) -> Run {
    let begin = Instant::now();
    let (report, tally) = fsm::run(executor, config, fsm.watched_by(Marks)).expect("the run");
    let whole = begin.elapsed();
    let tally = tally.expect("the run was not cut");
    assert!(tally.is_complete(), "{executor:?}: {tally:?}");
    let [talk, delivered, shutdown] =
        marks().map(|mark| mark.expect("the FSM comes by every mark"));
    Run {
        report,
        tally,
        whole,
        delivery: delivered - talk,
        talk: shutdown - delivered,
    }
}

/// A watch that notes when the FSM begins to send, when all was delivered, and when the goodbyes
/// begin.
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
