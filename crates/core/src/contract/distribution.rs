//! Distributions from which actors draw numbers, equal to the last bit on every machine.
//!
//! A drawn number is the quantile of the distribution at a uniformly distributed point. So each drawn number uses one
//! number of the actor's stream. Distributions compute only with the crate `libm` and the basic operations of IEEE 754,
//! because the `ln` and `exp` of platforms differ.

mod gamma;
mod normal;
mod percentiles;
#[cfg(test)]
mod tests;

pub(crate) use normal::normal_quantile;

use normal::normal_probability;
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
/// An actor draws numbers from its own stream with [`Context::sample`](crate::Context::sample), and durations with
/// [`Context::sample_time`](crate::Context::sample_time).
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Distribution(Shape);

#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    Weibull {
        scale: f64,
        shape: f64,
    },
    Gamma {
        scale: f64,
        shape: f64,
    },
    /// The values, in ascending order.
    Empirical(Arc<[f64]>),
    /// The points of the curve, as described in the module [`percentiles`].
    Percentiles(Arc<[(f64, f64)]>),
}

/// An error in the parameters of a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// A parameter is out of its range.
    #[error("a distribution's {parameter} must be {range}, not {value}")]
    Parameter {
        /// The name of the parameter.
        parameter: &'static str,
        /// The valid range.
        range: &'static str,
        /// The given value.
        value: f64,
    },
    /// An empirical distribution without values.
    #[error("an empirical distribution needs at least one value")]
    Empty,
    /// A curve with fewer than two percentiles.
    #[error(
        "{0} percentiles do not define a distribution; give at least two between 0 and 100, or both 0 and 100 as well"
    )]
    FewPercentiles(usize),
    /// The value of a percentile is less than the value of a lower percentile.
    #[error(
        "percentile {0} is smaller than a lower percentile; give values that increase with the percentile"
    )]
    FallingPercentile(f64),
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
    /// Creates a distribution whose only value is `value`.
    ///
    /// # Errors
    /// If the value is not finite. All other constructors also require finite parameters within their ranges.
    pub fn constant(value: f64) -> Result<Distribution, DistributionError> {
        check("value", "finite", value, true)?;
        Ok(Distribution(Shape::Constant(value)))
    }

    /// Creates a uniform distribution between `low` and `high`.
    ///
    /// # Errors
    /// If `high` is less than `low`.
    pub fn uniform(low: f64, high: f64) -> Result<Distribution, DistributionError> {
        check("lower end", "finite", low, true)?;
        check("upper end", "at least the lower one", high, high >= low)?;
        Ok(Distribution(Shape::Uniform { low, high }))
    }

    /// Creates an exponential distribution: the time between the events of a Poisson process.
    ///
    /// # Errors
    /// If the mean is not positive.
    pub fn exponential(mean: f64) -> Result<Distribution, DistributionError> {
        check("mean", "positive", mean, mean > 0.0)?;
        Ok(Distribution(Shape::Exponential { mean }))
    }

    /// Creates a normal distribution.
    ///
    /// # Errors
    /// If the deviation is negative.
    pub fn normal(mean: f64, deviation: f64) -> Result<Distribution, DistributionError> {
        check("mean", "finite", mean, true)?;
        check("deviation", "zero or more", deviation, deviation >= 0.0)?;
        Ok(Distribution(Shape::Normal { mean, deviation }))
    }

    /// Creates a lognormal distribution with this median; `sigma` is the standard deviation of the logarithm.
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

    /// Creates a Pareto distribution: values of at least `least`, with a tail that falls like the power `-shape`. The
    /// mean is finite only for a shape above 1, the variance only above 2.
    ///
    /// # Errors
    /// If a parameter is not positive.
    pub fn pareto(least: f64, shape: f64) -> Result<Distribution, DistributionError> {
        check("least value", "positive", least, least > 0.0)?;
        check("shape", "positive", shape, shape > 0.0)?;
        Ok(Distribution(Shape::Pareto { least, shape }))
    }

    /// Creates a Weibull distribution: the time until a part fails, with wear (`shape` above 1) or early failures
    /// (`shape` below 1). With a shape of 1 the distribution is exponential with mean `scale`.
    ///
    /// # Errors
    /// If a parameter is not positive, or the shape is below 0.01.
    pub fn weibull(scale: f64, shape: f64) -> Result<Distribution, DistributionError> {
        check("scale", "positive", scale, scale > 0.0)?;
        check("shape", "at least 0.01", shape, shape >= 0.01)?;
        Ok(Distribution(Shape::Weibull { scale, shape }))
    }

    /// Creates a gamma distribution with the mean `scale * shape`. With a whole `shape` it is Erlang's: the
    /// sum of `shape` exponentially distributed numbers of mean `scale`.
    ///
    /// Drawing a number takes several times as long as for the other distributions.
    ///
    /// # Errors
    /// If the scale is not positive, or the shape is not from 0.01 to 10,000.
    pub fn gamma(scale: f64, shape: f64) -> Result<Distribution, DistributionError> {
        check("scale", "positive", scale, scale > 0.0)?;
        let fits = (0.01..=1e4).contains(&shape);
        check("shape", "from 0.01 to 10000", shape, fits)?;
        Ok(Distribution(Shape::Gamma { scale, shape }))
    }

    /// Creates a distribution from percentiles, given as (percentage, value), with lognormal interpolation between
    /// neighbours.
    ///
    /// The curve continues in the same way beyond the first and the last percentile. The percentages 0 and 100, if
    /// given, are the minimum and the maximum, and no value lies beyond them. Between the minimum or maximum and the
    /// nearest percentile, the logarithm of the value is uniformly distributed.
    ///
    /// ```
    /// let measured = corsair::Distribution::percentiles(&[(50.0, 0.002), (99.0, 0.020)])?;
    /// assert!((measured.quantile(0.99) - 0.020).abs() < 1e-12);
    /// let bounded = corsair::Distribution::percentiles(&[(50.0, 0.002), (99.0, 0.020), (100.0, 0.030)])?;
    /// assert!(bounded.quantile(0.999_999) <= 0.030);
    /// # Ok::<(), corsair::DistributionError>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer than two percentages between 0 and 100, unless 0 and 100 are both given; if a percentage is
    /// out of range or given twice; if a value is not positive; or if a higher percentage has a smaller value.
    pub fn percentiles(points: &[(f64, f64)]) -> Result<Distribution, DistributionError> {
        for &(percentage, value) in points {
            let fits = (0.0..=100.0).contains(&percentage);
            check("percentage", "from 0 to 100", percentage, fits)?;
            check("percentile", "positive", value, value > 0.0)?;
        }
        if points.len() < 2 {
            return Err(DistributionError::FewPercentiles(points.len()));
        }
        let mut points = points.to_vec();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(pair) = points.windows(2).find(|pair| pair[1].1 < pair[0].1) {
            return Err(DistributionError::FallingPercentile(pair[1].0));
        }
        for pair in points.windows(2) {
            check("percentage", "there once", pair[1].0, pair[1].0 > pair[0].0)?;
        }
        let curve = points.iter();
        let curve = curve.map(|&(part, value)| percentiles::point(part, value));
        let curve: Arc<[(f64, f64)]> = curve.collect();
        if !percentiles::is_curve(&curve) {
            return Err(DistributionError::FewPercentiles(points.len()));
        }
        Ok(Distribution(Shape::Percentiles(curve)))
    }

    /// Creates a random choice among `values`, with equal probability.
    ///
    /// # Errors
    /// If there is no value, or a value is not finite.
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

    /// Returns the number that 64 random bits select.
    pub fn draw(&self, bits: u64) -> f64 {
        // Between two neighbouring numbers of 52 bits: exact, and neither 0 nor 1.
        self.quantile(((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64))
    }

    /// Returns the quantile: the number below which the fraction `p` of all numbers lies.
    ///
    /// # Panics
    /// If `p` is negative, or 1 or more.
    pub fn quantile(&self, p: f64) -> f64 {
        assert!(p > 0.0 && p < 1.0, "a quantile is between 0 and 1, not {p}");
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Uniform { low, high } => match high - low {
                width if width.is_finite() => (low + width * p).min(*high),
                // The width exceeds the largest finite number.
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
            Shape::Weibull { scale, shape } => scale * libm::pow(-libm::log1p(-p), 1.0 / shape),
            Shape::Gamma { scale, shape } => scale * gamma::quantile(*shape, p),
            Shape::Percentiles(points) => percentiles::quantile(points, p),
        }
    }

    /// Returns the distribution of the numbers multiplied by `factor`, for example to change the unit.
    ///
    /// ```
    /// let milliseconds = corsair::Distribution::exponential(5.0)?;
    /// assert!((milliseconds.scaled(0.001).mean() - 0.005).abs() < 1e-15);
    /// # Ok::<(), corsair::DistributionError>(())
    /// ```
    ///
    /// # Panics
    /// If the factor is not a positive number.
    pub fn scaled(&self, factor: f64) -> Distribution {
        assert!(
            factor > 0.0 && factor.is_finite(),
            "a factor is a positive number, not {factor}"
        );
        let mut scaled = self.clone();
        match &mut scaled.0 {
            Shape::Constant(value) => *value *= factor,
            Shape::Uniform { low, high } => (*low, *high) = (*low * factor, *high * factor),
            Shape::Exponential { mean } => *mean *= factor,
            Shape::Normal { mean, deviation } => {
                (*mean, *deviation) = (*mean * factor, *deviation * factor);
            }
            Shape::Lognormal { mu, .. } => *mu += libm::log(factor),
            Shape::Pareto { least, .. } => *least *= factor,
            Shape::Weibull { scale, .. } | Shape::Gamma { scale, .. } => *scale *= factor,
            Shape::Empirical(values) => *values = values.iter().map(|v| v * factor).collect(),
            Shape::Percentiles(points) => {
                let shift = libm::log(factor);
                *points = points.iter().map(|&(z, log)| (z, log + shift)).collect();
            }
        }
        scaled
    }

    /// Returns the fraction of all numbers that do not exceed `x`: the distribution function, the inverse of
    /// [`Distribution::quantile`].
    ///
    /// ```
    /// let service = corsair::Distribution::exponential(2.0)?;
    /// assert!((service.probability(2.0) - 0.632).abs() < 0.001);
    /// # Ok::<(), corsair::DistributionError>(())
    /// ```
    pub fn probability(&self, x: f64) -> f64 {
        if x < self.least() {
            return 0.0;
        }
        match &self.0 {
            Shape::Constant(_) => 1.0,
            Shape::Uniform { low, high } if low < high => ((x - low) / (high - low)).min(1.0),
            Shape::Uniform { .. } => 1.0,
            Shape::Exponential { mean } => -libm::expm1(-x / mean),
            Shape::Normal { mean, deviation } if *deviation == 0.0 => f64::from(x >= *mean),
            Shape::Normal { mean, deviation } => normal_probability((x - mean) / deviation),
            Shape::Lognormal { mu, sigma } if *sigma == 0.0 => f64::from(libm::log(x) >= *mu),
            Shape::Lognormal { mu, sigma } => normal_probability((libm::log(x) - mu) / sigma),
            Shape::Pareto { least, shape } => -libm::expm1(shape * libm::log(least / x)),
            Shape::Weibull { scale, shape } => -libm::expm1(-libm::pow(x / scale, *shape)),
            Shape::Gamma { scale, shape } => gamma::probability(*shape, x / scale),
            Shape::Empirical(values) => {
                values.partition_point(|value| *value <= x) as f64 / values.len() as f64
            }
            Shape::Percentiles(points) => percentiles::probability(points, x),
        }
    }

    /// Returns the smallest possible number; minus infinity for [`Distribution::normal`].
    pub fn least(&self) -> f64 {
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Uniform { low, .. } => *low,
            Shape::Normal { .. } => f64::NEG_INFINITY,
            Shape::Pareto { least, .. } => *least,
            Shape::Empirical(values) => values[0],
            Shape::Exponential { .. }
            | Shape::Lognormal { .. }
            | Shape::Weibull { .. }
            | Shape::Gamma { .. } => 0.0,
            Shape::Percentiles(points) => percentiles::least(points),
        }
    }

    /// Returns the value of a [`Distribution::constant`]; `None` for all other distributions.
    #[inline]
    pub fn as_constant(&self) -> Option<f64> {
        match self.0 {
            Shape::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the mean; infinite for [`Distribution::pareto`] with a shape of at most 1.
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
            Shape::Weibull { scale, shape } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Shape::Gamma { scale, shape } => scale * shape,
            Shape::Percentiles(points) => percentiles::moment(points, 1.0),
        }
    }

    /// Returns the variance; infinite for [`Distribution::pareto`] with a shape of at most 2, and where it exceeds the
    /// largest number.
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
            Shape::Weibull { scale, shape } => {
                let [mean, square] = [1.0, 2.0].map(|n| libm::tgamma(1.0 + n / shape));
                scale * scale * (square - mean * mean)
            }
            Shape::Gamma { scale, shape } => scale * scale * shape,
            Shape::Percentiles(points) => {
                let mean = self.mean();
                percentiles::moment(points, 2.0) - mean * mean
            }
        }
    }
}

/// Converts seconds to a duration, to the nanosecond; negative numbers become zero.
pub(crate) fn seconds(number: f64) -> Duration {
    let nanos = libm::round(number * 1e9);
    // The cast saturates, and turns NaN into 0.
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
            Shape::Weibull { scale, shape } => write!(f, "weibull({scale}, {shape})"),
            Shape::Gamma { scale, shape } => write!(f, "gamma({scale}, {shape})"),
            Shape::Empirical(values) => write!(f, "empirical({} values)", values.len()),
            Shape::Percentiles(points) => write!(f, "percentiles({} points)", points.len()),
        }
    }
}
