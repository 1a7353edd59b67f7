//! The log-linear histogram of the workspace, with its percentile function.

use std::ops::RangeInclusive;

/// Counts of numbers in log-linear buckets: each interval from one power of two to the next has `STEPS` buckets of
/// equal width, so the width of a bucket is at most 1/`STEPS` of its numbers.
///
/// The relative error of [`quantile`](Buckets::quantile) is at most 1/(2 `STEPS`), and the relative error of
/// [`at_most`](Buckets::at_most) at most 1/`STEPS`. There is no upper or lower limit for numbers. `STEPS` is a power of
/// two. Each integer below `STEPS` has its own bucket.
///
/// Memory grows with the number of buckets in use. Two histograms of the same numbers are equal, whatever the order in
/// which the numbers were recorded and merged.
///
/// ```
/// use corsair::Buckets;
///
/// let mut times: Buckets<u64, 1024> = Buckets::default();
/// (1..=1_000_000).for_each(|nanos| times.record(nanos));
/// assert_eq!(times.len(), 1_000_000);
/// let p99 = times.quantile(0.99).unwrap();
/// assert!(p99.abs_diff(990_000) <= 990_000 / 2048);
/// assert!(times.at_most(0.99).unwrap() >= 990_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets<V, const STEPS: u32> {
    /// The runs of buckets, in ascending order. Two neighbouring runs are merged if and only if the gap between them is
    /// at most [`GAP`].
    runs: Vec<Run>,
    /// Empty: the memory of a run that was cleared, for the next run.
    spare: Vec<u64>,
    total: u64,
    numbers: std::marker::PhantomData<V>,
}

/// Consecutive buckets, of which the first and the last are not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    first: i32,
    counts: Vec<u64>,
}

/// The largest gap between two buckets of a run, in indices.
const GAP: i32 = 32;

/// A type of number that [`Buckets`] can count: `u64` or `f64`.
pub trait BucketNumber: Copy + PartialOrd + sealed::Number {}

impl BucketNumber for u64 {}
impl BucketNumber for f64 {}

mod sealed {
    use std::ops::RangeInclusive;

    /// Maps numbers to buckets, in ascending order.
    pub trait Number: Sized {
        fn bucket<const STEPS: u32>(self) -> i32;
        fn bounds<const STEPS: u32>(bucket: i32) -> RangeInclusive<Self>;
        fn middle<const STEPS: u32>(bucket: i32) -> Self;
    }
}

impl sealed::Number for u64 {
    #[inline]
    fn bucket<const STEPS: u32>(self) -> i32 {
        if self < u64::from(STEPS) {
            return self as i32;
        }
        let bits = STEPS.trailing_zeros();
        let power = 63 - self.leading_zeros();
        let step = (self >> (power - bits)) as u32 & (STEPS - 1);
        ((power - bits + 1) * STEPS + step) as i32
    }

    fn bounds<const STEPS: u32>(bucket: i32) -> RangeInclusive<u64> {
        let least = |bucket: u32| {
            if bucket < STEPS {
                return bucket.into();
            }
            let (power, step) = (bucket / STEPS - 1, bucket % STEPS);
            if power + STEPS.trailing_zeros() > 63 {
                return u128::from(u64::MAX) + 1;
            }
            u128::from(STEPS + step) << power
        };
        let bucket = bucket as u32;
        least(bucket) as u64..=(least(bucket + 1) - 1) as u64
    }

    fn middle<const STEPS: u32>(bucket: i32) -> u64 {
        let (from, to) = Self::bounds::<STEPS>(bucket).into_inner();
        from + (to - from) / 2
    }
}

/// Bits of a floating-point number that do not select its bucket.
const fn dropped_bits(steps: u32) -> u32 {
    52 - steps.trailing_zeros()
}

/// Returns the leading bits that all magnitudes in a bucket have in common, and the sign of its numbers.
fn magnitude(bucket: i32) -> (u64, f64) {
    match bucket < 0 {
        true => ((-bucket - 1) as u64, -1.0),
        false => (bucket as u64, 1.0),
    }
}

impl sealed::Number for f64 {
    #[inline]
    fn bucket<const STEPS: u32>(self) -> i32 {
        let bits = (self.abs().to_bits() >> dropped_bits(STEPS)) as i32;
        if self < 0.0 { -bits - 1 } else { bits }
    }

    fn bounds<const STEPS: u32>(bucket: i32) -> RangeInclusive<f64> {
        let (bits, sign) = magnitude(bucket);
        let near = f64::from_bits(bits << dropped_bits(STEPS));
        let far = f64::from_bits(((bits + 1) << dropped_bits(STEPS)) - 1);
        let far = if near.is_finite() { far } else { near };
        match sign < 0.0 {
            true => -far..=-near,
            false => near..=far,
        }
    }

    fn middle<const STEPS: u32>(bucket: i32) -> f64 {
        let (bits, sign) = magnitude(bucket);
        if bits == 0 {
            return 0.0;
        }
        let from = f64::from_bits(bits << dropped_bits(STEPS));
        let to = f64::from_bits((bits + 1) << dropped_bits(STEPS));
        let to = if to.is_finite() {
            to
        } else {
            from.max(f64::MAX)
        };
        sign * (from / 2.0 + to / 2.0)
    }
}

impl Run {
    fn last(&self) -> i32 {
        self.first + self.counts.len() as i32 - 1
    }

    /// Appends counts from a bucket on, after empty buckets.
    fn extend_to(&mut self, bucket: i32, counts: &[u64]) {
        self.counts.resize((bucket - self.first) as usize, 0);
        self.counts.extend(counts);
    }

    fn counts(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        let all = (self.first..).zip(self.counts.iter().copied());
        all.filter(|&(_, count)| count > 0)
    }
}

impl<V, const STEPS: u32> Default for Buckets<V, STEPS> {
    fn default() -> Self {
        Buckets {
            runs: Vec::new(),
            spare: Vec::new(),
            total: 0,
            numbers: std::marker::PhantomData,
        }
    }
}

impl<V: BucketNumber, const STEPS: u32> Buckets<V, STEPS> {
    /// Counts a number.
    ///
    /// Floating-point numbers may be infinite; NaN counts as greater than infinity.
    #[inline]
    pub fn record(&mut self, number: V) {
        self.record_n(number, 1);
    }

    /// Counts a number `count` times.
    #[inline]
    pub fn record_n(&mut self, number: V, count: u64) {
        self.add_count(number.bucket::<STEPS>(), count);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for run in &other.runs {
            let before = self.runs.iter_mut().rfind(|mine| mine.first <= run.first);
            match before.filter(|mine| run.last() <= mine.last()) {
                Some(mine) => {
                    let begin = (run.first - mine.first) as usize;
                    for (known, count) in mine.counts[begin..].iter_mut().zip(&run.counts) {
                        *known += count;
                    }
                    self.total += run.counts.iter().sum::<u64>();
                }
                None => run
                    .counts()
                    .for_each(|(bucket, count)| self.add_count(bucket, count)),
            }
        }
    }

    /// Removes all counts. Keeps memory for as many buckets as the largest run had.
    pub fn clear(&mut self) {
        for Run { mut counts, .. } in self.runs.drain(..) {
            counts.clear();
            if counts.capacity() > self.spare.capacity() {
                self.spare = counts;
            }
        }
        self.total = 0;
    }

    /// Returns the number of recorded numbers.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// True if no number was recorded.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the quantile for the fraction `part`, from 0 to 1, as the middle of the bucket that contains it. `None`
    /// if the histogram is empty.
    pub fn quantile(&self, part: f64) -> Option<V> {
        self.bucket_at(part).map(V::middle::<STEPS>)
    }

    /// Returns an upper bound of the [`quantile`](Buckets::quantile) for the fraction `part`, from 0 to 1: the upper
    /// end of the bucket that contains the quantile. `None` if the histogram is empty.
    pub fn at_most(&self, part: f64) -> Option<V> {
        let bounds = self.bucket_at(part).map(V::bounds::<STEPS>)?;
        Some(*bounds.end())
    }

    /// Returns the lower end of the lowest bucket that is not empty.
    pub fn least(&self) -> Option<V> {
        let (bounds, _) = self.iter().next()?;
        Some(*bounds.start())
    }

    /// Returns the upper end of the highest bucket that is not empty.
    pub fn greatest(&self) -> Option<V> {
        let bounds = V::bounds::<STEPS>(self.runs.last()?.last());
        Some(*bounds.end())
    }

    /// Returns the total count of the buckets from the bucket of `low` to the bucket of `high`, inclusive.
    pub fn count_between(&self, low: V, high: V) -> u64 {
        let wanted = low.bucket::<STEPS>()..=high.bucket::<STEPS>();
        let counts = self.counts();
        let counts = counts.filter(|(bucket, _)| wanted.contains(bucket));
        counts.map(|(_, count)| count).sum()
    }

    /// Returns the bounds and counts of all buckets that are not empty, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (RangeInclusive<V>, u64)> + '_ {
        let counts = self.counts();
        counts.map(|(bucket, count)| (V::bounds::<STEPS>(bucket), count))
    }

    fn counts(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.runs.iter().flat_map(Run::counts)
    }

    /// Returns the bucket that contains the quantile `part`.
    fn bucket_at(&self, part: f64) -> Option<i32> {
        let rank = (libm::ceil(part * self.total as f64) as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for run in &self.runs {
            for (bucket, count) in (run.first..).zip(&run.counts) {
                seen += count;
                if seen >= rank {
                    return Some(bucket);
                }
            }
        }
        None
    }

    #[inline]
    fn add_count(&mut self, bucket: i32, count: u64) {
        if count == 0 {
            return;
        }
        self.total += count;
        let after = self.runs.partition_point(|run| run.first <= bucket);
        if let Some(run) = after.checked_sub(1).map(|before| &mut self.runs[before])
            && let Some(known) = run.counts.get_mut((bucket - run.first) as usize)
        {
            *known += count;
            return;
        }
        self.begin_run(after, bucket, count);
    }

    /// Adds a bucket between the runs `after - 1` and `after`: to the one that is near, or as a new run. The bucket may
    /// close the gap between both.
    #[cold]
    fn begin_run(&mut self, after: usize, bucket: i32, count: u64) {
        let is_near = |run: &Run| (run.first - bucket).max(bucket - run.last()) <= GAP;
        let before = after
            .checked_sub(1)
            .filter(|&left| is_near(&self.runs[left]));
        let next = self.runs.get(after).is_some_and(is_near);
        match before {
            Some(left) => {
                let run = &mut self.runs[left];
                run.extend_to(bucket, &[count]);
                if next {
                    let next = self.runs.remove(after);
                    self.runs[left].extend_to(next.first, &next.counts);
                }
            }
            None if next => {
                let run = &mut self.runs[after];
                let empty = (run.first - bucket - 1) as usize;
                let new = std::iter::once(count).chain(std::iter::repeat_n(0, empty));
                run.counts.splice(0..0, new);
                run.first = bucket;
            }
            None => {
                let mut counts = std::mem::take(&mut self.spare);
                counts.push(count);
                let first = bucket;
                self.runs.insert(after, Run { first, counts });
            }
        }
    }
}

impl<const STEPS: u32> Buckets<u64, STEPS> {
    /// Returns the mean of all numbers, approximated by the middles of their buckets. `None` if the histogram is empty.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total as f64;
        let parts = self.counts().map(|(bucket, count)| {
            let middle = <u64 as sealed::Number>::middle::<STEPS>(bucket);
            middle as f64 * count as f64 / total
        });
        (self.total > 0).then(|| parts.sum())
    }
}

#[cfg(feature = "serde")]
impl<V, const STEPS: u32> serde::Serialize for Buckets<V, STEPS>
where
    V: BucketNumber,
{
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.counts().collect::<Vec<_>>())
    }
}

#[cfg(feature = "serde")]
impl<'de, V: BucketNumber, const STEPS: u32> serde::Deserialize<'de> for Buckets<V, STEPS> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut buckets = Buckets::default();
        let counts: Vec<(i32, u64)> = serde::Deserialize::deserialize(from)?;
        for (bucket, count) in counts {
            buckets.add_count(bucket, count);
        }
        Ok(buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Random;

    fn numbers_are_within_their_bucket<const STEPS: u32>() {
        let powers = (0..63).flat_map(|p| [1 << p, (1 << p) + 1, 3u64 << p]);
        for number in powers.chain([0, 17, 999, 1_000_000, u64::MAX]) {
            let mut one: Buckets<u64, STEPS> = Buckets::default();
            one.record(number);
            let (from, to) = (one.least().unwrap(), one.greatest().unwrap());
            assert!(from <= number && number <= to, "{number}");
            assert!((to - from) as f64 <= number as f64 / f64::from(STEPS));
            let middle = one.quantile(0.5).unwrap();
            assert!(middle.abs_diff(number) as f64 <= number as f64 / f64::from(STEPS));
        }
        for number in [
            0.0,
            1e-300,
            -1e-9,
            0.1,
            1.0,
            -7.5,
            1e18,
            -f64::MAX,
            f64::INFINITY,
        ] {
            let mut one: Buckets<f64, STEPS> = Buckets::default();
            one.record(number);
            let (from, to) = (one.least().unwrap(), one.greatest().unwrap());
            assert!(from <= number && number <= to, "{number}: {from}, {to}");
            let middle = one.quantile(0.5).unwrap();
            let error = f64::from(STEPS).recip() / 2.0 + f64::EPSILON;
            assert!(middle == number || (middle / number - 1.0).abs() <= error);
        }
    }

    // Guarantee: core-56.
    #[test]
    fn buckets_are_as_narrow_as_they_should_be() {
        numbers_are_within_their_bucket::<16>();
        numbers_are_within_their_bucket::<64>();
        numbers_are_within_their_bucket::<1024>();
    }

    #[test]
    fn a_quantile_is_the_middle_of_its_bucket_and_at_most_its_end() {
        let mut counts: Buckets<u64, 64> = Buckets::default();
        counts.record_n(3, 2);
        counts.record_n(5, 0);
        counts.record(64);
        counts.record(133);
        let at = |part| counts.quantile(part);
        assert_eq!(
            [at(0.0), at(0.5), at(0.75), at(1.0)],
            [3, 3, 64, 132].map(Some)
        );
        assert_eq!(counts.at_most(1.0), Some(133));
        assert_eq!(counts.iter().last(), Some((132..=133, 1)));
        assert_eq!(
            (counts.count_between(4, 133), counts.count_between(0, 5)),
            (2, 2)
        );
        assert_eq!(counts.mean(), Some(50.5));
        counts.clear();
        assert_eq!(counts, Buckets::default());
        assert_eq!((counts.quantile(0.5), counts.mean()), (None, None));
        assert_eq!((counts.least(), counts.greatest()), (None, None));
    }

    #[test]
    fn a_cleared_histogram_keeps_its_memory() {
        let mut counts: Buckets<u64, 16> = Buckets::default();
        (1_000..9_000).for_each(|number| counts.record(number));
        let memory = counts.runs[0].counts.as_ptr();
        counts.clear();
        (1_000..9_000)
            .rev()
            .for_each(|number| counts.record(number));
        assert_eq!(counts.runs[0].counts.as_ptr(), memory);
    }

    // Guarantee: core-56.
    #[test]
    fn equal_numbers_make_equal_histograms_in_any_order() {
        let mut random = Random::new(3);
        let count = if cfg!(miri) { 60 } else { 3_000 };
        let mut numbers: Vec<u64> = (0..count)
            .map(|_| random.bits() >> random.below(64))
            .collect();
        let of = |numbers: &[u64]| {
            let mut all: Buckets<u64, 16> = Buckets::default();
            numbers.iter().for_each(|&number| all.record(number));
            all
        };
        let forth = of(&numbers);
        let (first, second) = numbers.split_at(count / 3);
        let mut merged = of(second);
        merged.merge(&of(first));
        assert_eq!(merged, forth);
        let mut twice = merged.clone();
        twice.merge(&merged);
        assert!(
            twice
                .counts()
                .eq(merged.counts().map(|(bucket, count)| (bucket, 2 * count)))
        );
        assert_eq!(twice.len(), 2 * merged.len());
        assert_eq!(
            forth.iter().map(|(_, count)| count).sum::<u64>(),
            forth.len()
        );
        numbers.sort_unstable();
        assert_eq!(of(&numbers), forth);
        for part in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let rank = (part * count as f64).ceil().max(1.0) as usize;
            let exact = numbers[rank - 1];
            assert!(forth.at_most(part).unwrap() >= exact);
            let error = forth.quantile(part).unwrap().abs_diff(exact);
            assert!(error as f64 <= exact as f64 / 16.0, "{part}");
        }
        assert!(
            forth
                .runs
                .windows(2)
                .all(|two| two[1].first - two[0].last() > GAP)
        );
    }
}
