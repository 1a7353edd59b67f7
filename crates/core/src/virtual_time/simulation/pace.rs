//! Runs at the speed of the wall clock, or at a multiple of this speed.

use super::Simulation;
use crate::contract::{Message, Time};
use crate::sync::Stopwatch;
use std::time::Duration;

/// The speed of a run.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    factor: f64,
    /// A time of the run, and a stopwatch that was started when the run reached this time.
    begun: Option<(Time, Stopwatch)>,
}

/// The maximum delay for which a run catches up.
const MOST_BEHIND: Duration = Duration::from_millis(100);

/// The maximum time of one sleep. It is short, so that a cancellation is noticed soon and windows are not late.
const NAP: Duration = Duration::from_millis(5);

impl Pace {
    fn new(factor: f64) -> Pace {
        let begun = None;
        Pace { factor, begun }
    }

    /// Returns the time that a run at `now` should have reached.
    fn due(&mut self, now: Time) -> Time {
        if let Some((from, clock)) = self.begun {
            let passed = clock.elapsed().as_secs_f64() * self.factor;
            let due = from.after(Duration::try_from_secs_f64(passed).unwrap_or(Duration::MAX));
            if self.wall(due.since(now)) <= MOST_BEHIND {
                return due;
            }
        }
        self.begun = Some((now, Stopwatch::start()));
        now
    }

    /// Returns the wall-clock time that corresponds to a time of the run.
    fn wall(&self, time: Duration) -> Duration {
        let seconds = time.as_secs_f64() / self.factor;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl<M: Message> Simulation<M> {
    /// Sets the pace from now on: `Some(2.0)` is twice as fast as the wall clock; `None`, the default, is as fast as
    /// possible. The result does not depend on the pace.
    ///
    /// The pace also applies across calls: if one call was late, the next calls catch up, by at most a tenth of a
    /// second. The time of a longer pause between calls is not made up for.
    ///
    /// # Panics
    /// If the factor is not a positive number.
    pub fn pace(&mut self, factor: Option<f64>) {
        if let Some(factor) = factor {
            assert!(
                factor.is_finite() && factor > 0.0,
                "a pace is a positive number, not {factor}"
            );
        }
        self.pace = factor.map(Pace::new);
    }

    /// Runs almost until `time`, at the pace that was set.
    pub(super) fn keep_pace(&mut self, time: Time) {
        while let Some(mut pace) = self.pace
            && self.end.is_none()
            && !self.config.cancel.is_cancelled()
        {
            let due = pace.due(self.now);
            self.pace = Some(pace);
            if due >= time {
                return;
            }
            self.advance(due);
            let left = time.since(pace.due(self.now));
            std::thread::sleep(pace.wall(left).min(NAP));
        }
    }
}
