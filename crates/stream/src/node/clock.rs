//! A clock that ticks at an interval of the wall clock.

use crate::now::now;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

/// Ticks at every interval of the wall clock.
pub(crate) struct Clock {
    /// The time between two ticks, in nanoseconds.
    interval: i64,
    /// True if the clock ticks at multiples of the interval.
    align: bool,
    /// The next tick in nanoseconds since 1970.
    next: i64,
    sleep: Pin<Box<Sleep>>,
}

impl Clock {
    pub(crate) fn new(interval: Duration, align: bool, io: &Handle) -> Clock {
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let now = now();
        let next = first(now, interval.max(1), align);
        // Timers belong to the runtime around the engine, whichever executor runs the nodes.
        let _io = io.enter();
        Clock {
            interval: interval.max(1),
            align,
            next,
            sleep: Box::pin(sleep_until(after(next - now))),
        }
    }

    /// Returns the time of the next tick when it has come. Missed ticks are skipped.
    pub(crate) fn poll_strike(&mut self, context: &mut Context<'_>) -> Poll<i64> {
        std::task::ready!(self.sleep.as_mut().poll(context));
        let (time, now) = (self.next, now());
        self.next = following(time, now, self.interval, self.align);
        self.sleep.as_mut().reset(after(self.next - now));
        Poll::Ready(time)
    }

    /// Delays the next tick by the time that the last tick took, so that a node whose ticks take longer than an
    /// interval still handles its points.
    pub(crate) fn rest(&mut self, took: Duration) {
        let now = now();
        let earliest = now.saturating_add(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
        if self.next < earliest {
            self.next = match self.align {
                true => first(earliest, self.interval, true),
                false => earliest,
            };
            self.sleep.as_mut().reset(after(self.next - now));
        }
    }
}

/// Returns the first tick of a clock that is started now.
fn first(now: i64, interval: i64, align: bool) -> i64 {
    let wait = match align {
        true => interval - now.rem_euclid(interval),
        false => interval,
    };
    now.saturating_add(wait)
}

/// Returns the tick that follows the tick at `time`. It is never in the past, and at most one interval away, even if
/// the wall clock was set.
fn following(time: i64, now: i64, interval: i64, align: bool) -> i64 {
    let next = time.saturating_add(interval);
    match (1..=interval).contains(&next.saturating_sub(now)) {
        true => next,
        false => first(now, interval, align),
    }
}

fn after(nanos: i64) -> Instant {
    let far = Instant::now() + Duration::from_secs(86400 * 365 * 30);
    let wait = Duration::from_nanos(nanos.unsigned_abs());
    Instant::now().checked_add(wait).unwrap_or(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_are_at_multiples_or_an_interval_apart_and_none_is_made_up_for() {
        assert_eq!(first(13, 10, true), 20);
        assert_eq!(first(20, 10, true), 30);
        assert_eq!(first(13, 10, false), 23);
        // A tick in time, a little late, far too late, and before the clock was set back.
        for (time, now, aligned, free) in [
            (20, 20, 30, 30),
            (20, 24, 30, 30),
            (20, 57, 60, 67),
            (20, 3, 10, 13),
        ] {
            assert_eq!(following(time, now, 10, true), aligned, "{now}");
            assert_eq!(following(time, now, 10, false), free, "{now}");
        }
    }
}
