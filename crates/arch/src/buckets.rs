//! Buckets of a histogram of numbers: below `STEPS` each number has its own, and from there on each power
//! of two has `STEPS` of them, so that a number is known within one part in twice as many.

/// The bucket of a number.
#[inline]
pub(crate) fn bucket<const STEPS: u32>(number: u64) -> u32 {
    if number < u64::from(STEPS) {
        return number as u32;
    }
    let bits = STEPS.trailing_zeros();
    let power = 63 - number.leading_zeros();
    let step = (number >> (power - bits)) as u32 & (STEPS - 1);
    (power - bits + 1) * STEPS + step
}

/// The smallest number of a bucket; saturates behind the last.
pub(crate) fn least<const STEPS: u32>(bucket: u32) -> u64 {
    if bucket < STEPS {
        return bucket.into();
    }
    let (power, step) = (bucket / STEPS - 1, bucket % STEPS);
    if power + STEPS.trailing_zeros() > 63 {
        return u64::MAX;
    }
    u64::from(STEPS + step) << power
}

/// Returns the quantile for `part`, from 0 to 1, of `total` values: the middle of its bucket. `counts` are
/// buckets in ascending order with their counts. `None` without values.
pub(crate) fn quantile<const STEPS: u32>(
    counts: impl Iterator<Item = (u32, u32)>,
    total: u64,
    part: f64,
) -> Option<u64> {
    let wanted = libm::ceil(part * total as f64).max(1.0) as u64;
    let mut seen = 0;
    for (bucket, count) in counts {
        seen += u64::from(count);
        if count > 0 && seen >= wanted {
            let (from, to) = (least::<STEPS>(bucket), least::<STEPS>(bucket + 1));
            return Some(from + (to - from - 1) / 2);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_is_in_the_bucket_that_begins_at_or_before_it<const STEPS: u32>() {
        let mut numbers: Vec<u64> = (0..63)
            .flat_map(|p| [1 << p, (1 << p) + 1, 3 << p])
            .collect();
        numbers.extend([0, 17, 999, 1_000_000, u64::MAX]);
        for number in numbers {
            let bucket = bucket::<STEPS>(number);
            let (from, to) = (least::<STEPS>(bucket), least::<STEPS>(bucket + 1));
            assert!(from <= number, "{number}");
            assert!(number < to || number == u64::MAX, "{number}");
            let width = (to - from - 1) as f64;
            assert!(width <= number as f64 / f64::from(STEPS), "{number}");
            let middle = quantile::<STEPS>([(bucket, 1)].into_iter(), 1, 0.5).unwrap();
            assert!(middle.abs_diff(number) as f64 <= number as f64 / f64::from(STEPS));
        }
    }

    #[test]
    fn numbers_are_in_buckets_that_are_as_narrow_as_they_should_be() {
        each_is_in_the_bucket_that_begins_at_or_before_it::<16>();
        each_is_in_the_bucket_that_begins_at_or_before_it::<64>();
    }

    #[test]
    fn a_quantile_is_the_middle_of_its_bucket() {
        let counts = [(3, 2), (5, 0), (64, 1), (130, 1)];
        let at = |part| quantile::<64>(counts.into_iter(), 4, part);
        assert_eq!(
            [at(0.0), at(0.5), at(0.75), at(1.0)],
            [3, 3, 64, 132].map(Some)
        );
        assert_eq!(quantile::<64>(std::iter::empty(), 0, 0.5), None);
    }
}
