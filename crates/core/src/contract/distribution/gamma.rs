//! The gamma distribution of scale 1 (Press et al., Numerical Recipes, third edition, sections 6.2 and 6.2.1).

use super::normal::normal_quantile;

/// Sums and iterations end when a term is at most this fraction of the result.
const PRECISION: f64 = f64::EPSILON;

/// Maximum number of terms; a shape of 10,000 needs fewer.
const MOST_TERMS: u32 = 10_000;

/// Returns the fraction of all numbers that do not exceed `x`: the regularized lower incomplete gamma function.
pub(super) fn probability(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let factor = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        factor * series(shape, x)
    } else {
        1.0 - factor * fraction(shape, x)
    }
}

/// Returns the sum 1/shape + x/(shape (shape + 1)) + …
fn series(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    for n in 1..MOST_TERMS {
        term *= x / (shape + f64::from(n));
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    sum
}

/// Returns the continued fraction of the upper incomplete gamma function, by Lentz's method.
fn fraction(shape: f64, x: f64) -> f64 {
    const TINY: f64 = f64::MIN_POSITIVE / PRECISION;
    let or_tiny = |number: f64| if number.abs() < TINY { TINY } else { number };
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut result = d;
    for n in (1..MOST_TERMS).map(f64::from) {
        let a = -n * (n - shape);
        b += 2.0;
        d = 1.0 / or_tiny(a * d + b);
        c = or_tiny(b + a / c);
        result *= d * c;
        if (d * c - 1.0).abs() <= PRECISION {
            break;
        }
    }
    result
}

/// Returns the quantile for `p`, by Halley's method from an approximation.
pub(super) fn quantile(shape: f64, p: f64) -> f64 {
    let mut x = if shape > 1.0 {
        // Wilson and Hilferty: the cube root is roughly normally distributed.
        let ninth = 1.0 / (9.0 * shape);
        let root = 1.0 - ninth + normal_quantile(p) * libm::sqrt(ninth);
        (shape * root * root * root).max(1e-3)
    } else {
        let knee = 1.0 - shape * (0.253 + shape * 0.12);
        if p < knee {
            libm::pow(p / knee, 1.0 / shape)
        } else {
            1.0 - libm::log1p(-(p - knee) / (1.0 - knee))
        }
    };
    let log_gamma = libm::lgamma(shape);
    for _ in 0..12 {
        if x <= 0.0 {
            return 0.0;
        }
        let density = libm::exp((shape - 1.0) * libm::log(x) - x - log_gamma);
        let newton = (probability(shape, x) - p) / density;
        let step = newton / (1.0 - 0.5 * (newton * ((shape - 1.0) / x - 1.0)).min(1.0));
        if !step.is_finite() {
            break;
        }
        let before = x;
        x -= step;
        if x <= 0.0 {
            x = 0.5 * before;
        }
        if step.abs() < 1e-11 * x {
            break;
        }
    }
    x
}
