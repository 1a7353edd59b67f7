//! Clocks of instances, which advance only by the time in which an instance works.

/// A clock that advances at a speed between 0 and 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The first time. Readings are relative to it, because a float has too few digits for nanoseconds since 1970.
    first: u64,
    /// Times with the reading of the clock, and the speed from then on.
    points: Vec<(u64, f64, f64)>,
}

impl Clock {
    /// Creates a clock that advances at each of these speeds from its time on, in ascending order, and at speed 1 before
    /// the first.
    pub(super) fn new(speeds: impl Iterator<Item = (u64, f64)>) -> Clock {
        let mut clock = Clock::default();
        let (mut reading, mut speed, mut last) = (0.0, 1.0, None);
        for (at, next) in speeds {
            if last.is_none() {
                clock.first = at;
            }
            reading += at.saturating_sub(last.unwrap_or(at)) as f64 * speed;
            (speed, last) = (next, Some(at));
            clock.points.push((at, reading, speed));
        }
        clock
    }

    /// Returns the reading at a time.
    pub(super) fn at(&self, time: u64) -> u64 {
        let next = self.points.partition_point(|&(at, ..)| at <= time);
        match next.checked_sub(1).map(|last| self.points[last]) {
            Some((at, reading, speed)) => {
                self.first + (reading + (time - at) as f64 * speed) as u64
            }
            None => time,
        }
    }
}
