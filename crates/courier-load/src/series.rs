//! Durations, counted in a histogram with three significant digits.

use corsair::Buckets;
use std::time::Duration;

/// A histogram of measured durations.
#[derive(Clone, Debug, Default)]
pub struct Series {
    histogram: Buckets<u64, 1024>,
    total: Duration,
}

impl Series {
    /// Creates an empty series.
    pub fn new() -> Series {
        Series::default()
    }

    /// Counts a duration.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.record(nanos);
        self.total += time;
    }

    /// Adds the values of another series.
    pub fn add(&mut self, other: &Series) {
        self.histogram.merge(&other.histogram);
        self.total += other.total;
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the sum of all values.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// Returns the average; zero for an empty series.
    pub fn average(&self) -> Duration {
        match self.count() {
            0 => Duration::ZERO,
            count => Duration::from_secs_f64(self.total.as_secs_f64() / count as f64),
        }
    }

    /// Returns the duration that `percent` of a hundred measured durations do not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.histogram.at_most(percent / 100.0).unwrap_or(0))
    }

    /// Returns the shortest duration.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.histogram.least().unwrap_or(0))
    }

    /// Returns the longest duration.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.greatest().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_thousand_times_the_percentiles_are_known_to_three_digits() {
        let (mut low, mut high) = (Series::new(), Series::new());
        for micros in 1..=500 {
            low.record(Duration::from_micros(micros));
            high.record(Duration::from_micros(500 + micros));
        }
        low.add(&high);
        assert_eq!(low.count(), 1000);
        assert_eq!(low.total(), Duration::from_micros(500_500));
        assert_eq!(low.average(), Duration::from_nanos(500_500));
        for (percent, micros) in [(50.0, 500.0), (99.0, 990.0), (99.9, 999.0)] {
            let found = low.percentile(percent).as_secs_f64() * 1e6;
            assert!(
                (found - micros).abs() < micros / 500.0,
                "{percent}: {found}"
            );
        }
        assert!(low.max() >= low.percentile(99.9));
        assert!(low.min() <= Duration::from_micros(1));
    }
}
