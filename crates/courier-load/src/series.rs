//! Times, counted in a histogram of three digits.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Times that were measured.
#[derive(Clone, Debug)]
pub struct Series {
    histogram: Histogram<u64>,
    total: Duration,
}

impl Default for Series {
    fn default() -> Series {
        Series::new()
    }
}

impl Series {
    /// None yet.
    pub fn new() -> Series {
        Series {
            histogram: Histogram::new(3).expect("three digits are allowed"),
            total: Duration::ZERO,
        }
    }

    /// Counts one.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Cannot fail: the histogram grows with what it counts.
        let _ = self.histogram.record(nanos);
        self.total += time;
    }

    /// Adds the values of another series.
    pub fn add(&mut self, other: &Series) {
        // Both resize themselves.
        let _ = self.histogram.add(&other.histogram);
        self.total += other.total;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the sum of all values.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The average; zero of none.
    pub fn average(&self) -> Duration {
        match self.count() {
            0 => Duration::ZERO,
            count => Duration::from_secs_f64(self.total.as_secs_f64() / count as f64),
        }
    }

    /// The percentile: this many of a hundred took no longer.
    pub fn percentile(&self, percent: f64) -> Duration {
        let quantile = self.histogram.value_at_quantile(percent / 100.0);
        // A bucket's upper end may lie above the longest.
        Duration::from_nanos(quantile).min(self.max())
    }

    /// The shortest.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.histogram.min())
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
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
