//! Samples have the percentiles they should; what makes no sense is refused.

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
            "a sigma of -1 is no number from 0 to 10",
        ),
        (
            r#"{"lognormal": {"median": "0ms", "sigma": 1}}"#,
            "has no logarithm",
        ),
        (r#"{"percentiles": {"50": "1ms"}}"#, "at least two"),
        (
            r#"{"percentiles": {"50": "2ms", "100": "3ms"}}"#,
            "'100' is no percentile",
        ),
        (
            r#"{"percentiles": {"50": "2ms", "9": "3ms"}}"#,
            "percentile 50 is shorter",
        ),
        (r#"{"exponentail": "1ms"}"#, "did you mean exponential?"),
        (
            r#"{"exponential": "1ms", "uniform": ["1ms", "2ms"]}"#,
            "exponential and uniform",
        ),
        (r#"{}"#, "an empty object"),
        (r#"5"#, "a time such as \"2ms\""),
    ] {
        let said = serde_json::from_str::<Distribution>(text)
            .unwrap_err()
            .to_string();
        assert!(said.contains(part), "{text}: {said}");
    }
}
