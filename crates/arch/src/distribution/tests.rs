//! Samples have the right percentiles; invalid parameters are refused.

use super::*;
use corsair::Random;

fn read(text: &str) -> Distribution {
    serde_json::from_str(text).unwrap()
}

fn samples(text: &str) -> Vec<u64> {
    let sampler = read(text).sampler();
    let mut random = Random::new(1);
    let mut samples: Vec<u64> = (0..100_000)
        .map(|_| sampler.sample(|| random.bits()))
        .collect();
    samples.sort_unstable();
    samples
}

fn near(actual: u64, millis: f64) {
    let wanted = millis * 1e6;
    assert!(
        (actual as f64 - wanted).abs() < 0.08 * wanted,
        "{actual} is not near {wanted}"
    );
}

#[test]
fn samples_have_the_percentiles_of_their_distribution() {
    let at = |samples: &[u64], percent: usize| samples[samples.len() * percent / 100];
    near(at(&samples(r#""3ms""#), 1), 3.0);
    let uniform = samples(r#"{"uniform": ["1ms", "3ms"]}"#);
    near(at(&uniform, 25), 1.5);
    near(at(&uniform, 75), 2.5);
    let exponential = samples(r#"{"exponential": "2ms"}"#);
    near(at(&exponential, 50), 2.0 * std::f64::consts::LN_2);
    near(at(&exponential, 99), 2.0 * 100f64.ln());
    let lognormal = samples(r#"{"lognormal": {"median": "2ms", "sigma": 0.5}}"#);
    near(at(&lognormal, 50), 2.0);
    near(at(&lognormal, 99), 2.0 * (0.5f64 * 2.326_348).exp());
    let normal = samples(r#"{"normal": {"mean": "5ms", "deviation": "1ms"}}"#);
    near(at(&normal, 50), 5.0);
    near(at(&normal, 99), 5.0 + 2.326_348);
    let cut = samples(r#"{"normal": {"mean": "1ms", "deviation": "1ms"}}"#);
    assert_eq!(at(&cut, 10), 0);
    near(at(&cut, 50), 1.0);
    let pareto = samples(r#"{"pareto": {"least": "2ms", "shape": 3}}"#);
    near(pareto[0], 2.0);
    near(at(&pareto, 99), 2.0 * 100f64.cbrt());
    let weibull = samples(r#"{"weibull": {"scale": "2ms", "shape": 2}}"#);
    near(at(&weibull, 50), 2.0 * std::f64::consts::LN_2.sqrt());
    near(at(&weibull, 99), 2.0 * 100f64.ln().sqrt());
    let gamma = samples(r#"{"gamma": {"scale": "1ms", "shape": 2}}"#);
    near(at(&gamma, 50), 1.678_347);
    near(at(&gamma, 99), 6.638_352);
    let empirical = samples(r#"{"empirical": ["1ms", "2ms", "9ms"]}"#);
    near(at(&empirical, 20), 1.0);
    near(at(&empirical, 50), 2.0);
    near(at(&empirical, 90), 9.0);
    let fitted = samples(r#"{"percentiles": {"50": "2ms", "90": "5ms", "99": "40ms"}}"#);
    near(at(&fitted, 50), 2.0);
    near(at(&fitted, 90), 5.0);
    near(at(&fitted, 99), 40.0);
}

#[test]
fn a_distribution_writes_what_it_reads() {
    for text in [
        r#""3ms""#,
        r#"{"uniform":["1ms","3ms"]}"#,
        r#"{"exponential":"2ms"}"#,
        r#"{"lognormal":{"median":"2ms","sigma":0.5}}"#,
        r#"{"percentiles":{"50":"2ms","99.9":"5ms"}}"#,
        r#"{"normal":{"mean":"2ms","deviation":"100us"}}"#,
        r#"{"pareto":{"least":"2ms","shape":1.5}}"#,
        r#"{"weibull":{"scale":"2ms","shape":1.5}}"#,
        r#"{"gamma":{"scale":"2ms","shape":3.0}}"#,
        r#"{"empirical":["1ms","2ms"]}"#,
    ] {
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    }
}

#[test]
fn a_distribution_that_makes_no_sense_is_refused_in_a_sentence() {
    for (text, part) in [
        (r#"{"uniform": ["3ms", "1ms"]}"#, "ends before it begins"),
        (
            r#"{"lognormal": {"median": "1ms", "sigma": -1}}"#,
            "a distribution's sigma must be from 0 to 30, not -1",
        ),
        (
            r#"{"lognormal": {"median": "0ms", "sigma": 1}}"#,
            "a median of 0s is not possible; give a longer time",
        ),
        (r#"{"percentiles": {"50": "1ms"}}"#, "at least two"),
        (
            r#"{"percentiles": {"50": "2ms", "101": "3ms"}}"#,
            "'101' is not a percentile",
        ),
        (
            r#"{"percentiles": {"50": "2ms", "9": "3ms"}}"#,
            "percentile 50 is smaller than a lower percentile",
        ),
        (r#"{"exponentail": "1ms"}"#, "did you mean exponential?"),
        (
            r#"{"exponential": "1ms", "uniform": ["1ms", "2ms"]}"#,
            "exponential and uniform",
        ),
        (
            r#"{"weibull": {"scale": "1ms", "shape": 0}}"#,
            "a distribution's shape must be at least 0.01, not 0",
        ),
        (
            r#"{"gamma": {"scale": "1ms", "shape": 2, "mean": 3}}"#,
            "unknown field `mean`",
        ),
        (r#"{"empirical": []}"#, "at least one value"),
        (r#"{}"#, "an empty object"),
        (r#"5"#, "a time such as \"2ms\""),
    ] {
        let said = serde_json::from_str::<Distribution>(text)
            .unwrap_err()
            .to_string();
        assert!(said.contains(part), "{text}: {said}");
    }
}
