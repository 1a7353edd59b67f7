//! Sums that do not depend on the order of addition.

use std::collections::BTreeMap;

/// The exact sum of numbers, independent of the order of addition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sum {
    /// The integer part of the sum of numbers of ordinary size. These are multiples of 2^-128 below 2^63; `part` is the
    /// fraction, in units of 2^-128.
    whole: i128,
    part: u128,
    others: Option<Box<Others>>,
}

/// The sums of finite numbers that are too large or too small for `whole` and `part`, and the counts of infinite
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Others {
    /// The sums of finite numbers, by the exponent of their unit in steps of [`STEP`].
    finite: BTreeMap<i16, i128>,
    /// The number of infinite values.
    infinite: u64,
    negative_infinite: u64,
}

/// The difference between the exponents of two units. The 53 bits of a number reach at most into the next step, so 128
/// bits can hold the sum of 2^63 such numbers.
const STEP: i16 = 60;

const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_TO_THE_128: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;

impl Sum {
    /// The sum of zero numbers.
    pub(super) const NONE: Sum = Sum {
        whole: 0,
        part: 0,
        others: None,
    };

    /// Adds a number; NaN is ignored.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let size = value.abs();
        if size < TWO_TO_THE_63 {
            // Both conversions are exact.
            let whole = size as i64;
            let units = (size - whole as f64) * TWO_TO_THE_128;
            let part = units as u128;
            if part as f64 == units {
                return match value < 0.0 {
                    false => self.add_ordinary(whole.into(), part),
                    true => self.add_ordinary(
                        -i128::from(whole) - i128::from(part > 0),
                        part.wrapping_neg(),
                    ),
                };
            }
        }
        self.add_other(value);
    }

    fn add_ordinary(&mut self, whole: i128, part: u128) {
        let (sum, carried) = self.part.overflowing_add(part);
        self.part = sum;
        self.whole = self.whole.wrapping_add(whole).wrapping_add(carried.into());
    }

    #[cold]
    fn add_other(&mut self, value: f64) {
        let others = self.others.get_or_insert_default();
        if value == f64::INFINITY {
            others.infinite += 1;
        } else if value == f64::NEG_INFINITY {
            others.negative_infinite += 1;
        } else {
            let bits = value.to_bits();
            let (exponent, mantissa) = ((bits >> 52) as i16 & 0x7ff, bits & ((1 << 52) - 1));
            let normal = i16::from(exponent > 0);
            let mantissa = i128::from(mantissa | u64::from(exponent > 0) << 52);
            // A subnormal number has the same unit as the least normal number.
            let unit = exponent - normal;
            let shifted = mantissa << (unit % STEP);
            let low = shifted & ((1 << STEP) - 1);
            let sign = if value < 0.0 { -1 } else { 1 };
            *others.finite.entry(unit / STEP).or_default() += sign * low;
            *others.finite.entry(unit / STEP + 1).or_default() += sign * (shifted >> STEP);
        }
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Sum) {
        self.add_ordinary(other.whole, other.part);
        if let Some(more) = &other.others {
            let others = self.others.get_or_insert_default();
            others.infinite += more.infinite;
            others.negative_infinite += more.negative_infinite;
            for (step, sum) in &more.finite {
                *others.finite.entry(*step).or_default() += sum;
            }
        }
    }

    /// Returns the mean of the `count` added numbers.
    pub(super) fn mean(&self, count: u64) -> f64 {
        let count = count as f64;
        // A negative sum is stored as a negative integer part and a positive fraction, so it is negated first.
        let negative = self.whole < 0;
        let (whole, part) = match negative {
            false => (self.whole as u128, self.part),
            true => {
                let (part, none) = self.part.overflowing_neg();
                (
                    (self.whole.wrapping_neg() as u128).wrapping_sub(none.into()),
                    part,
                )
            }
        };
        let size = whole as f64 + part as f64 / TWO_TO_THE_128;
        let mut mean = if negative { -size } else { size } / count;
        let Some(others) = &self.others else {
            return mean;
        };
        match (others.infinite > 0, others.negative_infinite > 0) {
            (true, true) => return f64::NAN,
            (true, false) => return f64::INFINITY,
            (false, true) => return f64::NEG_INFINITY,
            (false, false) => {}
        }
        // Adds the largest sums last, so that small ones are not rounded away.
        for (step, sum) in &others.finite {
            // The exponent of the unit is the stored exponent minus 1075.
            let unit = i32::from(*step) * i32::from(STEP) + 1 - 1075;
            mean += libm::scalbn(*sum as f64 / count, unit);
        }
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Random;

    fn sum(values: &[f64]) -> Sum {
        let mut sum = Sum::default();
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    fn mean(values: &[f64]) -> f64 {
        sum(values).mean(values.len() as u64)
    }

    // Guarantee: core-56.
    #[test]
    fn the_mean_of_whatever_numbers_is_theirs() {
        let (least, most) = (f64::from_bits(1), f64::MAX);
        for value in [
            0.0,
            1.0,
            0.1,
            -0.1,
            1e-3,
            -1e-4,
            1e-23,
            1e-25,
            -1e-25,
            1e-300,
            least,
            -least,
            f64::MIN_POSITIVE,
            1e15,
            -1e15,
            9.2e18,
            -9.3e18,
            1e19,
            1e25,
            -1e38,
            1e300,
            most,
            -most,
        ] {
            for count in [1, 2, 3, 1000] {
                let mean = mean(&vec![value; count]);
                assert!(
                    (mean - value).abs() <= value.abs() * 1e-15,
                    "{value:e} {count} times: {mean:e}"
                );
            }
            assert_eq!(mean(&[value, -value]), 0.0, "{value:e}");
        }
        assert_eq!(mean(&[1e300, 1.0, -1e300, 3.0]), 1.0);
        assert_eq!(mean(&[-0.25, 0.75, -1.5, -1.0]), -0.5);
        assert_eq!(mean(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(mean(&[-1e300, f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert!(mean(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    // Guarantee: core-56.
    #[test]
    fn sums_do_not_depend_on_the_order_or_on_who_adds() {
        let mut random = Random::new(3);
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let mut values: Vec<f64> = (0..50)
                .map(|_| match random.below(4) {
                    0 => f64::from(random.below(1000)) / 7.0 - 70.0,
                    1 => [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN]
                        [random.below(4) as usize],
                    _ => f64::from_bits(random.bits()),
                })
                .filter(|value| !value.is_nan())
                .collect();
            let all = sum(&values);
            let (one, two) = values.split_at(random.below(20) as usize);
            let mut merged = sum(two);
            merged.merge(&sum(one));
            values.reverse();
            assert_eq!((sum(&values), merged), (all.clone(), all));
        }
    }
}
