//! The universal scalability law (Gunther), fitted to measured throughputs.
//!
//! The throughput at a load of N is
//!
//! ```text
//!                 λ N
//! X(N) = ──────────────────────────
//!         1 + α (N − 1) + β N (N − 1)
//! ```
//!
//! where λ is the throughput at a load of one, α is the contention (the share of work that is serial), and β is the
//! coherency (the cost of each pair). Source: N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4
//! and 5.

/// A throughput that was measured at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The concurrency: clients, threads or nodes.
    pub load: f64,
    /// The throughput, in any unit.
    pub throughput: f64,
}

/// The law with fitted parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// The throughput at a load of one.
    pub lambda: f64,
    /// Contention, α; at least 0.
    pub alpha: f64,
    /// Coherency, β; at least 0.
    pub beta: f64,
    /// The fraction of the variance of the throughputs that the law explains; 1 is a perfect fit.
    pub r_squared: f64,
}

/// The minimum load and throughput.
pub const LEAST: f64 = 1e-12;
/// The maximum load and throughput.
pub const MOST: f64 = 1e15;

/// The reasons why the law cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UslError {
    /// A load or throughput that is not a number, or is not between [`LEAST`] and [`MOST`]. Outside this range, rounding
    /// errors dominate.
    #[error(
        "point {number} is ({load:?}, {throughput:?}); loads and throughputs are numbers from {LEAST:e} to {MOST:e}"
    )]
    OutOfRange {
        /// The number of the point, from 1.
        number: usize,
        /// The load of the invalid point.
        load: f64,
        /// The throughput of the invalid point.
        throughput: f64,
    },
    /// There are too few loads to determine three parameters.
    #[error(
        "there are {0} different loads; the law has three parameters, so measure at least 3 loads, preferably 6"
    )]
    TooFew(usize),
    /// A line is not a point.
    #[error(
        "line {line}: '{text}' is not a pair of numbers; write a load and a throughput, as 16 9897.2"
    )]
    NoPair {
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
}

impl Usl {
    /// Returns the throughput that the law predicts for a load.
    pub fn throughput(&self, load: f64) -> f64 {
        let n = load;
        self.lambda * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }

    /// Returns the mean response time of a unit of work at this load, in the throughput's unit of time. By Little's
    /// law, this is the load divided by the throughput.
    pub fn response(&self, load: f64) -> f64 {
        load / self.throughput(load)
    }

    /// Returns the throughput at a response time; `None` if even a load of one takes longer, or no load takes
    /// as long.
    pub fn throughput_at(&self, response: f64) -> Option<f64> {
        // λ R = 1 + α (N − 1) + β N (N − 1)
        let over = self.lambda * response - 1.0;
        let load = larger_root(self.beta, self.alpha - self.beta, -self.alpha - over)?;
        (load >= 1.0).then(|| self.throughput(load))
    }

    /// Returns the least load that gives this throughput; `None` if no load of one or more does.
    pub fn load_of(&self, throughput: f64) -> Option<f64> {
        // X (1 − α) = N (λ − X (α − β)) − X β N²
        let (x, alpha, beta) = (throughput, self.alpha, self.beta);
        let load = smaller_root(
            x * beta,
            x * (alpha - beta) - self.lambda,
            x * (1.0 - alpha),
        )?;
        (load >= 1.0 - 1e-12).then(|| load.max(1.0))
    }

    /// Returns the point with the highest throughput; `None` if throughput always grows with load (β is 0 and α below
    /// 1).
    pub fn peak(&self) -> Option<Point> {
        let load = match self.alpha {
            1.0.. => 1.0,
            alpha if self.beta > 0.0 => ((1.0 - alpha) / self.beta).sqrt().max(1.0),
            _ => return None,
        };
        Some(Point {
            load,
            throughput: self.throughput(load),
        })
    }

    /// Returns the upper bound of the throughput: the peak, or the asymptote λ/α; `None` if it is unbounded.
    pub fn limit(&self) -> Option<f64> {
        match self.peak() {
            Some(peak) => Some(peak.throughput),
            None => (self.alpha > 0.0).then(|| self.lambda / self.alpha),
        }
    }
}

/// Returns the smaller solution of a x² + b x + c = 0 with a ≥ 0 and b < 0, if there is one.
fn smaller_root(a: f64, b: f64, c: f64) -> Option<f64> {
    let discriminant = b * b - 4.0 * a * c;
    if discriminant < 0.0 || b >= 0.0 {
        return None;
    }
    // This form avoids the difference of two nearly equal numbers.
    let root = 2.0 * c / (-b + discriminant.sqrt());
    root.is_finite().then_some(root)
}

/// Returns the larger solution of a x² + b x + c = 0 with a ≥ 0, if there is one.
fn larger_root(a: f64, b: f64, c: f64) -> Option<f64> {
    let discriminant = b * b - 4.0 * a * c;
    if discriminant < 0.0 {
        return None;
    }
    let root = match b >= 0.0 {
        true => -2.0 * c / (b + discriminant.sqrt()),
        false => (-b + discriminant.sqrt()) / (2.0 * a),
    };
    root.is_finite().then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(usl: &Usl, loads: &[f64]) -> Vec<Point> {
        let point = |&load| Point {
            load,
            throughput: usl.throughput(load),
        };
        loads.iter().map(point).collect()
    }

    const LOADS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    proptest! {
        #[test]
        fn a_law_is_found_again_from_its_throughputs(
            lambda in 0.01..1e6f64,
            alpha in 0.0..0.5f64,
            beta in 0.0..0.01f64,
        ) {
            let law = Usl { lambda, alpha, beta, r_squared: 1.0 };
            let found = Usl::fit(&points(&law, &LOADS)).unwrap();
            prop_assert!((found.lambda / lambda - 1.0).abs() < 1e-4, "{found:?}");
            prop_assert!((found.alpha - alpha).abs() < 1e-4, "{found:?}");
            prop_assert!((found.beta - beta).abs() < 1e-5, "{found:?}");
            prop_assert!(found.r_squared > 0.999_999 || lambda < 0.1, "{found:?}");
        }

        #[test]
        fn all_four_directions_agree(
            lambda in 0.01..1e6f64,
            alpha in 0.0..0.9f64,
            beta in 0.0..0.01f64,
            part in 0.0..1.0f64,
        ) {
            let law = Usl { lambda, alpha, beta, r_squared: 1.0 };
            let end = law.peak().map_or(1e3, |peak| peak.load);
            let load = 1.0 + part * 0.99 * (end - 1.0);
            let (throughput, response) = (law.throughput(load), law.response(load));
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
            prop_assert!(near(throughput * response, load));
            let found = law.load_of(throughput).unwrap();
            prop_assert!((found - load).abs() < 1e-3 * load, "{found} is not {load}");
            prop_assert!((law.response(law.load_of(throughput).unwrap()) / response - 1.0).abs() < 1e-3);
            if alpha + beta > 1e-3 {
                prop_assert!(near(law.throughput_at(response).unwrap(), throughput));
            }
            prop_assert_eq!(law.throughput_at(0.9 / lambda), None);
            if let Some(peak) = law.peak() {
                prop_assert_eq!(law.load_of(peak.throughput * 1.01), None);
            }
        }

        #[test]
        fn a_straight_line_stays_one_however_it_is_rounded(
            lambda in 0.1..1e6f64,
            digits in 7..12usize,
        ) {
            let points: Vec<Point> = LOADS
                .iter()
                .map(|&load| Point {
                    load,
                    throughput: format!("{:.*e}", digits, lambda * load).parse().unwrap(),
                })
                .collect();
            let usl = Usl::fit(&points).unwrap();
            prop_assert_eq!((usl.alpha, usl.beta), (0.0, 0.0));
            prop_assert_eq!((usl.peak(), usl.limit()), (None, None));
        }

        #[test]
        fn any_positive_points_give_a_law_without_negative_parameters(
            throughputs in prop::collection::vec(0.1..1e5f64, 3..20),
        ) {
            let points: Vec<Point> = (1u32..)
                .zip(throughputs)
                .map(|(load, throughput)| Point { load: load.into(), throughput })
                .collect();
            let usl = Usl::fit(&points).unwrap();
            prop_assert!(usl.lambda > 0.0 && usl.alpha >= 0.0 && usl.beta >= 0.0, "{usl:?}");
            prop_assert!(usl.r_squared <= 1.0 && usl.throughput(7.0).is_finite(), "{usl:?}");
            if let Some(peak) = usl.peak() {
                for factor in [0.8, 0.99, 1.01, 1.2] {
                    let near = (peak.load * factor).max(1.0);
                    prop_assert!(usl.throughput(near) <= peak.throughput * (1.0 + 1e-9));
                }
            }
        }
    }

    #[test]
    fn the_published_example_specsdm91_is_fitted() {
        // Gunther's example of a SPEC benchmark: the number of load generators, and script executions per hour.
        let measured = [
            (1.0, 64.9),
            (18.0, 995.9),
            (36.0, 1652.4),
            (72.0, 1853.2),
            (108.0, 1828.9),
            (144.0, 1775.0),
            (216.0, 1702.2),
        ];
        let points: Vec<Point> = measured
            .map(|(load, throughput)| Point { load, throughput })
            .to_vec();
        let usl = Usl::fit(&points).unwrap();
        assert!((usl.lambda - 89.99).abs() < 0.05, "{usl:?}");
        assert!((usl.alpha - 0.027_73).abs() < 1e-4, "{usl:?}");
        assert!((usl.beta - 0.000_104_35).abs() < 1e-6, "{usl:?}");
        assert!((usl.peak().unwrap().load - 96.5).abs() < 0.1, "{usl:?}");
        assert!(usl.r_squared > 0.98, "{usl:?}");
    }

    #[test]
    fn without_coherency_there_is_a_limit_and_no_peak() {
        let amdahl = Usl {
            lambda: 10.0,
            alpha: 0.05,
            beta: 0.0,
            r_squared: 1.0,
        };
        assert_eq!((amdahl.peak(), amdahl.limit()), (None, Some(200.0)));
    }

    #[test]
    fn what_cannot_be_fitted_is_reported() {
        let point = |load, throughput| Point { load, throughput };
        let twice = [point(1.0, 1.0), point(1.0, 2.0), point(2.0, 2.0)];
        assert_eq!(Usl::fit(&twice), Err(UslError::TooFew(2)));
        for wrong in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY] {
            let said = Usl::fit(&[point(1.0, 1.0), point(2.0, wrong)]).unwrap_err();
            let expected = format!("point 2 is (2.0, {wrong:?}); ");
            assert!(said.to_string().starts_with(&expected), "{said}");
        }
    }
}
