//! Estimates of a mean from independent runs.

use crate::contract::normal_quantile;
use std::fmt;
use std::ops::RangeInclusive;

/// The mean of independent observations, with confidence intervals by Student's t distribution.
///
/// ```
/// use corsair::Estimate;
///
/// let estimate = Estimate::of([9.8, 10.2, 10.0, 10.4, 9.6]);
/// assert!((estimate.mean() - 10.0).abs() < 1e-12);
/// let (low, high) = estimate.interval(0.95).into_inner();
/// assert!((low - 9.607).abs() < 0.001 && (high - 10.393).abs() < 0.001);
/// assert_eq!(estimate.to_string(), "10 ± 0.393 (95 %, n = 5)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    count: u64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Estimate {
    /// Computes an estimate from observations, by Welford's recurrence.
    pub fn of(observations: impl IntoIterator<Item = f64>) -> Estimate {
        let none = Estimate {
            count: 0,
            mean: 0.0,
            squares: 0.0,
        };
        observations.into_iter().fold(none, |mut so_far, value| {
            so_far.count += 1;
            let distance = value - so_far.mean;
            so_far.mean += distance / so_far.count as f64;
            so_far.squares += distance * (value - so_far.mean);
            so_far
        })
    }

    /// Returns the number of observations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean; NaN if there are no observations.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { f64::NAN } else { self.mean }
    }

    /// Returns the estimated standard deviation of the distribution from which the observations come.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return f64::NAN;
        }
        libm::sqrt(self.squares / (self.count - 1) as f64)
    }

    /// Returns half of the width of the confidence interval; infinite with fewer than two observations.
    ///
    /// # Panics
    /// If the confidence is not between 0 and 1.
    pub fn half_width(&self, confidence: f64) -> f64 {
        assert!(
            confidence > 0.0 && confidence < 1.0,
            "a confidence is between 0 and 1, not {confidence}"
        );
        if self.count < 2 {
            return f64::INFINITY;
        }
        let error = self.deviation() / libm::sqrt(self.count as f64);
        student_quantile(1.0 - confidence, (self.count - 1) as f64) * error
    }

    /// Returns the confidence interval of the mean, if observations are independent and roughly normally
    /// distributed, as means of runs are.
    ///
    /// # Panics
    /// If the confidence is not between 0 and 1.
    pub fn interval(&self, confidence: f64) -> RangeInclusive<f64> {
        let half = self.half_width(confidence);
        self.mean() - half..=self.mean() + half
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = self.half_width(0.95);
        write!(f, "{} ± ", Digits(self.mean()))?;
        write!(f, "{} (95 %, n = {})", Digits(half), self.count)
    }
}

/// Formats a number with about four significant digits.
struct Digits(f64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = libm::floor(libm::log10(self.0.abs()));
        if self.0 == 0.0 || !size.is_finite() {
            return write!(f, "{}", self.0);
        }
        if size.abs() > 12.0 {
            return write!(f, "{:.3e}", self.0);
        }
        let places = (2.0 - size).max(0.0) as usize;
        let text = format!("{:.places$}", self.0);
        let short = if places > 0 {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        f.write_str(short)
    }
}

/// Returns the value that the absolute value of Student's t with `freedom` degrees of freedom exceeds with
/// probability `p`: algorithm 396 of Hill (Communications of the ACM 13, 1970), to about six digits.
fn student_quantile(p: f64, freedom: f64) -> f64 {
    use std::f64::consts::FRAC_PI_2;
    if freedom < 1.5 {
        return libm::cos(p * FRAC_PI_2) / libm::sin(p * FRAC_PI_2);
    }
    if freedom < 2.5 {
        return libm::sqrt(2.0 / (p * (2.0 - p)) - 2.0);
    }
    let n = freedom;
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * libm::sqrt(a * FRAC_PI_2) * n;
    let mut y = libm::pow(d * p, 2.0 / n);
    if y > 0.05 + a {
        let x = normal_quantile(p * 0.5);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = libm::expm1(a * y * y);
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0)
            + 0.5 / (n + 4.0))
            * y
            - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    libm::sqrt(n * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_students_t_are_those_of_the_tables() {
        for (freedom, at_95, at_99) in [
            (1.0, 12.7062, 63.6567),
            (2.0, 4.302_65, 9.924_84),
            (3.0, 3.182_45, 5.840_91),
            (4.0, 2.776_45, 4.604_09),
            (9.0, 2.262_16, 3.249_84),
            (19.0, 2.093_02, 2.860_93),
            (29.0, 2.045_23, 2.756_39),
            (199.0, 1.971_96, 2.600_76),
        ] {
            let close = |a: f64, b: f64| (a - b).abs() < 2e-4 * b;
            assert!(close(student_quantile(0.05, freedom), at_95), "{freedom}");
            assert!(close(student_quantile(0.01, freedom), at_99), "{freedom}");
        }
    }

    #[test]
    fn an_estimate_of_little_promises_nothing() {
        assert!(Estimate::of([]).mean().is_nan());
        let one = Estimate::of([3.0]);
        assert_eq!((one.mean(), one.half_width(0.95)), (3.0, f64::INFINITY));
        assert_eq!(Estimate::of([2.0; 9]).half_width(0.99), 0.0);
        let tiny = Estimate::of([1e-300; 3]).to_string();
        assert_eq!(tiny, "1.000e-300 ± 0 (95 %, n = 3)");
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics need many numbers")]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        let mut random = crate::Random::new(5);
        let normal = crate::Distribution::normal(7.0, 2.0).unwrap();
        let holds = (0..4000).filter(|_| {
            let sample = (0..6).map(|_| normal.draw(random.bits()));
            Estimate::of(sample).interval(0.9).contains(&7.0)
        });
        let part = holds.count() as f64 / 4000.0;
        assert!(
            (part - 0.9).abs() < 5.0 * (0.09f64 / 4000.0).sqrt(),
            "{part}"
        );
    }
}
