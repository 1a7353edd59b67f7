//! How long something takes: distributions of times.
//!
//! Samples are made from random bits by arithmetic and functions of `libm`, so that they are the
//! same on every machine.

use crate::duration_text::TimeSpan;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long something takes.
///
/// In a definition a time alone (`"2ms"`) is a constant; the others are objects with one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Anything from the first time to the second, all alike.
    Uniform(TimeSpan, TimeSpan),
    /// Memoryless, with this mean.
    Exponential(TimeSpan),
    /// Times whose logarithm is normally distributed.
    Lognormal {
        /// Half of all times are shorter.
        median: TimeSpan,
        /// The standard deviation of the logarithm; 0.5 makes the 99th percentile 3.2 medians.
        sigma: f64,
    },
    /// A curve through measured percentiles: keys are numbers between 0 and 100.
    ///
    /// Between two of them, and beyond the first and the last, times are lognormal.
    Percentiles(BTreeMap<String, TimeSpan>),
    /// Always the same.
    #[serde(untagged)]
    Constant(TimeSpan),
}

/// Why a distribution cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// A uniform distribution that ends before it begins.
    #[error("uniform from {0} to {1} ends before it begins")]
    Backwards(TimeSpan, TimeSpan),
    /// A sigma that is no number from 0 to 10.
    #[error("a sigma of {0} is no number from 0 to 10")]
    Sigma(f64),
    /// A median of zero.
    #[error("a {0} of zero has no logarithm; give a time above 0s")]
    Zero(&'static str),
    /// A percentile that is no number between 0 and 100.
    #[error("'{0}' is no percentile; write a number above 0 and below 100, such as \"99.9\"")]
    Percentile(String),
    /// Fewer than two percentiles.
    #[error("{0} percentiles make no curve; give at least two")]
    TooFew(usize),
    /// A higher percentile with a shorter time.
    #[error("percentile {0} is shorter than a lower one")]
    Falling(String),
}

impl Distribution {
    /// Anything from one time to another, all alike.
    pub fn uniform(from: Duration, to: Duration) -> Distribution {
        Distribution::Uniform(TimeSpan(from), TimeSpan(to))
    }

    /// Whether it can be used.
    ///
    /// # Errors
    /// See [`DistributionError`].
    pub fn check(&self) -> Result<(), DistributionError> {
        match self {
            Distribution::Constant(_) | Distribution::Exponential(_) => Ok(()),
            Distribution::Uniform(from, to) if to < from => {
                Err(DistributionError::Backwards(*from, *to))
            }
            Distribution::Uniform(..) => Ok(()),
            Distribution::Lognormal { median, .. } if median.0.is_zero() => {
                Err(DistributionError::Zero("median"))
            }
            Distribution::Lognormal { sigma, .. } if !(0.0..=10.0).contains(sigma) => {
                Err(DistributionError::Sigma(*sigma))
            }
            Distribution::Lognormal { .. } => Ok(()),
            Distribution::Percentiles(points) => curve(points).map(drop),
        }
    }

    /// What draws from it. A distribution that [`Distribution::check`] refuses gives zeros.
    pub fn sampler(&self) -> Sampler {
        Sampler(match self {
            Distribution::Constant(time) => Shape::Constant(time.nanos()),
            Distribution::Uniform(from, to) => Shape::Uniform {
                least: from.nanos(),
                width: to.nanos().saturating_sub(from.nanos()),
            },
            Distribution::Exponential(mean) => Shape::Exponential(mean.nanos() as f64),
            Distribution::Lognormal { median, sigma } => Shape::Lognormal {
                mu: libm::log(median.nanos() as f64),
                sigma: *sigma,
            },
            Distribution::Percentiles(points) => match curve(points) {
                Ok(points) => Shape::Curve(points.into()),
                Err(_) => Shape::Constant(0),
            },
        })
    }
}

/// The points of a curve: standard normal quantile, logarithm of nanoseconds.
fn curve(points: &BTreeMap<String, TimeSpan>) -> Result<Vec<(f64, f64)>, DistributionError> {
    let mut numbers = Vec::with_capacity(points.len());
    for (key, time) in points {
        let number: f64 = key
            .trim_start_matches('p')
            .parse()
            .ok()
            .filter(|number| *number > 0.0 && *number < 100.0)
            .ok_or_else(|| DistributionError::Percentile(key.clone()))?;
        if time.0.is_zero() {
            return Err(DistributionError::Zero("percentile"));
        }
        numbers.push((number, key, *time));
    }
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    if numbers.len() < 2 {
        return Err(DistributionError::TooFew(numbers.len()));
    }
    if let Some(pair) = numbers.windows(2).find(|pair| pair[1].2 < pair[0].2) {
        return Err(DistributionError::Falling(pair[1].1.clone()));
    }
    let point = |(number, _, time): &(f64, &String, TimeSpan)| {
        let nanos = time.nanos() as f64;
        (normal_quantile(number / 100.0), libm::log(nanos))
    };
    Ok(numbers.iter().map(point).collect())
}

/// The number below which a standard normal variable is with probability `p`, by bisection over
/// the complementary error function: exact to the last bits, and only run when a curve is read.
fn normal_quantile(p: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Draws times from a distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sampler(Shape);

#[derive(Clone, Debug, PartialEq, Serialize)]
enum Shape {
    Constant(u64),
    Uniform { least: u64, width: u64 },
    Exponential(f64),
    Lognormal { mu: f64, sigma: f64 },
    Curve(std::sync::Arc<[(f64, f64)]>),
}

impl Sampler {
    /// Always this many nanoseconds.
    pub const fn constant(nanos: u64) -> Sampler {
        Sampler(Shape::Constant(nanos))
    }

    /// Whether it always gives zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Shape::Constant(0))
    }

    /// The shortest time that it can give, in nanoseconds.
    pub fn least(&self) -> u64 {
        match self.0 {
            Shape::Constant(nanos) => nanos,
            Shape::Uniform { least, .. } => least,
            Shape::Exponential(_) | Shape::Lognormal { .. } | Shape::Curve(_) => 0,
        }
    }

    /// A time in the middle of it, in nanoseconds: the mean or the median.
    pub fn typical(&self) -> u64 {
        match &self.0 {
            Shape::Constant(nanos) => *nanos,
            Shape::Uniform { least, width } => least + width / 2,
            Shape::Exponential(mean) => *mean as u64,
            Shape::Lognormal { mu, .. } => libm::exp(*mu) as u64,
            Shape::Curve(points) => libm::exp(along(points, 0.0)) as u64,
        }
    }

    /// A time in nanoseconds, made from the random bits that `bits` gives; a constant asks for
    /// none.
    #[inline]
    pub fn sample(&self, mut bits: impl FnMut() -> u64) -> u64 {
        match &self.0 {
            Shape::Constant(nanos) => *nanos,
            Shape::Uniform { least, width } => {
                least + ((u128::from(bits()) * u128::from(*width)) >> 64) as u64
            }
            Shape::Exponential(mean) => (-libm::log(unit(bits())) * mean) as u64,
            Shape::Lognormal { mu, sigma } => libm::exp(mu + sigma * normal(&mut bits)) as u64,
            Shape::Curve(points) => libm::exp(along(points, normal(&mut bits))) as u64,
        }
    }
}

/// A number above 0 and up to 1, from random bits.
#[inline]
pub(crate) fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A standard normal number (Box and Muller 1958).
#[inline]
fn normal(bits: &mut impl FnMut() -> u64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(unit(bits())));
    radius * libm::cos(std::f64::consts::TAU * unit(bits()))
}

/// The height of the broken line through `points` at `x`, its ends prolonged.
fn along(points: &[(f64, f64)], x: f64) -> f64 {
    let last = points.len() - 2;
    let segment = points[1..=last].partition_point(|point| point.0 < x);
    let ((x0, y0), (x1, y1)) = (points[segment], points[segment + 1]);
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0))
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
        deserializer.deserialize_any(DistributionVisitor)
    }
}

struct DistributionVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lognormal {
    median: TimeSpan,
    sigma: f64,
}

const KINDS: [&str; 5] = [
    "constant",
    "uniform",
    "exponential",
    "lognormal",
    "percentiles",
];

impl<'de> de::Visitor<'de> for DistributionVisitor {
    type Value = Distribution;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a time such as \"2ms\", or an object with one of {}",
            KINDS.join(", ")
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Distribution, E> {
        text.parse().map(Distribution::Constant).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distribution, A::Error> {
        let Some(kind) = map.next_key::<String>()? else {
            return Err(de::Error::custom(format_args!(
                "an empty object is no distribution; write one of {}",
                KINDS.join(", ")
            )));
        };
        let distribution = match kind.as_str() {
            "constant" => Distribution::Constant(map.next_value()?),
            "uniform" => {
                let (from, to) = map.next_value()?;
                Distribution::Uniform(from, to)
            }
            "exponential" => Distribution::Exponential(map.next_value()?),
            "lognormal" => {
                let Lognormal { median, sigma } = map.next_value()?;
                Distribution::Lognormal { median, sigma }
            }
            "percentiles" => Distribution::Percentiles(map.next_value()?),
            other => {
                let meant = crate::nearest::did_you_mean(other, KINDS);
                return Err(de::Error::custom(format_args!(
                    "'{other}' is no distribution; there are {}{meant}",
                    KINDS.join(", ")
                )));
            }
        };
        if let Some(more) = map.next_key::<String>()? {
            return Err(de::Error::custom(format_args!(
                "a distribution is of one kind, and this is {kind} and {more}; remove one"
            )));
        }
        distribution.check().map_err(de::Error::custom)?;
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests;
