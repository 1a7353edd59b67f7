//! Rates, errors, percentiles, queue lengths and utilisation over virtual time, in bounded memory.
//!
//! A series has at most [`MOST`] intervals. If there would be more, neighbours are merged, so that the series always
//! covers the whole run, with the same resolution everywhere.

use crate::GroupSample;
pub use corsair_arch::outputs::Point;

/// The maximum number of points of a series.
const MOST: usize = 400;

/// The approximate number of points that are shown.
pub(crate) const SHOWN: f64 = 120.0;

/// An interval of virtual time, in seconds.
#[derive(Clone, Debug)]
struct Interval {
    from: f64,
    to: f64,
    groups: Vec<GroupSample>,
}

impl Interval {
    fn merge(&mut self, next: Interval) {
        self.to = next.to;
        for (mine, other) in self.groups.iter_mut().zip(next.groups) {
            mine.requests += other.requests;
            mine.errors += other.errors;
            mine.times.merge(&other.times);
            mine.queue = mine.queue.max(other.queue);
            mine.used += other.used;
            mine.usable += other.usable;
        }
    }

    /// Returns the measurements of the first group.
    fn point(&self) -> Point {
        let (sample, span) = (&self.groups[0], self.to - self.from);
        let times = sample.times.histogram();
        let seconds = |part| Some(times.quantile(part)? as f64 / 1e9);
        Point {
            from: self.from,
            to: self.to,
            rate: sample.requests as f64 / span,
            errors: sample.errors as f64 / span,
            p50: seconds(0.5),
            p99: seconds(0.99),
            p999: seconds(0.999),
            queue: sample.queue,
            utilisation: (sample.usable > 0)
                .then(|| (sample.used as f64 / sample.usable as f64).min(1.0)),
        }
    }
}

/// Time series of measurements by group.
#[derive(Clone, Debug, Default)]
pub struct Series {
    intervals: Vec<Interval>,
    /// The minimum length of every interval except the last, in seconds, unless it is below [`LEAST`].
    least: f64,
}

/// The shortest interval in seconds: rates over shorter intervals are mostly noise.
const LEAST: f64 = 0.02;

impl Series {
    /// Adds the measurements of an interval.
    pub fn add(&mut self, from: f64, to: f64, groups: Vec<GroupSample>) {
        if to <= from {
            return;
        }
        let new = Interval { from, to, groups };
        self.least = self.least.max(LEAST);
        match self.intervals.last_mut() {
            Some(last) if last.to - last.from < self.least && last.to >= from => last.merge(new),
            _ => self.intervals.push(new),
        }
        if self.intervals.len() > MOST {
            let mut merged: Vec<Interval> = Vec::with_capacity(MOST);
            let span = to - self.intervals[0].from;
            self.least = self.least.max(span / MOST as f64 * 2.0);
            for interval in self.intervals.drain(..) {
                match merged.last_mut() {
                    // A time without samples remains a gap, unless the gap would be too short to be visible.
                    Some(last)
                        if last.to - last.from < self.least
                            && interval.from - last.to < self.least =>
                    {
                        last.merge(interval);
                    }
                    _ => merged.push(interval),
                }
            }
            self.intervals = merged;
        }
    }

    /// Drops the intervals that end after a time.
    pub(crate) fn truncate(&mut self, time: f64) {
        self.intervals.retain(|interval| interval.to <= time);
    }

    /// Returns the measurements of the group with this number, the oldest first. Each covers at least about a hundredth
    /// of the run, because rates over shorter intervals are mostly noise.
    pub fn points(&self, group: usize) -> Vec<Point> {
        let ends = self.intervals.first().zip(self.intervals.last());
        let least = ends.map_or(0.0, |(first, last)| (last.to - first.from) / SHOWN);
        let mut merged: Vec<Interval> = Vec::new();
        for interval in &self.intervals {
            let Some(sample) = interval.groups.get(group) else {
                continue;
            };
            let next = Interval {
                groups: vec![sample.clone()],
                ..*interval
            };
            let is_short = |one: &Interval| one.to - one.from < least;
            match merged.last_mut() {
                Some(last) if interval.from - last.to < least / 2.0 && is_short(last) => {
                    last.merge(next)
                }
                _ => merged.push(next),
            }
        }
        // The last one has just begun.
        if let [.., before, last] = &merged[..]
            && last.to - last.from < least
            && last.from - before.to < least / 2.0
            && let Some(last) = merged.pop()
            && let Some(before) = merged.last_mut()
        {
            before.merge(last);
        }
        merged.iter().map(Interval::point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_samples_is_a_gap() {
        let mut series = Series::default();
        for n in 0..2_000u32 {
            let from = f64::from(n) + if n < 1_000 { 0.0 } else { 3_000.0 };
            series.add(from, from + 1.0, vec![GroupSample::default()]);
        }
        let points = series.points(0);
        let gaps = points.windows(2).filter(|pair| pair[1].from > pair[0].to);
        let gaps: Vec<(f64, f64)> = gaps.map(|pair| (pair[0].to, pair[1].from)).collect();
        assert_eq!(gaps, [(1_000.0, 4_000.0)]);
        series.truncate(500.0);
        assert!(series.points(0).iter().all(|point| point.to <= 500.0));
    }

    #[test]
    fn all_of_the_run_stays_in_view_in_bounded_memory_and_nothing_is_lost() {
        let mut series = Series::default();
        for n in 0..10_000u32 {
            let mut sample = GroupSample {
                requests: 3,
                queue: u64::from(n % 7),
                used: 1,
                usable: 4,
                ..GroupSample::default()
            };
            sample.times.record(1_000_000);
            series.add(f64::from(n), f64::from(n + 1), vec![sample]);
        }
        let points = series.points(0);
        assert!((80..=MOST).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0].from, points.last().unwrap().to), (0.0, 10_000.0));
        let requests: f64 = points.iter().map(|p| p.rate * (p.to - p.from)).sum();
        assert!((requests - 30_000.0).abs() < 1e-6);
        assert!(points.iter().all(|point| point.utilisation == Some(0.25)));
        assert!((points[0].p99.unwrap() / 1e-3 - 1.0).abs() < 0.1);
        assert!(series.points(1).is_empty());
    }
}
