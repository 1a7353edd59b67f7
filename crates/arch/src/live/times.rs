//! Response times of few or many calls.

use super::Times;
use std::borrow::Cow;

/// Response times. The first times form a list, because most edges of a graph have few answers in an interval; a longer
/// list is counted by time.
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
#[repr(C)]
pub struct ResponseTimes {
    list: Vec<RoundedTime>,
    counted: Counts,
}

/// The maximum length of a list, and the maximum length of a list whose percentiles are found by sorting.
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
        self.counted.merge(&other.counted);
        if self.list.len() + other.list.len() > MOST_LISTED {
            self.compact();
        }
        self.list.extend_from_slice(&other.list);
    }

    /// Counts the times of a list that is not short, which makes [`ResponseTimes::percentiles`] faster.
    pub fn compact(&mut self) {
        if self.list.len() > SHORT {
            self.counted.add(&self.list);
            self.list.clear();
        }
    }

    /// True if there are no times.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.counted.counts.is_empty()
    }

    /// Removes all times, but keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
        self.counted.counts.clear();
    }

    /// Adds the times to a histogram.
    pub fn add_to(&self, histogram: &mut Times) {
        for (time, &count) in (self.counted.first..).zip(&self.counted.counts) {
            if count > 0 {
                histogram.record_n(RoundedTime(time).nanos(), count);
            }
        }
        for time in &self.list {
            histogram.record(time.nanos());
        }
    }

    /// Returns the histogram of the times.
    pub fn histogram(&self) -> Times {
        let mut all = ResponseTimes::clone(self);
        all.compact();
        let mut histogram = Times::default();
        all.add_to(&mut histogram);
        histogram
    }

    /// Returns the quantile for the fraction `part`, from 0 to 1, in nanoseconds; `None` if there are no times.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        self.histogram().quantile(part)
    }

    /// Returns the median and the 99th percentile in nanoseconds; `None` if there are no times.
    pub fn percentiles(&self) -> Option<(u64, u64)> {
        if self.list.len() <= SHORT && self.counted.counts.is_empty() {
            return percentiles(&self.list);
        }
        let mut all = Cow::Borrowed(&self.counted);
        if !self.list.is_empty() {
            all.to_mut().add(&self.list);
        }
        let count: u64 = all.counts.iter().sum();
        let counts = || all.counts.iter().copied().enumerate();
        let median = at(counts(), count.checked_sub(1)? / 2)?;
        let p99 = at(counts().rev(), count / 100)?;
        let [median, p99] = [median, p99].map(|place| RoundedTime(all.first + place as u16));
        Some((median.nanos(), p99.nanos()))
    }
}

/// Returns the median and the 99th percentile of a short list.
#[inline]
fn percentiles(list: &[RoundedTime]) -> Option<(u64, u64)> {
    let mut memory = [RoundedTime(0); SHORT];
    let sorted = &mut memory[..list.len()];
    sorted.copy_from_slice(list);
    sorted.sort_unstable();
    let greatest = sorted.last()?;
    Some((sorted[(list.len() - 1) / 2].nanos(), greatest.nanos()))
}

/// Returns the place with this rank among counted places; the first rank is 0.
fn at(mut counts: impl Iterator<Item = (usize, u64)>, mut rank: u64) -> Option<usize> {
    let found = counts.find(|&(_, count)| {
        let is_here = rank < count;
        rank = rank.wrapping_sub(count);
        is_here
    });
    found.map(|(place, _)| place)
}

/// The number of times by rounded time, from the time `first`.
#[derive(Clone, Debug, Default)]
struct Counts {
    first: u16,
    counts: Vec<u64>,
}

impl Counts {
    /// Adds the times of a list.
    fn add(&mut self, list: &[RoundedTime]) {
        for &time in list {
            match self
                .counts
                .get_mut(usize::from(time.0.wrapping_sub(self.first)))
            {
                Some(count) => *count += 1,
                None => {
                    self.cover(time.0, time.0);
                    self.counts[usize::from(time.0 - self.first)] += 1;
                }
            }
        }
    }

    fn merge(&mut self, other: &Counts) {
        if let Some(last) = other.counts.len().checked_sub(1) {
            self.cover(other.first, other.first + last as u16);
            let counts = &mut self.counts[usize::from(other.first - self.first)..];
            for (count, other) in counts.iter_mut().zip(&other.counts) {
                *count += other;
            }
        }
    }

    /// Extends the counts to these times, in steps of a factor of 16.
    #[inline(never)]
    fn cover(&mut self, least: u16, greatest: u16) {
        const STEP: u16 = 64;
        let least = least / STEP * STEP;
        if self.counts.is_empty() {
            self.first = least;
        }
        if least < self.first {
            let new = std::iter::repeat_n(0, usize::from(self.first - least));
            self.counts.splice(..0, new);
            self.first = least;
        }
        let len = usize::from((greatest - self.first) / STEP * STEP + STEP);
        if len > self.counts.len() {
            self.counts.resize(len, 0);
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
