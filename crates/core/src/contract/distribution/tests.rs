//! Compares numbers, quantiles and moments with theory.

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
        Distribution::weibull(2.0, 1.5).unwrap(),
        Distribution::gamma(0.5, 3.0).unwrap(),
        Distribution::percentiles(&[(50.0, 2.0), (90.0, 3.0), (99.0, 5.0)]).unwrap(),
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
    let sum = |distributions: &[Distribution]| {
        let mut random = Random::new(2026);
        let numbers = (0..1000).flat_map(|_| distributions);
        let bits = numbers.map(|distribution| distribution.draw(random.bits()).to_bits());
        bits.fold(0u64, |sum, bits| sum.rotate_left(1).wrapping_add(bits))
    };
    let all = all();
    let sums = [sum(&all[..7]), sum(&all[7..])];
    assert_eq!(
        sums,
        [0xed2c_fdb8_15f5_7750, 0x22f1_3ce6_51a6_7674],
        "{sums:#x?}"
    );
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
        "a distribution's upper end must be finite, not inf"
    );
    let error = Distribution::uniform(3.0, 1.0).unwrap_err().to_string();
    assert_eq!(
        error,
        "a distribution's upper end must be at least the lower one, not 1"
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

/// Returns probabilities from one end of the range to the other, including both tails.
fn parts() -> impl Iterator<Item = f64> {
    let tails = [1e-9, 1e-4, 0.01, 0.99, 0.9999, 1.0 - 1e-9];
    (1..20).map(|n| f64::from(n) / 20.0).chain(tails)
}

#[test]
fn the_distribution_function_is_the_inverse_of_the_quantile() {
    let more = [
        Distribution::weibull(3.0, 0.4).unwrap(),
        Distribution::gamma(2.0, 0.1).unwrap(),
        Distribution::gamma(2.0, 1.0).unwrap(),
        Distribution::gamma(1.0, 400.0).unwrap(),
    ];
    let is_continuous =
        |of: &Distribution| !matches!(of.0, Shape::Constant(_) | Shape::Empirical(_));
    for distribution in all().into_iter().filter(is_continuous).chain(more) {
        for p in parts() {
            let found = distribution.probability(distribution.quantile(p));
            assert!((found - p).abs() < 1e-9, "{distribution:?} at {p}: {found}");
        }
        assert_eq!(distribution.probability(distribution.least() - 1.0), 0.0);
    }
    let empirical = Distribution::empirical(&[1.0, 2.0, 2.0, 4.0]).unwrap();
    let at = |x| empirical.probability(x);
    assert_eq!([at(0.5), at(1.0), at(2.0), at(9.0)], [0.0, 0.25, 0.75, 1.0]);
    let constant = Distribution::constant(3.0).unwrap();
    assert_eq!(
        [constant.probability(2.9), constant.probability(3.0)],
        [0.0, 1.0]
    );
}

#[test]
fn weibulls_quantiles_are_those_of_its_closed_form() {
    let weibull = Distribution::weibull(2.0, 3.0).unwrap();
    for p in parts() {
        let closed = 2.0 * (-(1.0 - p).ln()).cbrt();
        assert!((weibull.quantile(p) / closed - 1.0).abs() < 1e-6, "{p}");
    }
    let mean = 2.0 * 0.892_979_511_569_249_2; // Γ(4/3)
    assert!((weibull.mean() - mean).abs() < 1e-12);
    let (one, exponential) = (
        Distribution::weibull(2.0, 1.0).unwrap(),
        Distribution::exponential(2.0).unwrap(),
    );
    for p in parts() {
        assert!((one.quantile(p) - exponential.quantile(p)).abs() < 1e-9);
    }
}

#[test]
fn gammas_distribution_function_is_erlangs_for_whole_shapes() {
    for shape in [1u32, 2, 3, 7, 30] {
        let gamma = Distribution::gamma(0.25, shape.into()).unwrap();
        for p in parts() {
            let x = gamma.quantile(p) / 0.25;
            // 1 - e^-x (1 + x + x²/2 + …)
            let mut term = 1.0;
            let mut sum = 0.0;
            for n in 1..=shape {
                sum += term;
                term *= x / f64::from(n);
            }
            let erlang = 1.0 - (-x).exp() * sum;
            assert!((erlang - p).abs() < 1e-9, "{shape} at {p}: {erlang}");
        }
    }
    // A shape of a half is the square of a normally distributed number.
    let half = Distribution::gamma(2.0, 0.5).unwrap();
    for z in [0.1, 1.0, 3.0] {
        let both_sides = 2.0 * super::normal_probability(z) - 1.0;
        assert!((half.probability(z * z) - both_sides).abs() < 1e-12);
    }
}

#[test]
fn a_curve_of_percentiles_goes_through_them_and_is_lognormal_between_and_beyond() {
    let points = [(50.0, 2.0), (90.0, 3.0), (99.0, 5.0)];
    let curve = Distribution::percentiles(&points).unwrap();
    for (percentage, value) in points {
        assert!((curve.quantile(percentage / 100.0) - value).abs() < 1e-12);
    }
    let middle = super::normal_probability(0.5 * normal_quantile(0.9));
    assert!((curve.quantile(middle) - 6f64.sqrt()).abs() < 1e-12);
    // Through two points of a lognormal distribution it is that.
    let lognormal = Distribution::lognormal(2.0, 0.5).unwrap();
    let two = [25.0, 97.0].map(|part| (part, lognormal.quantile(part / 100.0)));
    let through = Distribution::percentiles(&two).unwrap();
    for p in parts() {
        assert!((through.quantile(p) / lognormal.quantile(p) - 1.0).abs() < 1e-9);
    }
    assert!((through.mean() - lognormal.mean()).abs() < 1e-9);
    assert!((through.variance() - lognormal.variance()).abs() < 1e-9);
    let step = Distribution::percentiles(&[(10.0, 1.0), (90.0, 1.0)]).unwrap();
    assert_eq!([step.probability(0.9), step.probability(1.1)], [0.0, 1.0]);
    assert_eq!(step.quantile(0.99), 1.0);
}

// Guarantee: core-20.
#[test]
fn nothing_is_drawn_beyond_a_greatest_and_a_smallest_value() {
    let points = [
        (0.0, 1.0),
        (50.0, 2.0),
        (99.0, 9.0),
        (99.5, 16.0),
        (100.0, 31.0),
    ];
    let curve = Distribution::percentiles(&points).unwrap();
    assert!(curve.quantile(1.0 - 1e-15) <= 31.0 && curve.quantile(1e-15) >= 1.0);
    assert_eq!(
        (curve.probability(31.0), curve.probability(0.99)),
        (1.0, 0.0)
    );
    assert_eq!(curve.least(), 1.0);
    for p in parts() {
        assert!(
            (curve.probability(curve.quantile(p)) - p).abs() < 1e-9,
            "{p}"
        );
    }
    // The moments are those of many quantiles.
    let quantiles = (0..200_000).map(|n| curve.quantile((f64::from(n) + 0.5) / 200_000.0));
    let (sum, squares) = quantiles.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let (mean, square) = (sum / 200_000.0, squares / 200_000.0);
    assert!((curve.mean() / mean - 1.0).abs() < 1e-4);
    assert!((curve.variance() / (square - mean * mean) - 1.0).abs() < 1e-3);
    let ends = Distribution::percentiles(&[(0.0, 1.0), (100.0, 4.0)]).unwrap();
    assert!((ends.quantile(0.5) - 2.0).abs() < 1e-12);
}

#[test]
fn percentiles_that_make_no_curve_are_refused() {
    let refused =
        |points: &[(f64, f64)]| Distribution::percentiles(points).unwrap_err().to_string();
    assert!(refused(&[(50.0, 1.0)]).contains("at least two"));
    assert!(refused(&[(50.0, 2.0), (90.0, 1.0)]).starts_with("percentile 90 is smaller"));
    assert!(refused(&[(50.0, 2.0), (50.0, 2.0)]).contains("there once"));
    assert!(refused(&[(-1.0, 2.0), (50.0, 2.0)]).contains("from 0 to 100"));
    assert!(refused(&[(50.0, 2.0), (100.0, 3.0)]).contains("or both 0 and 100 as well"));
    assert!(refused(&[(1.0, 0.0), (50.0, 2.0)]).contains("positive"));
}

#[test]
fn a_scaled_distribution_has_scaled_quantiles_and_moments() {
    for distribution in all() {
        let scaled = distribution.scaled(1e3);
        for p in parts() {
            let (one, other) = (distribution.quantile(p) * 1e3, scaled.quantile(p));
            assert!((one - other).abs() <= 1e-9 * one.abs(), "{distribution:?}");
        }
        let ratio = scaled.variance() - distribution.variance() * 1e6;
        assert!(ratio.abs() <= 1e-6 * scaled.variance(), "{distribution:?}");
    }
}
