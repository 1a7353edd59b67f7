//! Advances a session at a pace, until its goal is reached. The session runs in short slices of wall-clock time, so
//! that it can handle requests and show frames between them.

use super::{Goal, Session, Until, ending};
use crate::clock::Instant;
use crate::condition::Measure;
use crate::series::SHOWN;
use crate::world::{GroupSample, World};
use corsair::Time;
use std::time::Duration;

/// The wall-clock time that a slice should take.
const SLICE: Duration = Duration::from_millis(12);

/// The virtual time between two checks of a condition. If a window is longer, there is one check per
/// window.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The shortest and the longest virtual time between two samples, in seconds, as long as they are more frequent than
/// frames. The graph shows rates since the sample before, so that a longer time would show traffic from before a fault.
const BETWEEN_SAMPLES: (f64, f64) = (0.05, 0.5);

/// The part of a slice at full speed in which single messages are recorded, and its shortest virtual time. It is the end
/// of the slice, because nobody can look before. In an eighth of a slice, about 1 ms, an instance handles tens of
/// messages; in a second most requests are answered.
const RECORDED: (u32, Duration) = (8, Duration::from_secs(1));

/// The length in seconds of the interval over which the percentile of a condition is computed.
const PAST: f64 = 1.0;

/// The pace of a session: how fast virtual time advances.
#[derive(Debug)]
pub(super) struct Pace {
    /// Virtual seconds per second of wall-clock time; `None` is as fast as possible.
    factor: Option<f64>,
    /// The virtual time that takes [`SLICE`] on the wall clock.
    slice: Duration,
    /// The wall-clock time for which virtual time has been scheduled, and the part of this virtual time that is still
    /// to be run.
    paid: Instant,
    owed: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            factor: Some(1.0),
            slice: Duration::from_millis(1),
            paid: Instant::now(),
            owed: 0.0,
        }
    }
}

impl Pace {
    pub(super) fn factor(&self) -> Option<f64> {
        self.factor
    }

    pub(super) fn set(&mut self, factor: Option<f64>) {
        self.factor = factor;
        self.restart();
    }

    /// Forgets the wall-clock time that has passed until now.
    pub(super) fn restart(&mut self) {
        (self.paid, self.owed) = (Instant::now(), 0.0);
    }

    /// Returns the time to wait for a request before the next slice.
    pub(super) fn wait(&self) -> Duration {
        match self.factor {
            Some(_) => Duration::from_millis(4),
            None => Duration::ZERO,
        }
    }

    /// Returns the virtual time of the next slice.
    fn next(&mut self) -> Duration {
        let passed = self.paid.elapsed();
        self.paid = Instant::now();
        self.next_after(passed)
    }

    /// Returns the virtual time of the next slice if this wall-clock time has passed since the last one.
    fn next_after(&mut self, passed: Duration) -> Duration {
        let Some(factor) = self.factor else {
            return self.slice;
        };
        // A slow machine falls behind, but the session still handles requests.
        self.owed = (self.owed + passed.as_secs_f64() * factor).min(factor);
        let next = Duration::from_secs_f64(self.owed).min(self.slice);
        // A duration has whole nanoseconds, so it may be longer than what is owed.
        self.owed = (self.owed - next.as_secs_f64()).max(0.0);
        next
    }

    /// Adapts the length of slices, after a slice of `virtual_time` has taken the wall-clock time `clock`.
    fn took(&mut self, virtual_time: Duration, clock: Duration) {
        if virtual_time < self.slice {
            return;
        }
        let part = SLICE.as_secs_f64() / clock.as_secs_f64().max(1e-6);
        let next = self.slice.mul_f64(part.clamp(0.25, 4.0));
        self.slice = next.clamp(Duration::from_nanos(1_000), Duration::from_secs(3_600));
    }
}

impl<W: World> Session<W> {
    /// Runs the world for one slice.
    pub(super) fn advance(&mut self) {
        let now = self.world.now();
        let slice = self.pace.next();
        let (length, end) = match &self.goal {
            None => (slice, None),
            Some(Goal {
                until: Until::Time(end),
                ..
            }) => (slice, Some(Time::from_nanos(*end))),
            Some(_) => (slice.min(BETWEEN_LOOKS), None),
        };
        let target = now.after(length);
        let target = end.map_or(target, |end| target.min(end));
        if target > now {
            let began = Instant::now();
            if self.is_watched && self.pace.factor.is_none() {
                self.run_unseen(target);
            }
            self.run_sampled(target, BETWEEN_SAMPLES.1);
            self.pace.took(target.since(now), began.elapsed());
        }
        if self.world.is_over() {
            return self.stop(ending(&self.world));
        }
        let is_met = self.is_searching() && self.world.now() > now && self.is_fulfilled();
        if is_met || end.is_some_and(|end| self.world.now() >= end) {
            let until = self.goal.as_ref().map(|goal| goal.until.to_string());
            self.stop(until.unwrap_or_default());
        }
    }

    /// True if the run pauses as soon as a condition is met.
    fn is_searching(&self) -> bool {
        matches!(&self.goal, Some(goal) if matches!(goal.until, Until::Condition(_)))
    }

    /// Runs the part of the slice until `target` that comes before the recorded part, with fewer samples.
    fn run_unseen(&mut self, target: Time) {
        let (now, recorded) = (self.world.now(), self.pace.slice / RECORDED.0);
        let unseen = target.since(now).saturating_sub(recorded.max(RECORDED.1));
        if unseen.is_zero() {
            return;
        }
        self.world.record(false);
        self.run_sampled(now.after(unseen), f64::INFINITY);
        self.world.record(true);
        if !self.world.is_over() {
            self.sample();
        }
    }

    /// Runs until a time, with at most `longest` seconds between two samples. A viewer gets a sample for each point of the
    /// charts, even if the run ends before the first frame.
    fn run_sampled(&mut self, target: Time, longest: f64) {
        let load = self.scenes.borrow().load;
        let (shortest, usual) = BETWEEN_SAMPLES;
        let between = load.map_or(usual, |(begins, ends)| (ends - begins) / SHOWN);
        let between = Duration::from_secs_f64(between.clamp(shortest, longest));
        let mut next = self.sampled_at.after(between);
        while self.is_watched && next < target {
            self.world.run_until(next);
            if self.world.is_over() {
                return;
            }
            self.sample();
            next = next.max(self.world.now()).after(between);
        }
        self.world.run_until(target);
    }

    /// Returns true if the condition at which the session pauses is met.
    fn is_fulfilled(&mut self) -> bool {
        let group = self.sample();
        let now = self.world.now().elapsed().as_secs_f64();
        let Some(Goal {
            until: Until::Condition(condition),
            ..
        }) = &self.goal
        else {
            return false;
        };
        let condition = condition.clone();
        let measured = match &condition.measure {
            Measure::Dead => {
                let dead = self.world.dead_letters();
                let before = self.goal.as_ref().map_or(0, |goal| goal.dead);
                dead.saturating_sub(before) as f64
            }
            Measure::State { who, pointer } => {
                // An actor that has ended has no number.
                self.number_of(who, pointer).unwrap_or(f64::NEG_INFINITY)
            }
            _ => self.measured(group, now, &condition.measure),
        };
        measured > condition.above
    }

    /// Returns the value of a condition on a group.
    fn measured(&mut self, group: Option<GroupSample>, now: f64, measure: &Measure) -> f64 {
        let Some((goal, group)) = self.goal.as_mut().zip(group) else {
            return 0.0;
        };
        goal.errors += group.errors;
        match measure {
            Measure::Queue { .. } => group.queue as f64,
            Measure::Errors { .. } => goal.errors as f64,
            _ => {
                goal.second.push_back((now, group));
                while goal.second.front().is_some_and(|(at, _)| now - at > PAST) {
                    goal.second.pop_front();
                }
                let mut times = corsair_arch::live::ResponseTimes::default();
                for (_, sample) in &goal.second {
                    times.merge(&sample.times);
                }
                times.quantile(0.99).unwrap_or(0) as f64 / 1e9
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use std::time::Duration;

    // The clock of a browser is coarse, so several slices can begin at the same time.
    #[test]
    fn slices_that_begin_at_the_same_time_share_what_has_passed() {
        for factor in [0.7, 1.0] {
            for passed in (1..1_000).map(|one| Duration::from_nanos(3_271 * one)) {
                let mut pace = Pace::default();
                pace.set(Some(factor));
                let at_once = [1, 0, 0, 0, 0].map(|times| passed * times);
                let slices = at_once.map(|passed| pace.next_after(passed));
                let away = passed.mul_f64(factor).abs_diff(slices.iter().sum());
                assert!(away.as_nanos() <= 2, "{factor} of {passed:?} is {slices:?}");
            }
        }
    }
}
