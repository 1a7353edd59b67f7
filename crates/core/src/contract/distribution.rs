//! Distributions from which actors draw, the same to the last bit on every machine.
//!
//! A number is the distribution's quantile at one uniformly distributed point, so that each costs one
//! number of the stream. The functions behind it are those of the `libm` crate and the four
//! operations of IEEE 754: no platform's `ln` or `exp` is asked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A distribution of real numbers.
///
/// ```
/// use corsair::{Distribution, Random};
///
/// let service = Distribution::exponential(0.010)?; // seconds
/// assert_eq!(service.mean(), 0.010);
/// let mut random = Random::new(7);
/// let drawn: Vec<f64> = (0..3).map(|_| service.draw(random.bits())).collect();
/// assert!(drawn.iter().all(|seconds| *seconds > 0.0));
/// assert!(Distribution::exponential(-1.0).is_err());
/// # Ok::<(), corsair::DistributionError>(())
/// ```
///
/// An actor draws from its own stream with [`Context::sample`](crate::Context::sample), or a span of
/// time with [`Context::sample_time`](crate::Context::sample_time).
#[derive(Clone, PartialEq)]
pub struct Distribution(Shape);

#[derive(Clone, PartialEq)]
enum Shape {
    Constant(f64),
    Uniform {
        low: f64,
        high: f64,
    },
    Exponential {
        mean: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    Pareto {
        least: f64,
        shape: f64,
    },
    /// In ascending order.
    Empirical(Arc<[f64]>),
}

/// Why there is no such distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// A parameter is out of its range.
    #[error("a distribution's {parameter} is to be {range}, not {value}")]
    Parameter {
        /// Which.
        parameter: &'static str,
        /// What it may be.
        range: &'static str,
        /// What it was.
        value: f64,
    },
    /// An empirical distribution of nothing.
    #[error("an empirical distribution needs at least one value")]
    Empty,
}

fn check(
    parameter: &'static str,
    range: &'static str,
    value: f64,
    fits: bool,
) -> Result<(), DistributionError> {
    if fits && value.is_finite() {
        return Ok(());
    }
    let range = if value.is_finite() { range } else { "finite" };
    Err(DistributionError::Parameter {
        parameter,
        range,
        value,
    })
}

impl Distribution {
    /// Always this value.
    ///
    /// # Errors
    /// If it is not finite. So for the others: parameters are finite numbers within their ranges.
    pub fn constant(value: f64) -> Result<Distribution, DistributionError> {
        check("value", "finite", value, true)?;
        Ok(Distribution(Shape::Constant(value)))
    }

    /// Evenly between `low` and `high`.
    ///
    /// # Errors
    /// If `high` is less than `low`.
    pub fn uniform(low: f64, high: f64) -> Result<Distribution, DistributionError> {
        check("lower end", "finite", low, true)?;
        check("upper end", "at least the lower one", high, high >= low)?;
        Ok(Distribution(Shape::Uniform { low, high }))
    }

    /// Exponentially distributed: the time between events of a Poisson process.
    ///
    /// # Errors
    /// If the mean is not positive.
    pub fn exponential(mean: f64) -> Result<Distribution, DistributionError> {
        check("mean", "positive", mean, mean > 0.0)?;
        Ok(Distribution(Shape::Exponential { mean }))
    }

    /// Normally distributed.
    ///
    /// # Errors
    /// If the deviation is negative.
    pub fn normal(mean: f64, deviation: f64) -> Result<Distribution, DistributionError> {
        check("mean", "finite", mean, true)?;
        check("deviation", "zero or more", deviation, deviation >= 0.0)?;
        Ok(Distribution(Shape::Normal { mean, deviation }))
    }

    /// Numbers whose logarithm is normally distributed, with this median; `sigma` is the deviation of
    /// the logarithm.
    ///
    /// # Errors
    /// If the median is not positive, or `sigma` negative or more than 30.
    pub fn lognormal(median: f64, sigma: f64) -> Result<Distribution, DistributionError> {
        check("median", "positive", median, median > 0.0)?;
        check(
            "sigma",
            "from 0 to 30",
            sigma,
            (0.0..=30.0).contains(&sigma),
        )?;
        let mu = libm::log(median);
        Ok(Distribution(Shape::Lognormal { mu, sigma }))
    }

    /// Pareto's distribution, whose tail falls as the power `-shape`, from `least` on. Its mean is
    /// infinite unless the shape is more than 1, its variance unless it is more than 2.
    ///
    /// # Errors
    /// If one of them is not positive.
    pub fn pareto(least: f64, shape: f64) -> Result<Distribution, DistributionError> {
        check("least value", "positive", least, least > 0.0)?;
        check("shape", "positive", shape, shape > 0.0)?;
        Ok(Distribution(Shape::Pareto { least, shape }))
    }

    /// Each of these values as often as any other.
    ///
    /// # Errors
    /// If there is none, or one is not finite.
    pub fn empirical(values: &[f64]) -> Result<Distribution, DistributionError> {
        for &value in values {
            check("value", "finite", value, true)?;
        }
        if values.is_empty() {
            return Err(DistributionError::Empty);
        }
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Ok(Distribution(Shape::Empirical(values.into())))
    }

    /// The number that 64 random bits stand for.
    pub fn draw(&self, bits: u64) -> f64 {
        // Between two neighbouring numbers of 52 bits: exact, and neither 0 nor 1.
        self.quantile(((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64))
    }

    /// The number below which the part `p` of all numbers lies.
    ///
    /// # Panics
    /// If `p` is not more than 0 and less than 1.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!(p > 0.0 && p < 1.0, "a quantile is between 0 and 1, not {p}");
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Uniform { low, high } => match high - low {
                width if width.is_finite() => (low + width * p).min(*high),
                // Wider than the greatest number.
                _ => low * (1.0 - p) + high * p,
            },
            Shape::Exponential { mean } => -mean * libm::log1p(-p),
            Shape::Normal { mean, deviation } => mean + deviation * normal_quantile(p),
            Shape::Lognormal { mu, sigma } => libm::exp(mu + sigma * normal_quantile(p)),
            Shape::Pareto { least, shape } => least * libm::exp(-libm::log1p(-p) / shape),
            Shape::Empirical(values) => {
                let place = (p * values.len() as f64) as usize;
                values[place.min(values.len() - 1)]
            }
        }
    }

    /// The mean; infinite for [`Distribution::pareto`] with a shape of at most 1.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Uniform { low, high } => low / 2.0 + high / 2.0,
            Shape::Exponential { mean } | Shape::Normal { mean, .. } => *mean,
            Shape::Lognormal { mu, sigma } => libm::exp(mu + sigma * sigma / 2.0),
            Shape::Pareto { shape, .. } if *shape <= 1.0 => f64::INFINITY,
            Shape::Pareto { least, shape } => least * shape / (shape - 1.0),
            Shape::Empirical(values) => {
                let (sum, count) = (values.iter().sum::<f64>(), values.len() as f64);
                if sum.is_finite() {
                    return sum / count;
                }
                values.iter().map(|value| value / count).sum()
            }
        }
    }

    /// The variance; infinite for [`Distribution::pareto`] with a shape of at most 2.
    pub fn variance(&self) -> f64 {
        match &self.0 {
            Shape::Constant(_) => 0.0,
            Shape::Uniform { low, high } => (high - low) * (high - low) / 12.0,
            Shape::Exponential { mean } => mean * mean,
            Shape::Normal { deviation, .. } => deviation * deviation,
            Shape::Lognormal { sigma, .. } => {
                let mean = self.mean();
                libm::expm1(sigma * sigma) * mean * mean
            }
            Shape::Pareto { shape, .. } if *shape <= 2.0 => f64::INFINITY,
            Shape::Pareto { least, shape } => {
                let less = shape - 1.0;
                least * least * shape / (less * less * (shape - 2.0))
            }
            Shape::Empirical(values) => {
                let mean = self.mean();
                let squares = values.iter().map(|value| (value - mean) * (value - mean));
                squares.sum::<f64>() / values.len() as f64
            }
        }
    }
}

/// A number of seconds as a span of time, to the nanosecond; negative ones are none at all.
pub(crate) fn seconds(number: f64) -> Duration {
    let nanos = libm::round(number * 1e9);
    // The cast saturates, and takes what is no number for 0.
    Duration::from_nanos(nanos as u64)
}

impl fmt::Debug for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::Constant(value) => write!(f, "constant({value})"),
            Shape::Uniform { low, high } => write!(f, "uniform({low}, {high})"),
            Shape::Exponential { mean } => write!(f, "exponential({mean})"),
            Shape::Normal { mean, deviation } => write!(f, "normal({mean}, {deviation})"),
            Shape::Lognormal { mu, sigma } => write!(f, "lognormal({}, {sigma})", libm::exp(*mu)),
            Shape::Pareto { least, shape } => write!(f, "pareto({least}, {shape})"),
            Shape::Empirical(values) => write!(f, "empirical({} values)", values.len()),
        }
    }
}

/// The quantile of the standard normal distribution: algorithm AS 241 of Wichura (Applied Statistics
/// 37, 1988), whose relative error is about 1e-16.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    /// c[0] + c[1] x + …
    fn polynomial(c: [f64; 8], x: f64) -> f64 {
        c.iter().rev().fold(0.0, |sum, c| sum * x + c)
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        let above = polynomial(
            [
                3.387_132_872_796_366_5,
                1.331_416_678_917_843_8e2,
                1.971_590_950_306_551_3e3,
                1.373_169_376_550_946e4,
                4.592_195_393_154_987e4,
                6.726_577_092_700_87e4,
                3.343_057_558_358_813e4,
                2.509_080_928_730_122_7e3,
            ],
            r,
        );
        let below = polynomial(
            [
                1.0,
                4.231_333_070_160_091e1,
                6.871_870_074_920_579e2,
                5.394_196_021_424_751e3,
                2.121_379_430_158_659_7e4,
                3.930_789_580_009_271e4,
                2.872_908_573_572_194_3e4,
                5.226_495_278_852_854e3,
            ],
            r,
        );
        return q * above / below;
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let quantile = if r <= 5.0 {
        let r = r - 1.6;
        polynomial(
            [
                1.423_437_110_749_683_5,
                4.630_337_846_156_546,
                5.769_497_221_460_691,
                3.647_848_324_763_204_5,
                1.270_458_252_452_368_4,
                2.417_807_251_774_506e-1,
                2.272_384_498_926_918_4e-2,
                7.745_450_142_783_414e-4,
            ],
            r,
        ) / polynomial(
            [
                1.0,
                2.053_191_626_637_759,
                1.676_384_830_183_803_8,
                6.897_673_349_851e-1,
                1.481_039_764_274_800_8e-1,
                1.519_866_656_361_645_7e-2,
                5.475_938_084_995_345e-4,
                1.050_750_071_644_416_9e-9,
            ],
            r,
        )
    } else {
        let r = r - 5.0;
        polynomial(
            [
                6.657_904_643_501_103,
                5.463_784_911_164_114,
                1.784_826_539_917_291_3,
                2.965_605_718_285_048_7e-1,
                2.653_218_952_657_612_4e-2,
                1.242_660_947_388_078_4e-3,
                2.711_555_568_743_487_6e-5,
                2.010_334_399_292_288_1e-7,
            ],
            r,
        ) / polynomial(
            [
                1.0,
                5.998_322_065_558_88e-1,
                1.369_298_809_227_358e-1,
                1.487_536_129_085_061_5e-2,
                7.868_691_311_456_133e-4,
                1.846_318_317_510_054_8e-5,
                1.421_511_758_316_446e-7,
                2.044_263_103_389_939_7e-15,
            ],
            r,
        )
    };
    if q < 0.0 { -quantile } else { quantile }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn all() -> Vec<Distribution> {
        vec![
            Distribution::constant(2.5).unwrap(),
            Distribution::uniform(-1.0, 3.0).unwrap(),
            Distribution::exponential(0.25).unwrap(),
            Distribution::normal(10.0, 3.0).unwrap(),
            Distribution::lognormal(2.0, 0.5).unwrap(),
            Distribution::pareto(1.5, 6.0).unwrap(),
            Distribution::empirical(&[3.0, -1.0, 4.0, 1.0, 5.0]).unwrap(),
        ]
    }

    // Guarantee: core-20.
    #[test]
    #[cfg_attr(miri, ignore = "statistics need many numbers")]
    fn drawn_numbers_have_the_mean_and_the_variance_of_theory() {
        for distribution in all() {
            let mut random = Random::new(1);
            let count = 400_000;
            let drawn: Vec<f64> = (0..count)
                .map(|_| distribution.draw(random.bits()))
                .collect();
            let mean = drawn.iter().sum::<f64>() / f64::from(count);
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(count);
            let error = (distribution.variance() / f64::from(count)).sqrt();
            assert!(
                (mean - distribution.mean()).abs() <= 5.0 * error,
                "{distribution:?}: {mean}"
            );
            let ratio = (variance + 1e-9) / (distribution.variance() + 1e-9);
            assert!((ratio - 1.0).abs() < 0.05, "{distribution:?}: {variance}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let normal = Distribution::normal(0.0, 1.0).unwrap();
        for (p, value) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (1e-300, -37.047_096_299_361_2),
        ] {
            assert!(
                (normal.quantile(p) - value).abs() < 1e-13 * (1.0 + value.abs()),
                "{p}"
            );
        }
        let exponential = Distribution::exponential(2.0).unwrap();
        assert!((exponential.quantile(0.5) - 2.0 * std::f64::consts::LN_2).abs() < 1e-15);
        let pareto = Distribution::pareto(2.0, 1.0).unwrap();
        assert!((pareto.quantile(0.75) - 8.0).abs() < 1e-14);
        assert_eq!(pareto.mean(), f64::INFINITY);
        let lognormal = Distribution::lognormal(3.0, 1.0).unwrap();
        assert!((lognormal.quantile(0.5) - 3.0).abs() < 1e-14);
    }

    // Guarantee: core-20.
    #[test]
    fn numbers_are_the_same_to_the_last_bit_on_every_machine() {
        let mut random = Random::new(2026);
        let mut sum = 0u64;
        for _ in 0..1000 {
            for distribution in all() {
                let bits = distribution.draw(random.bits()).to_bits();
                sum = sum.rotate_left(1).wrapping_add(bits);
            }
        }
        assert_eq!(sum, 0xed2c_fdb8_15f5_7750, "{sum:#x}");
    }

    #[test]
    fn the_ends_of_the_range_give_numbers() {
        for distribution in all() {
            for bits in [0, u64::MAX] {
                assert!(distribution.draw(bits).is_finite(), "{distribution:?}");
            }
        }
    }

    #[test]
    fn numbers_of_the_widest_ranges_lie_all_over_them() {
        let wide = Distribution::uniform(f64::MIN, f64::MAX).unwrap();
        assert_eq!(wide.mean(), 0.0);
        for part in 1..10 {
            let p = f64::from(part) / 10.0;
            let expected = (2.0 * p - 1.0) * f64::MAX;
            assert!((wide.quantile(p) / f64::MAX - expected / f64::MAX).abs() < 1e-12);
        }
        let high = Distribution::uniform(1e308, 1.5e308).unwrap();
        assert!((high.mean() / 1.25e308 - 1.0).abs() < 1e-12);
        let two = Distribution::empirical(&[1e308, 1.5e308]).unwrap();
        assert!((two.mean() / 1.25e308 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_its_reason() {
        let error = Distribution::uniform(3.0, f64::INFINITY).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a distribution's upper end is to be finite, not inf"
        );
        let error = Distribution::uniform(3.0, 1.0).unwrap_err().to_string();
        assert_eq!(
            error,
            "a distribution's upper end is to be at least the lower one, not 1"
        );
        assert!(Distribution::normal(f64::NAN, 1.0).is_err());
        assert!(Distribution::normal(0.0, -1.0).is_err());
        assert!(Distribution::lognormal(0.0, 1.0).is_err());
        assert!(Distribution::pareto(1.0, f64::INFINITY).is_err());
        assert_eq!(Distribution::empirical(&[]), Err(DistributionError::Empty));
    }

    #[test]
    fn seconds_are_rounded_to_nanoseconds_and_never_negative() {
        assert_eq!(
            seconds(1.000_000_000_6),
            Duration::from_nanos(1_000_000_001)
        );
        assert_eq!(seconds(-3.0), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::from_nanos(u64::MAX));
    }
}
