//! A histogram of times that is small enough for each edge of a graph to have one.

/// Steps between two powers of two: a time is known within 1/32 of itself.
const STEPS: u32 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// How many times there were of each length, in nanoseconds. Only the range that has occurred takes
/// memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The bucket of the first count.
    first: u32,
    counts: Vec<u32>,
}

/// The bucket of a time: below 16 each its own, then 16 for each power of two.
fn bucket(nanos: u64) -> u32 {
    if nanos < u64::from(STEPS) {
        return nanos as u32;
    }
    let power = 63 - nanos.leading_zeros();
    let step = (nanos >> (power - STEP_BITS)) as u32 & (STEPS - 1);
    (power - STEP_BITS + 1) * STEPS + step
}

/// The smallest time of a bucket; saturates behind the last.
fn least(bucket: u32) -> u64 {
    if bucket < STEPS {
        return bucket.into();
    }
    let (power, step) = (bucket / STEPS - 1, bucket % STEPS);
    if power + STEP_BITS > 63 {
        return u64::MAX;
    }
    u64::from(STEPS + step) << power
}

impl Times {
    /// Counts a time.
    pub fn add(&mut self, nanos: u64) {
        *self.count_mut(bucket(nanos)) += 1;
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

    /// Forgets all.
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

    /// The time that a part of them, from 0 to 1, does not exceed, to 1/32 of itself; none if there
    /// are none.
    pub fn percentile(&self, part: f64) -> Option<u64> {
        let all = self.len();
        let wanted = libm::ceil(part * all as f64).max(1.0) as u64;
        let mut seen = 0;
        for (bucket, &count) in (self.first..).zip(&self.counts) {
            seen += u64::from(count);
            if count > 0 && seen >= wanted {
                let (from, to) = (least(bucket), least(bucket + 1));
                return Some(from + (to - from) / 2);
            }
        }
        None
    }

    /// The buckets that have counts: from which time on, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = (self.first..).zip(&self.counts);
        let some = all.filter(|&(_, &count)| count > 0);
        some.map(|(bucket, &count)| (least(bucket), count))
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
    fn every_time_is_in_the_bucket_that_begins_at_or_before_it() {
        let mut times: Vec<u64> = (0..63)
            .flat_map(|p| [1 << p, (1 << p) + 1, 3 << p])
            .collect();
        times.extend([0, 17, 999, 1_000_000, u64::MAX]);
        for time in times {
            let bucket = bucket(time);
            assert!(least(bucket) <= time, "{time}");
            assert!(time < least(bucket + 1) || time == u64::MAX, "{time}");
            assert!(
                (time - least(bucket)) as f64 <= time as f64 / 16.0,
                "{time}"
            );
        }
    }

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
