//! Curves through measured percentiles.
//!
//! Between two percentiles the curve is lognormal: the logarithm of the value is a linear function of the standard
//! normal quantile. The line is extended beyond the first and the last percentile, unless the minimum (0) or the
//! maximum (100) is given. Between a given minimum or maximum and the nearest percentile, the logarithm is uniformly
//! distributed. So no drawn value exceeds a recorded maximum.

use super::normal::{normal_probability, normal_quantile};

/// Points of a curve in ascending order: standard normal quantile, logarithm of the value. The minimum and the maximum,
/// if they are known, have the quantiles minus and plus infinity.
type Points<'a> = &'a [(f64, f64)];

/// Returns the point for a percentage and its value.
pub(super) fn point(percentage: f64, value: f64) -> (f64, f64) {
    let z = match percentage {
        0.0 => f64::NEG_INFINITY,
        100.0 => f64::INFINITY,
        inner => normal_quantile(inner / 100.0),
    };
    (z, libm::log(value))
}

/// True if there are enough points for a curve: two percentiles, or the minimum and the maximum.
pub(super) fn is_curve(points: Points<'_>) -> bool {
    let curve = Curve::of(points);
    curve.inner.len() >= 2 || curve.least.is_some() && curve.most.is_some()
}

/// Returns the value below which the fraction `p` of all values lies.
pub(super) fn quantile(points: Points<'_>, p: f64) -> f64 {
    let curve = Curve::of(points);
    let log = match curve.end_at(|piece| (piece.from..=piece.to).contains(&p)) {
        Some(piece) if piece.to > piece.from => {
            piece.low + (piece.high - piece.low) * (p - piece.from) / (piece.to - piece.from)
        }
        Some(piece) => piece.high,
        None => along(curve.inner, normal_quantile(p)),
    };
    libm::exp(log)
}

/// Returns the fraction of the values that do not exceed `x`.
pub(super) fn probability(points: Points<'_>, x: f64) -> f64 {
    let (curve, log) = (Curve::of(points), libm::log(x));
    if curve.most.is_some_and(|most| log >= most) {
        return 1.0;
    }
    match curve.end_at(|piece| (piece.low..piece.high).contains(&log)) {
        Some(piece) => {
            let part = (log - piece.low) / (piece.high - piece.low);
            piece.from + (piece.to - piece.from) * part
        }
        None => {
            let turned: Vec<_> = curve.inner.iter().map(|&(z, log)| (log, z)).collect();
            match turned.as_slice() {
                [] => 0.0,
                [(_, z)] => normal_probability(*z),
                turned => normal_probability(along(turned, log)),
            }
        }
    }
}

/// Returns the smallest possible value: the minimum if it is given, otherwise 0.
pub(super) fn least(points: Points<'_>) -> f64 {
    Curve::of(points).least.map_or(0.0, libm::exp)
}

/// Returns the mean of the `power`-th powers of the values, as a sum over the pieces of the curve.
pub(super) fn moment(points: Points<'_>, power: f64) -> f64 {
    let curve = Curve::of(points);
    let ends = curve.ends().map(|piece| {
        let (low, high) = (power * piece.low, power * piece.high);
        let mean = match high - low {
            0.0 => libm::exp(low),
            width => (libm::exp(high) - libm::exp(low)) / width,
        };
        (piece.to - piece.from) * mean
    });
    let inner = curve.inner.windows(2).enumerate().map(|(number, pair)| {
        // A part of a lognormal distribution.
        let ((z0, y0), (z1, y1)) = (pair[0], pair[1]);
        let slope = power * (y1 - y0) / (z1 - z0);
        let height = power * y0 - slope * z0;
        let below = match number == 0 && curve.least.is_none() {
            true => 0.0,
            false => normal_probability(z0 - slope),
        };
        let above = match number + 2 == curve.inner.len() && curve.most.is_none() {
            true => 1.0,
            false => normal_probability(z1 - slope),
        };
        libm::exp(height + slope * slope / 2.0) * (above - below)
    });
    ends.chain(inner).sum()
}

/// A piece of the curve next to the minimum or maximum: the range of its probabilities and the range of its logarithms.
struct End {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
}

struct Curve<'a> {
    least: Option<f64>,
    inner: Points<'a>,
    most: Option<f64>,
}

impl<'a> Curve<'a> {
    fn of(points: Points<'a>) -> Curve<'a> {
        let (mut inner, mut least, mut most) = (points, None, None);
        if let [(f64::NEG_INFINITY, log), rest @ ..] = inner {
            (least, inner) = (Some(*log), rest);
        }
        if let [rest @ .., (f64::INFINITY, log)] = inner {
            (most, inner) = (Some(*log), rest);
        }
        Curve { least, inner, most }
    }

    /// Iterates over the pieces that end at the smallest or greatest value, if it is known.
    fn ends(&self) -> impl Iterator<Item = End> {
        let first = self
            .inner
            .first()
            .map(|&(z, log)| (normal_probability(z), log));
        let last = self
            .inner
            .last()
            .map(|&(z, log)| (normal_probability(z), log));
        let below = self.least.and_then(|low| {
            let (to, high) = first.or(self.most.map(|most| (1.0, most)))?;
            Some(End {
                from: 0.0,
                to,
                low,
                high,
            })
        });
        let above = self.most.and_then(|high| {
            let (from, low) = last?;
            Some(End {
                from,
                to: 1.0,
                low,
                high,
            })
        });
        below.into_iter().chain(above)
    }

    fn end_at(&self, is_meant: impl Fn(&End) -> bool) -> Option<End> {
        self.ends().find(is_meant)
    }
}

/// Returns the height of the polyline through `points` at `x`, with both ends extended.
fn along(points: &[(f64, f64)], x: f64) -> f64 {
    let last = points.len() - 2;
    let segment = points[1..=last].partition_point(|point| point.0 < x);
    let ((x0, y0), (x1, y1)) = (points[segment], points[segment + 1]);
    if x0 == x1 {
        // A step: the same value at two percentiles.
        return match x.partial_cmp(&x0) {
            Some(std::cmp::Ordering::Less) => f64::NEG_INFINITY,
            Some(std::cmp::Ordering::Greater) => f64::INFINITY,
            _ => y1,
        };
    }
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0))
}
