//! Distributions that fit samples of times.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum distance between the distribution functions at which a family fits.
const CLOSE: f64 = 0.015;

/// The percentiles that are used if no family fits, with the number of samples that each needs.
const PERCENTILES: [(&str, f64, usize); 26] = [
    ("0.1", 0.001, 5_000),
    ("1", 0.01, 500),
    ("5", 0.05, 0),
    ("10", 0.1, 0),
    ("15", 0.15, 0),
    ("20", 0.2, 0),
    ("25", 0.25, 0),
    ("30", 0.3, 0),
    ("35", 0.35, 0),
    ("40", 0.4, 0),
    ("45", 0.45, 0),
    ("50", 0.5, 0),
    ("55", 0.55, 0),
    ("60", 0.6, 0),
    ("65", 0.65, 0),
    ("70", 0.7, 0),
    ("75", 0.75, 0),
    ("80", 0.8, 0),
    ("85", 0.85, 0),
    ("90", 0.9, 0),
    ("95", 0.95, 0),
    ("97.5", 0.975, 200),
    ("99", 0.99, 0),
    ("99.5", 0.995, 1_000),
    ("99.9", 0.999, 5_000),
    ("99.99", 0.9999, 50_000),
];

/// Converts nanoseconds to a time of definitions.
pub(super) fn span(nanos: u64) -> TimeSpan {
    TimeSpan(Duration::from_nanos(nanos))
}

/// A fitted distribution, with the maximum distance of its distribution function from the data.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) distribution: Distribution,
    pub(super) distance: f64,
}

/// Returns the best-fitting distribution: constant, exponential, lognormal or uniform if one of
/// these is close, otherwise the percentiles. `None` without samples.
pub(super) fn fit(samples: &mut [u64]) -> Option<Fit> {
    samples.sort_unstable();
    let at = |part: f64| quantile(samples, part);
    let (&least, &most) = (samples.first()?, samples.last()?);
    let median = at(0.5);
    // Times from clocks that count microseconds vary by a microsecond.
    if at(0.995) - at(0.005) <= (median / 200).max(2_000) {
        return Some(Fit {
            distribution: Distribution::Constant(span(median)),
            distance: 0.0,
        });
    }
    let count = samples.len() as f64;
    let mean = samples.iter().map(|&nanos| nanos as f64).sum::<f64>() / count;
    let logs = || samples.iter().map(|&nanos| libm::log(nanos.max(1) as f64));
    let mu = logs().sum::<f64>() / count;
    let sigma = libm::sqrt(logs().map(|log| (log - mu).powi(2)).sum::<f64>() / count);
    let families = [
        Distribution::Lognormal {
            median: span(libm::exp(mu).max(1.0) as u64),
            sigma: (sigma * 1e4).round() / 1e4,
        },
        Distribution::Exponential(span(mean as u64)),
        Distribution::Uniform(span(least), span(most)),
    ];
    let mut best: Option<Fit> = None;
    for distribution in families {
        let Ok(built) = distribution.nanoseconds() else {
            continue;
        };
        let distance = distance(samples, |x| built.probability(x));
        if best.as_ref().is_none_or(|best| distance < best.distance) {
            best = Some(Fit {
                distribution,
                distance,
            });
        }
    }
    // With few samples the distance is large by chance even for the right family. 1.63 / √n is Kolmogorov's bound for a
    // probability of 1 %.
    let allowed = CLOSE.max(1.63 / count.sqrt());
    best.filter(|best| best.distance <= allowed)
        .or_else(|| Some(percentiles(samples)))
}

/// Returns the percentiles of sorted samples as a distribution.
fn percentiles(samples: &[u64]) -> Fit {
    let inner = PERCENTILES
        .iter()
        .filter(|(.., least)| samples.len() >= *least);
    let inner = inner.map(|&(name, part, _)| (name, quantile(samples, part)));
    // The shortest and the longest recorded time bound the distribution.
    let ends = [("0", samples[0]), ("100", samples[samples.len() - 1])];
    let points: BTreeMap<String, TimeSpan> = inner
        .chain(ends)
        .map(|(name, nanos)| (name.to_owned(), span(nanos.max(1))))
        .collect();
    Fit {
        distribution: Distribution::Percentiles(points),
        distance: 0.0,
    }
}

/// Returns the quantile of sorted samples for the fraction `part`, which is one of the samples.
pub(super) fn quantile(samples: &[u64], part: f64) -> u64 {
    let rank = libm::ceil(part * samples.len() as f64) as usize;
    samples[rank.clamp(1, samples.len()) - 1]
}

/// Returns the maximum distance between the distribution function of sorted samples and another one
/// (Kolmogorov–Smirnov).
pub(super) fn distance(samples: &[u64], function: impl Fn(f64) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mut most = 0.0f64;
    for (place, &sample) in samples.iter().enumerate() {
        let expected = function(sample as f64);
        let (before, after) = (place as f64 / count, (place + 1) as f64 / count);
        most = most
            .max((expected - before).abs())
            .max((after - expected).abs());
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Random;

    fn fitted(text: &str, count: usize) -> Fit {
        let distribution: Distribution = serde_json::from_str(text).unwrap();
        let (sampler, mut random) = (distribution.sampler(), Random::new(7));
        let mut samples: Vec<u64> = (0..count)
            .map(|_| sampler.sample(|| random.bits()))
            .collect();
        fit(&mut samples).unwrap()
    }

    #[test]
    fn what_was_drawn_from_a_family_is_of_that_family() {
        let of = |text: &str| fitted(text, 20_000).distribution;
        assert_eq!(of("\"2ms\""), serde_json::from_str("\"2ms\"").unwrap());
        let Distribution::Lognormal { median, sigma } =
            of(r#"{"lognormal": {"median": "1ms", "sigma": 0.5}}"#)
        else {
            panic!("no lognormal");
        };
        assert!((median.0.as_secs_f64() / 1e-3 - 1.0).abs() < 0.02 && (sigma - 0.5).abs() < 0.01);
        let Distribution::Exponential(mean) = of(r#"{"exponential": "3ms"}"#) else {
            panic!("not exponential");
        };
        assert!((mean.0.as_secs_f64() / 3e-3 - 1.0).abs() < 0.03);
        assert!(matches!(
            of(r#"{"uniform": ["1ms", "3ms"]}"#),
            Distribution::Uniform(..)
        ));
    }

    #[test]
    fn two_humps_are_their_percentiles() {
        let mut random = Random::new(1);
        let mut samples: Vec<u64> = (0..9_000)
            .map(|n| if n % 3 == 0 { 9_000_000 } else { 1_000_000 } + u64::from(random.below(500_000)))
            .collect();
        let fitted = fit(&mut samples).unwrap().distribution;
        let Distribution::Percentiles(points) = &fitted else {
            panic!("one hump");
        };
        assert!(
            points["50"].0 < Duration::from_millis(2) && points["75"].0 > Duration::from_millis(8)
        );
        assert_eq!(points["0"].nanos(), samples[0]);
        assert_eq!(points["100"].nanos(), samples[samples.len() - 1]);
        assert!(fit(&mut []).is_none());
    }
}
