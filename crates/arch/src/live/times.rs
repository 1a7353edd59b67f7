//! A histogram of times that is small enough for each edge of a graph to have one.

use crate::buckets::{bucket, least, quantile};

/// Steps between two powers of two: a time is known within 1/32 of itself.
const STEPS: u32 = 16;

/// A histogram of times in nanoseconds. Only the range with values takes memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The bucket of the first count.
    first: u32,
    counts: Vec<u32>,
}

impl Times {
    /// Counts a time.
    pub fn add(&mut self, nanos: u64) {
        *self.count_mut(bucket::<STEPS>(nanos)) += 1;
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Times) {
        for (bucket, &count) in (other.first..).zip(&other.counts) {
            if count > 0 {
                let mine = self.count_mut(bucket);
                *mine = mine.saturating_add(count);
            }
        }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Returns the percentile for `part`, from 0 to 1, with a relative error of 1/32; `None` without values.
    pub fn percentile(&self, part: f64) -> Option<u64> {
        let counts = (self.first..).zip(self.counts.iter().copied());
        quantile::<STEPS>(counts, self.len(), part)
    }

    /// The buckets that have counts: from which time on, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = (self.first..).zip(&self.counts);
        let some = all.filter(|&(_, &count)| count > 0);
        some.map(|(bucket, &count)| (least::<STEPS>(bucket), count))
    }

    fn count_mut(&mut self, bucket: u32) -> &mut u32 {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = (self.first - bucket) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = (bucket - self.first) as usize;
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        &mut self.counts[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_times_within_a_sixteenth() {
        let mut odd = Times::default();
        let mut even = Times::default();
        for time in (1..=1000u64).rev() {
            [&mut even, &mut odd][time as usize % 2].add(time * 1_000);
        }
        odd.merge(&even);
        assert_eq!(odd.len(), 1000);
        for (part, exact) in [(0.001, 1e3), (0.5, 500e3), (0.99, 990e3), (1.0, 1000e3)] {
            let found = odd.percentile(part).unwrap() as f64;
            assert!((found / exact - 1.0).abs() < 1.0 / 16.0, "{part}: {found}");
        }
        assert_eq!(odd.buckets().map(|(_, count)| count).sum::<u32>(), 1000);
        assert_eq!(Times::default().percentile(0.5), None);
    }
}
