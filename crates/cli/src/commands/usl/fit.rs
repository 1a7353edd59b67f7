//! Bounded least squares by the Levenberg–Marquardt method.
//!
//! The three parameters must not be negative. If the best value of a parameter would be negative, the parameter is held
//! at 0, and the others are fitted again. Of the four cases (α and β each free or held), the valid case with the
//! smallest error is used; of equally good cases, the simplest.

use super::law::{LEAST, MOST, Point, Usl, UslError};

/// The parameters λ, α and β.
type Three = [f64; 3];

/// The fraction of the sum of squared throughputs that an additional parameter must explain; otherwise the parameter
/// only fits noise. Without this limit, for example, the fit to rounded values of a straight line could have a peak at
/// a load of millions.
const NOISE: f64 = 1e-10;

/// The maximum number of steps; a fit takes about ten.
const STEPS: usize = 200;

impl Usl {
    /// Fits the law by least squares of the throughputs, with α and β at least 0.
    ///
    /// O(points) for each of some dozen steps.
    ///
    /// # Errors
    /// Returns [`UslError::OutOfRange`], or [`UslError::TooFew`] if there are fewer than three different loads.
    pub fn fit(points: &[Point]) -> Result<Usl, UslError> {
        let in_range = |value: f64| (LEAST..=MOST).contains(&value);
        let wrong = points
            .iter()
            .position(|point| !in_range(point.load) || !in_range(point.throughput));
        if let Some(wrong) = wrong {
            return Err(UslError::OutOfRange {
                number: wrong + 1,
                load: points[wrong].load,
                throughput: points[wrong].throughput,
            });
        }
        let mut loads: Vec<f64> = points.iter().map(|point| point.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        if loads.len() < 3 {
            return Err(UslError::TooFew(loads.len()));
        }
        // Throughputs are scaled to about 1, for any unit.
        let scale = points
            .iter()
            .map(|point| point.throughput)
            .fold(0.0, f64::max);
        let scaled: Vec<Point> = points
            .iter()
            .map(|point| Point {
                load: point.load,
                throughput: point.throughput / scale,
            })
            .collect();
        // Cases with fewer parameters come first.
        let cases = [[false, false], [true, false], [false, true], [true, true]];
        let noise = NOISE * scaled.iter().map(|p| p.throughput.powi(2)).sum::<f64>();
        let best = cases
            .into_iter()
            .map(|[alpha, beta]| minimise(&scaled, [true, alpha, beta]))
            .filter(|(parameters, _)| {
                parameters[0] > 0.0 && parameters[1] >= 0.0 && parameters[2] >= 0.0
            })
            .reduce(|best, next| if next.1 + noise < best.1 { next } else { best });
        // With α and β held, λ is a ratio of positive sums.
        let ([lambda, alpha, beta], left) = best.expect("λ alone can always be fitted");
        let mean = scaled.iter().map(|point| point.throughput).sum::<f64>() / scaled.len() as f64;
        let all: f64 = scaled
            .iter()
            .map(|point| (point.throughput - mean).powi(2))
            .sum();
        Ok(Usl {
            lambda: lambda * scale,
            alpha,
            beta,
            r_squared: match all > 0.0 {
                true => 1.0 - left / all,
                // If all throughputs are equal, there is no variance to explain.
                false => f64::from(u8::from(left < 1e-12)),
            },
        })
    }
}

/// Returns the denominator of the law.
fn cost(load: f64, [_, alpha, beta]: Three) -> f64 {
    1.0 + alpha * (load - 1.0) + beta * load * (load - 1.0)
}

fn squares(points: &[Point], parameters: Three) -> f64 {
    points
        .iter()
        .map(|point| {
            let cost = cost(point.load, parameters);
            match cost > 0.0 {
                true => (point.throughput - parameters[0] * point.load / cost).powi(2),
                // Beyond a pole the law has no meaning.
                false => f64::INFINITY,
            }
        })
        .sum()
}

/// Returns the parameters with the least sum of squares, and that sum. Parameters that are not free stay at 0.
fn minimise(points: &[Point], free: [bool; 3]) -> (Three, f64) {
    let start = |alpha: f64, beta: f64| {
        let held = |free: bool, value: f64| if free { value } else { 0.0 };
        let parameters = [1.0, held(free[1], alpha), held(free[2], beta)];
        // For these α and β, the best λ is known.
        let shape = |point: &Point| point.load / cost(point.load, parameters);
        let top: f64 = points.iter().map(|p| p.throughput * shape(p)).sum();
        let bottom: f64 = points.iter().map(|p| shape(p).powi(2)).sum();
        [top / bottom, parameters[1], parameters[2]]
    };
    // The search starts from several points, so that a flat valley far from the minimum does not end it.
    [
        (0.01, 1e-4),
        (0.3, 1e-3),
        (0.9, 1e-6),
        (1e-4, 0.05),
        (0.0, 0.0),
    ]
    .into_iter()
    .map(|(alpha, beta)| descend(points, start(alpha, beta), free))
    .min_by(|(_, a), (_, b)| a.total_cmp(b))
    .expect("there are several places")
}

fn descend(points: &[Point], mut at: Three, free: [bool; 3]) -> (Three, f64) {
    let mut sum = squares(points, at);
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        // JᵀJ and Jᵀr for the Jacobian J and the residuals r.
        let (mut normal, mut slope) = ([[0.0; 3]; 3], [0.0; 3]);
        for point in points {
            let (n, cost) = (point.load, cost(point.load, at));
            let model = at[0] * n / cost;
            let by = -model / cost;
            let gradient = [n / cost, by * (n - 1.0), by * n * (n - 1.0)];
            let residual = point.throughput - model;
            for row in 0..3 {
                slope[row] += gradient[row] * residual;
                for column in 0..3 {
                    normal[row][column] += gradient[row] * gradient[column];
                }
            }
        }
        let mut better = false;
        while damping < 1e12 {
            let mut damped = normal;
            let mut wanted = slope;
            for place in 0..3 {
                damped[place][place] *= 1.0 + damping;
                if !free[place] {
                    wanted[place] = 0.0;
                    damped[place] = [0.0; 3];
                    for row in &mut damped {
                        row[place] = 0.0;
                    }
                    damped[place][place] = 1.0;
                }
            }
            let Some(step) = solve(damped, wanted) else {
                damping *= 10.0;
                continue;
            };
            let next = [at[0] + step[0], at[1] + step[1], at[2] + step[2]];
            let now = squares(points, next);
            if now < sum {
                better = sum - now > 1e-15 * sum;
                (at, sum) = (next, now);
                damping = (damping / 10.0).max(1e-12);
                break;
            }
            damping *= 10.0;
        }
        if !better {
            break;
        }
    }
    (at, sum)
}

/// Solves three equations by Gaussian elimination with pivoting; returns `None` if they are not independent.
fn solve(mut a: [[f64; 3]; 3], mut b: Three) -> Option<Three> {
    for place in 0..3 {
        let pivot = (place..3).max_by(|&x, &y| a[x][place].abs().total_cmp(&a[y][place].abs()))?;
        a.swap(place, pivot);
        b.swap(place, pivot);
        if a[place][place].abs() < f64::MIN_POSITIVE || !a[place][place].is_finite() {
            return None;
        }
        for row in place + 1..3 {
            let factor = a[row][place] / a[place][place];
            let upper = a[place];
            for (value, above) in a[row].iter_mut().zip(upper).skip(place) {
                *value -= factor * above;
            }
            b[row] -= factor * b[place];
        }
    }
    let mut x = [0.0; 3];
    for place in (0..3).rev() {
        let known: f64 = (place + 1..3).map(|other| a[place][other] * x[other]).sum();
        x[place] = (b[place] - known) / a[place][place];
    }
    x.iter().all(|value| value.is_finite()).then_some(x)
}
