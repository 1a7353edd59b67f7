//! Response times of few or many calls.

use super::Times;

/// Response times. The first times form a list, because most edges of a graph have few answers in an interval; a longer
/// list becomes a histogram.
///
/// ```
/// use corsair_arch::live::ResponseTimes;
///
/// let mut times = ResponseTimes::default();
/// (1..=1_000).for_each(|millis| times.record(millis * 1_000_000));
/// let (median, p99) = times.percentiles().expect("there are times");
/// assert!(median.abs_diff(500_000_000) <= 500_000_000 / 32);
/// assert!(p99.abs_diff(990_000_000) <= 990_000_000 / 32);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ResponseTimes {
    list: Vec<RoundedTime>,
    counted: Times,
}

/// The maximum length of a list, and the maximum length of a short list.
const MOST_LISTED: usize = 512;
const SHORT: usize = 32;

/// A time with 5 significant binary digits: the number of a bucket, of which there are 16 between two powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RoundedTime(u16);

impl RoundedTime {
    /// The digits of an `f32` that are dropped, and the other digits of 1 ns.
    const DROPPED: u32 = f32::MANTISSA_DIGITS - 5;
    const LEAST: u32 = 1_f32.to_bits() >> RoundedTime::DROPPED;

    #[inline]
    fn new(nanos: u64) -> RoundedTime {
        let digits = (nanos as f32).to_bits() >> RoundedTime::DROPPED;
        RoundedTime(digits.saturating_sub(RoundedTime::LEAST) as u16)
    }

    /// Returns the middle of the times with these digits, in nanoseconds.
    #[inline]
    fn nanos(self) -> u64 {
        let digits = u32::from(self.0) + RoundedTime::LEAST;
        let middle = 1 << (RoundedTime::DROPPED - 1);
        f32::from_bits(digits << RoundedTime::DROPPED | middle) as u64
    }
}

impl ResponseTimes {
    /// Adds a time in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        let new = RoundedTime::new(nanos);
        if self.list.len() == self.list.capacity() {
            return self.grow(new);
        }
        self.list.push(new);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, new: RoundedTime) {
        if self.list.len() >= MOST_LISTED {
            self.compact();
        }
        self.list.push(new);
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &ResponseTimes) {
        if !other.counted.is_empty() {
            self.counted.merge(&other.counted);
        }
        if self.list.len() + other.list.len() > MOST_LISTED {
            self.compact();
        }
        self.list.extend_from_slice(&other.list);
    }

    fn compact(&mut self) {
        add(&self.list, &mut self.counted);
        self.list.clear();
    }

    /// Removes all times, but keeps the memory of the list.
    pub fn clear(&mut self) {
        self.list.clear();
        if !self.counted.is_empty() {
            self.counted.clear();
        }
    }

    /// Adds the times to a histogram.
    pub fn add_to(&self, histogram: &mut Times) {
        histogram.merge(&self.counted);
        add(&self.list, histogram);
    }

    /// Returns the histogram of the times.
    pub fn histogram(&self) -> Times {
        let mut all = self.counted.clone();
        add(&self.list, &mut all);
        all
    }

    /// Returns the quantile for the fraction `part`, from 0 to 1, in nanoseconds; `None` if there are no times.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        self.histogram().quantile(part)
    }

    /// Returns the median and the 99th percentile in nanoseconds; `None` if there are no times.
    pub fn percentiles(&self) -> Option<(u64, u64)> {
        let list = &self.list;
        if list.len() <= SHORT && self.counted.is_empty() {
            return percentiles(list, &mut [RoundedTime(0); SHORT]);
        } else if list.len() <= MOST_LISTED && self.counted.is_empty() {
            return percentiles(list, &mut [RoundedTime(0); MOST_LISTED]);
        }
        let all = self.histogram();
        all.quantile(0.5).zip(all.quantile(0.99))
    }
}

/// Returns the median and the 99th percentile of a list, which is copied to `memory`.
#[inline]
fn percentiles(list: &[RoundedTime], memory: &mut [RoundedTime]) -> Option<(u64, u64)> {
    let count = list.len();
    let memory = &mut memory[..count];
    memory.copy_from_slice(list);
    let last = count.checked_sub(1 + count / 100)?;
    let p99 = match last + 1 == count {
        true => *memory.iter().max()?,
        false => *memory.select_nth_unstable(last).1,
    };
    let (_, median, _) = memory.select_nth_unstable((count - 1) / 2);
    Some((median.nanos(), p99.nanos()))
}

/// Adds a list to a histogram. The times of a long list are counted first.
fn add(list: &[RoundedTime], histogram: &mut Times) {
    let bounds = list.iter().min().zip(list.iter().max());
    let Some((least, greatest)) = bounds.filter(|_| list.len() > SHORT) else {
        for time in list {
            histogram.record(time.nanos());
        }
        return;
    };
    let mut counts = vec![0u32; usize::from(greatest.0 - least.0) + 1];
    for time in list {
        counts[usize::from(time.0 - least.0)] += 1;
    }
    for (place, count) in (least.0..).zip(counts) {
        if count > 0 {
            histogram.record_n(RoundedTime(place).nanos(), count.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_sums_are_those_of_a_histogram() {
        assert!(ResponseTimes::default().percentiles().is_none());
        for count in [1, 2, 3, 8, 31, 33, 99, 100, 1_000, 1_025, 5_000] {
            let numbers = (0..count).map(|n| 20 + n * 7_919 % 1_000 * 1_000_003);
            let mut all = Times::default();
            let (mut times, mut half, mut rest) = <(ResponseTimes, _, ResponseTimes)>::default();
            for (place, number) in numbers.enumerate() {
                all.record(number);
                times.record(number);
                let part: &mut ResponseTimes = if place % 2 == 0 { &mut half } else { &mut rest };
                part.record(number);
            }
            half.merge(&rest);
            for times in [&times, &half] {
                let mut added = Times::default();
                times.add_to(&mut added);
                assert_eq!(added, all, "{count}");
                let (median, p99) = times.percentiles().unwrap();
                for (part, time) in [(0.5, median), (0.99, p99)] {
                    // Both are in the same bucket.
                    let mut one = Times::default();
                    one.record(time);
                    assert_eq!(one.quantile(1.0), all.quantile(part), "{part} of {count}");
                }
            }
            times.clear();
            assert!(times.quantile(0.5).is_none());
        }
    }

    #[test]
    fn every_time_is_rounded_to_its_bucket() {
        for nanos in [
            0,
            1,
            2,
            15,
            16,
            17,
            31,
            33,
            999,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut times = ResponseTimes::default();
            (0..100).for_each(|_| times.record(nanos));
            let (median, p99) = times.percentiles().unwrap();
            assert_eq!(median, p99);
            // An `f32` may round a time up to the next power of two.
            assert!(
                median.abs_diff(nanos.max(1)) <= nanos / 32 + 2,
                "{nanos} is {median}"
            );
        }
    }
}
