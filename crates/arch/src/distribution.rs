//! Distributions of times in definitions.

mod zipf;

pub(crate) use zipf::Zipf;

use crate::duration_text::TimeSpan;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A distribution of durations.
///
/// A plain time (`"2ms"`) is a constant; every other distribution is an object with one key. Only `normal` can give
/// times below zero, and they become zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Uniform between two times. Example: `{"uniform": ["1ms", "5ms"]}`.
    Uniform(TimeSpan, TimeSpan),
    /// Exponential (memoryless) with this mean. Example: `{"exponential": "2ms"}`.
    Exponential(TimeSpan),
    /// Normal; values below zero become zero. Example: `{"normal": {"mean": "5ms", "deviation": "1ms"}}`.
    Normal {
        /// The mean before values below zero become zero. Example: `"5ms"`.
        mean: TimeSpan,
        /// The standard deviation. Example: `"1ms"`.
        deviation: TimeSpan,
    },
    /// Lognormal: the logarithm of the time is normally distributed. Example:
    /// `{"lognormal": {"median": "2ms", "sigma": 0.5}}`.
    Lognormal {
        /// The median. Example: `"2ms"`.
        median: TimeSpan,
        /// The standard deviation of the logarithm; 0.5 makes the 99th percentile 3.2 medians. Example: `0.5`.
        sigma: f64,
    },
    /// Pareto: the tail falls as a power of the time. Example: `{"pareto": {"least": "1ms", "shape": 3}}`.
    Pareto {
        /// The shortest time. Example: `"1ms"`.
        least: TimeSpan,
        /// The exponent; the mean is finite only above 1. Example: `3`.
        shape: f64,
    },
    /// Weibull. Example: `{"weibull": {"scale": "2ms", "shape": 1.5}}`.
    Weibull {
        /// The scale: 63.2 % of all times are shorter. Example: `"2ms"`.
        scale: TimeSpan,
        /// The shape: above 1 for wear-out, below 1 for early failures; 1 is exponential. Example: `1.5`.
        shape: f64,
    },
    /// Gamma; if the shape is a whole number, an Erlang distribution. Example: `{"gamma": {"scale": "1ms", "shape": 3}}`.
    Gamma {
        /// The mean divided by the shape. Example: `"1ms"`.
        scale: TimeSpan,
        /// The shape. If it is a whole number n, a time is the sum of n exponential times. Example: `3`.
        shape: f64,
    },
    /// A random choice among these times, with equal probability. Example: `{"empirical": ["1ms", "1ms", "7ms"]}`.
    Empirical(Vec<TimeSpan>),
    /// A curve through measured percentiles: keys are numbers from 0 to 100. Example:
    /// `{"percentiles": {"50": "2ms", "99": "9ms"}}`.
    ///
    /// Between two percentiles, times are lognormal. The keys 0 and 100 are the shortest and the longest time. Without
    /// them the curve extends without bound beyond its first and last percentile.
    Percentiles(BTreeMap<String, TimeSpan>),
    /// A constant time. Example: `"2ms"`.
    #[serde(untagged)]
    Constant(TimeSpan),
}

/// The reasons why a distribution cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DistributionError {
    /// A uniform distribution whose end is below its start.
    #[error("uniform from {0} to {1} ends before it begins; swap the two")]
    Backwards(TimeSpan, TimeSpan),
    /// A time of zero in a distribution that takes logarithms of times.
    #[error("a {0} of 0s is not possible; give a longer time")]
    Zero(&'static str),
    /// A percentile that is not a number between 0 and 100.
    #[error("'{0}' is not a percentile; write a number from 0 to 100, such as \"99.9\"")]
    Percentile(String),
    /// A parameter out of its range.
    #[error(transparent)]
    Parameter(#[from] corsair::DistributionError),
}

impl Distribution {
    /// Creates a uniform distribution between two times.
    pub fn uniform(from: Duration, to: Duration) -> Distribution {
        Distribution::Uniform(TimeSpan(from), TimeSpan(to))
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// See [`DistributionError`].
    pub fn check(&self) -> Result<(), DistributionError> {
        self.nanoseconds().map(drop)
    }

    /// Returns a sampler of the distribution. The sampler of an invalid distribution returns zeros.
    ///
    /// ```
    /// use corsair_arch::Distribution;
    ///
    /// let work: Distribution = serde_json::from_str(r#"{"exponential": "2ms"}"#)?;
    /// let sampler = work.sampler();
    /// let mut random = corsair::Random::new(7);
    /// let mean = (0..10_000).map(|_| sampler.sample(|| random.bits())).sum::<u64>() / 10_000;
    /// assert!((1_950_000..2_050_000).contains(&mean));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn sampler(&self) -> Sampler {
        self.nanoseconds().map_or(Sampler::constant(0), Sampler)
    }

    /// Returns the distribution in nanoseconds.
    pub(crate) fn nanoseconds(&self) -> Result<corsair::Distribution, DistributionError> {
        use corsair::Distribution as Of;
        let nanos = |time: &TimeSpan| time.nanos() as f64;
        let above_zero = |time: &TimeSpan, what| match time.nanos() {
            0 => Err(DistributionError::Zero(what)),
            nanos => Ok(nanos as f64),
        };
        let built = match self {
            Distribution::Constant(time) => Of::constant(nanos(time)),
            Distribution::Uniform(from, to) if to < from => {
                return Err(DistributionError::Backwards(*from, *to));
            }
            Distribution::Uniform(from, to) => Of::uniform(nanos(from), nanos(to)),
            // Work may take no time, so a mean of zero is valid.
            Distribution::Exponential(mean) if mean.0.is_zero() => Of::constant(0.0),
            Distribution::Exponential(mean) => Of::exponential(nanos(mean)),
            Distribution::Normal { mean, deviation } => Of::normal(nanos(mean), nanos(deviation)),
            Distribution::Lognormal { median, sigma } => {
                Of::lognormal(above_zero(median, "median")?, *sigma)
            }
            Distribution::Pareto { least, shape } => {
                Of::pareto(above_zero(least, "least time")?, *shape)
            }
            Distribution::Weibull { scale, shape } => {
                Of::weibull(above_zero(scale, "scale")?, *shape)
            }
            Distribution::Gamma { scale, shape } => Of::gamma(above_zero(scale, "scale")?, *shape),
            Distribution::Empirical(times) => {
                Of::empirical(&times.iter().map(nanos).collect::<Vec<_>>())
            }
            Distribution::Percentiles(points) => {
                let point = |(key, time): (&String, &TimeSpan)| {
                    let wrong = || DistributionError::Percentile(key.clone());
                    let number = key.trim_start_matches('p').parse().ok();
                    let number = number.filter(|number| (0.0..=100.0).contains(number));
                    let number: f64 = number.ok_or_else(wrong)?;
                    Ok((number, above_zero(time, "percentile")?))
                };
                let points: Result<Vec<_>, DistributionError> = points.iter().map(point).collect();
                Of::percentiles(&points?)
            }
        };
        Ok(built?)
    }
}

/// Draws times from a distribution, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sampler(corsair::Distribution);

impl Sampler {
    /// Creates a sampler that always returns this number of nanoseconds.
    pub fn constant(nanos: u64) -> Sampler {
        let constant = corsair::Distribution::constant(nanos as f64);
        Sampler(constant.expect("a whole number is finite"))
    }

    /// True if the sampler always returns zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.as_constant() == Some(0.0)
    }

    /// Returns the shortest possible time in nanoseconds.
    pub fn least(&self) -> u64 {
        self.0.least() as u64
    }

    /// Returns the median in nanoseconds.
    pub fn median(&self) -> u64 {
        self.0.quantile(0.5) as u64
    }

    /// Returns the distribution in seconds.
    pub(crate) fn seconds(&self) -> corsair::Distribution {
        self.0.scaled(1e-9)
    }

    /// Draws a time in nanoseconds, using the 64 random bits that `bits` returns. A constant does not call
    /// `bits`.
    #[inline]
    pub fn sample(&self, bits: impl FnOnce() -> u64) -> u64 {
        // Casts of floats saturate: no time is negative.
        match self.0.as_constant() {
            Some(nanos) => nanos as u64,
            None => self.0.draw(bits()) as u64,
        }
    }
}

/// Converts random bits to a number above 0 and up to 1.
#[inline]
pub(crate) fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
        deserializer.deserialize_any(DistributionVisitor)
    }
}

struct DistributionVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Normal {
    mean: TimeSpan,
    deviation: TimeSpan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lognormal {
    median: TimeSpan,
    sigma: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pareto {
    least: TimeSpan,
    shape: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScaleAndShape {
    scale: TimeSpan,
    shape: f64,
}

const KINDS: [&str; 10] = [
    "constant",
    "uniform",
    "exponential",
    "normal",
    "lognormal",
    "pareto",
    "weibull",
    "gamma",
    "empirical",
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
                "an empty object is not a distribution; write one of {}",
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
            "normal" => {
                let Normal { mean, deviation } = map.next_value()?;
                Distribution::Normal { mean, deviation }
            }
            "lognormal" => {
                let Lognormal { median, sigma } = map.next_value()?;
                Distribution::Lognormal { median, sigma }
            }
            "pareto" => {
                let Pareto { least, shape } = map.next_value()?;
                Distribution::Pareto { least, shape }
            }
            "weibull" => {
                let ScaleAndShape { scale, shape } = map.next_value()?;
                Distribution::Weibull { scale, shape }
            }
            "gamma" => {
                let ScaleAndShape { scale, shape } = map.next_value()?;
                Distribution::Gamma { scale, shape }
            }
            "empirical" => Distribution::Empirical(map.next_value()?),
            "percentiles" => Distribution::Percentiles(map.next_value()?),
            other => {
                let meant = crate::nearest::did_you_mean(other, KINDS);
                return Err(de::Error::custom(format_args!(
                    "'{other}' is not a distribution; expected one of {}{meant}",
                    KINDS.join(", ")
                )));
            }
        };
        if let Some(more) = map.next_key::<String>()? {
            return Err(de::Error::custom(format_args!(
                "a distribution has one kind, but this one has {kind} and {more}; remove one"
            )));
        }
        distribution.check().map_err(de::Error::custom)?;
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests;
