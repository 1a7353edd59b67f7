//! The forecast: damped Holt-Winters (Gardner, McKenzie, "Forecasting Trends in Time Series", 1985), whose parameters a
//! simplex search finds (Nelder, Mead, "A Simplex Method for Function Minimization", 1965). Every step of the search is
//! the same as in InfluxDB, so that the results are equal.

/// The weight of the first values in the initial guesses.
const WEIGHT: f64 = 0.5;
/// The spread of the simplex's values at which the search ends.
const EPSILON: f64 = 1e-4;
/// The initial guesses of each parameter.
const GUESSES: [f64; 2] = [0.3, 0.7];
/// The most steps of a search.
const STEPS: usize = 1000;
/// The parameters before the seasonal factors: alpha, beta, gamma, phi, level and trend.
const FIXED: usize = 6;

/// Returns the fitted values of a series and the next `horizon` values. NaN is a missing value. `season` is the number
/// of values in a season; below 2 there are no seasons. There must be at least 2 values, and a season of them.
pub(super) fn forecast(values: &[f64], horizon: usize, season: usize) -> Vec<f64> {
    let season = if season < 2 { 0 } else { season };
    let mut start = initial(values, season);
    let mut best: Option<(f64, Vec<f64>)> = None;
    for alpha in GUESSES {
        for beta in GUESSES {
            for gamma in GUESSES {
                for phi in GUESSES {
                    start[..4].copy_from_slice(&[alpha, beta, gamma, phi]);
                    let error = |parameters: &mut [f64]| squared_error(values, season, parameters);
                    let (least, parameters) = minimize(error, &start);
                    if best.as_ref().is_none_or(|(found, _)| least < *found) {
                        best = Some((least, parameters));
                    }
                }
            }
        }
    }
    let (_, mut parameters) = best.expect("there are guesses");
    continued(values, horizon, season, &mut parameters)
}

/// Returns the initial parameters.
fn initial(values: &[f64], season: usize) -> Vec<f64> {
    let known = |at: usize| values.get(at).copied().filter(|value| !value.is_nan());
    let m = season as f64;
    let level: f64 = match season {
        0 => WEIGHT * values[0],
        _ => (0..season).filter_map(known).fold(0.0, |sum, value| sum + 1.0 / m * value),
    };
    let trend = match season {
        0 => known(1).map_or(0.0, |second| WEIGHT * (second - values[0])),
        _ => (0..season)
            .filter_map(|at| Some((known(at)?, known(season + at)?)))
            .fold(0.0, |sum, (first, second)| sum + 1.0 / (m * m) * (second - first)),
    };
    let mut parameters = vec![0.0; FIXED];
    (parameters[4], parameters[5]) = (level, trend);
    parameters.extend((0..season).map(|at| known(at).map_or(0.0, |value| value / level)));
    parameters
}

/// Computes the series and the values that follow it. Constrains the parameters, and overwrites the seasonal factors.
fn continued(values: &[f64], horizon: usize, season: usize, parameters: &mut [f64]) -> Vec<f64> {
    let (fixed, seasonal) = parameters.split_at_mut(FIXED);
    for parameter in &mut fixed[..4] {
        *parameter = parameter.clamp(0.0, 1.0);
    }
    let [alpha, beta, gamma, phi, mut level, mut trend] = *fixed else {
        unreachable!("there are six fixed parameters");
    };
    let mut value = values[0];
    let mut damping = phi;
    let mut offset = season.saturating_sub(1);
    let mut all = Vec::with_capacity(values.len() + horizon);
    all.push(value);
    for t in 1..values.len() + horizon {
        let (before, after) = match season {
            0 => (1.0, 1.0),
            // The index is never negative, because the offset grows with the time.
            _ => (
                seasonal[(t + offset - season) % season],
                seasonal[(t + offset - season + t % season) % season],
            ),
        };
        let expected = level + phi * trend;
        let next_level = alpha * (value / before) + (1.0 - alpha) * expected;
        let next_trend = beta * (next_level - level) + (1.0 - beta) * phi * trend;
        let factor = gamma * (value / expected) + (1.0 - gamma) * before;
        value = (next_level + damping * next_trend) * after;
        (level, trend) = (next_level, next_trend);
        damping += phi.powf(t as f64);
        if season > 0 {
            seasonal[(t + offset) % season] = factor;
            offset += 1;
        }
        all.push(value);
    }
    all
}

fn squared_error(values: &[f64], season: usize, parameters: &mut [f64]) -> f64 {
    let mut sum = 0.0;
    for (found, value) in continued(values, 0, season, parameters).iter().zip(values) {
        if value.is_nan() {
            continue;
        }
        if found.is_nan() {
            return f64::INFINITY;
        }
        sum += (found - value) * (found - value);
    }
    sum
}

/// Returns the least value of a function near `start`, and its arguments.
fn minimize(mut function: impl FnMut(&mut [f64]) -> f64, start: &[f64]) -> (f64, Vec<f64>) {
    let n = start.len();
    let size = n as f64;
    let far = ((size + 1.0).sqrt() - 1.0 + size) / (size * 2f64.sqrt());
    let near = ((size + 1.0).sqrt() - 1.0) / (size * 2f64.sqrt());
    let mut vertices = vec![start.to_vec()];
    for corner in 0..n {
        let moved = start.iter().enumerate();
        let moved = moved.map(|(at, value)| if at == corner { far + value } else { near + value });
        vertices.push(moved.collect());
    }
    let mut values: Vec<f64> = vertices.iter_mut().map(|vertex| function(vertex)).collect();
    for _ in 0..STEPS {
        step(&mut function, &mut vertices, &mut values);
        let mean = values.iter().sum::<f64>() / (size + 1.0);
        let spread = values.iter().fold(0.0, |sum, value| sum + (value - mean).powf(2.0) / size);
        if spread.sqrt() < EPSILON {
            break;
        }
    }
    let least = index(&values, |value, least| value < least);
    let mut found = vertices.swap_remove(least);
    let parameters = found.clone();
    (function(&mut found), parameters)
}

/// Moves the worst vertex of the simplex.
fn step(
    function: &mut impl FnMut(&mut [f64]) -> f64,
    vertices: &mut [Vec<f64>],
    values: &mut [f64],
) {
    let worst = index(values, |value, worst| value > worst);
    let best = index(values, |value, best| value < best);
    let mut second = best;
    for (at, value) in values.iter().enumerate() {
        if *value > values[second] && *value < values[worst] {
            second = at;
        }
    }
    let n = vertices.len() - 1;
    let others = || vertices.iter().enumerate().filter(|(at, _)| *at != worst);
    let center = |axis: usize| others().fold(0.0, |sum, (_, vertex)| sum + vertex[axis]) / n as f64;
    let center: Vec<f64> = (0..n).map(center).collect();
    let from_center = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        center.iter().enumerate().map(|(axis, middle)| of(axis, *middle)).collect()
    };
    let mut reflected = from_center(&|axis, middle| middle + (middle - vertices[worst][axis]));
    let value = function(&mut reflected);
    if value < values[second] && value >= values[best] {
        vertices[worst].clone_from(&reflected);
        values[worst] = value;
    }
    if value < values[best] {
        let mut expanded = from_center(&|axis, middle| middle + 2.0 * (reflected[axis] - middle));
        let further = function(&mut expanded);
        (vertices[worst], values[worst]) = match further < value {
            true => (expanded, further),
            false => (reflected.clone(), value),
        };
    }
    if value < values[second] {
        return;
    }
    let outside = value < values[worst];
    let mut contracted = from_center(&|axis, middle| match outside {
        true => middle + 0.5 * (reflected[axis] - middle),
        false => middle - 0.5 * (middle - vertices[worst][axis]),
    });
    let nearer = function(&mut contracted);
    if nearer < values[worst] {
        (vertices[worst], values[worst]) = (contracted, nearer);
        return;
    }
    let middle = vertices[best].clone();
    for (at, vertex) in vertices.iter_mut().enumerate() {
        if at != best {
            for (value, middle) in vertex.iter_mut().zip(&middle) {
                *value = middle + (*value - middle) / 2.0;
            }
        }
    }
    values[worst] = function(&mut vertices[worst]);
    values[second] = function(&mut vertices[second]);
}

/// Returns the index of the value that is preferred to all others, the first of equal ones.
fn index(values: &[f64], preferred: impl Fn(f64, f64) -> bool) -> usize {
    let mut found = 0;
    for (at, value) in values.iter().enumerate() {
        if preferred(*value, values[found]) {
            found = at;
        }
    }
    found
}
