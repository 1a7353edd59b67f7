//! A rate over time, and the due time of its n-th request.

use serde::Serialize;

/// A piece of a curve, in which the rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Piece {
    /// The start in seconds.
    from: f64,
    to: f64,
    /// The rates at the start and at the end of the piece, in requests per second.
    first: f64,
    last: f64,
    /// The number of requests that are due before the piece.
    before: f64,
}

impl Piece {
    /// Returns the number of requests that are due within the piece.
    fn requests(&self) -> f64 {
        if self.to.is_infinite() {
            if self.first > 0.0 { f64::INFINITY } else { 0.0 }
        } else {
            (self.first + self.last) / 2.0 * (self.to - self.from)
        }
    }
}

/// A rate over time, in pieces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Curve {
    pieces: Vec<Piece>,
}

impl Curve {
    /// Creates a constant rate.
    pub(crate) fn constant(rate: f64) -> Curve {
        Curve {
            pieces: vec![Piece {
                from: 0.0,
                to: f64::INFINITY,
                first: rate,
                last: rate,
                before: 0.0,
            }],
        }
    }

    /// True if the rate never changes.
    pub(crate) fn is_constant(&self) -> bool {
        let first = self.pieces.first();
        self.pieces.len() == 1 && first.is_some_and(|piece| piece.from == 0.0)
    }

    /// Creates a curve through points: seconds, rate, and true if the rate changes linearly from the previous
    /// point. After the last point the rate is constant.
    pub(crate) fn new(points: &[(f64, f64, bool)]) -> Result<Curve, String> {
        let Some(&(end, rate, _)) = points.last() else {
            return Err("the profile has no points; give at least one".to_owned());
        };
        let mut pieces = Vec::with_capacity(points.len() + 1);
        let (mut from, mut first, mut before) = (0.0, 0.0, 0.0);
        let mut push = |from: f64, to: f64, first: f64, last: f64| {
            if to > from {
                let piece = Piece {
                    from,
                    to,
                    first,
                    last,
                    before,
                };
                before += piece.requests();
                pieces.push(piece);
            }
        };
        for &(at, rate, ramp) in points {
            if at < from {
                return Err(format!(
                    "the profile goes back in time at {at}s; give its points in order"
                ));
            }
            push(from, at, first, if ramp { rate } else { first });
            (from, first) = (at, rate);
        }
        push(end, f64::INFINITY, rate, rate);
        Ok(Curve { pieces })
    }

    /// Returns the number of requests that are due until a time in seconds.
    pub(crate) fn due(&self, at: f64) -> f64 {
        let place = self.pieces.partition_point(|piece| piece.to <= at);
        let Some(piece) = self.pieces.get(place).filter(|piece| piece.from <= at) else {
            return self.pieces.last().map_or(0.0, |last| last.before);
        };
        let after = at - piece.from;
        let slope = if piece.to.is_infinite() {
            0.0
        } else {
            (piece.last - piece.first) / (piece.to - piece.from)
        };
        piece.before + after * (piece.first + slope * after / 2.0)
    }

    /// Returns the time in seconds at which this number of requests has become due; `None` if that never happens.
    pub(crate) fn time_of(&self, requests: f64) -> Option<f64> {
        let is_before = |piece: &Piece| piece.before + piece.requests() < requests;
        let place = self.pieces.partition_point(is_before);
        let piece = self.pieces.get(place)?;
        let left = (requests - piece.before).max(0.0);
        if piece.first == piece.last {
            let after = if left == 0.0 { 0.0 } else { left / piece.first };
            return Some((piece.from + after).min(piece.to));
        }
        let slope = (piece.last - piece.first) / (piece.to - piece.from);
        // The time at which the area under the line is `left`: the solution of a quadratic equation, written without a
        // difference of nearly equal numbers.
        let root = (piece.first * piece.first + 2.0 * slope * left)
            .max(0.0)
            .sqrt();
        let after = if left == 0.0 {
            0.0
        } else {
            2.0 * left / (piece.first + root)
        };
        Some((piece.from + after).min(piece.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_due_at_equal_distances() {
        let curve = Curve::constant(4.0);
        assert_eq!(curve.time_of(1.0), Some(0.25));
        assert_eq!(curve.time_of(1e9), Some(2.5e8));
        assert_eq!(Curve::constant(0.0).time_of(1.0), None);
    }

    #[test]
    fn steps_ramps_and_silence_are_where_the_profile_has_them() {
        let points = [(1.0, 10.0, false), (3.0, 30.0, true), (4.0, 0.0, false)];
        let curve = Curve::new(&points).unwrap();
        // No requests in the first second, 40 in the ramp, 30 in the second after it, then none.
        assert!((curve.time_of(40.0).unwrap() - 3.0).abs() < 1e-9);
        assert!((curve.time_of(70.0).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(curve.time_of(70.1), None);
        // Half-way through the ramp (10 + 20) / 2 · 1 = 15 requests have been due.
        assert!((curve.time_of(15.0).unwrap() - 2.0).abs() < 1e-9);
        let times: Vec<f64> = (0..=70).map(|n| curve.time_of(n.into()).unwrap()).collect();
        assert!(times.is_sorted());
        assert!(times[1] > 1.0);
    }

    #[test]
    fn what_is_due_at_a_time_is_due_until_it() {
        let points = [(1.0, 10.0, false), (3.0, 30.0, true), (4.0, 5.0, false)];
        let curve = Curve::new(&points).unwrap();
        for requests in [0.5, 3.0, 17.0, 40.0, 69.0, 75.0, 1e6] {
            let at = curve.time_of(requests).unwrap();
            let due = curve.due(at);
            assert!((due - requests).abs() < 1e-6 * requests, "{due} {requests}");
        }
        assert_eq!(curve.due(0.5), 0.0);
    }

    #[test]
    fn a_falling_ramp_ends_at_zero() {
        let curve = Curve::new(&[(0.0, 20.0, false), (2.0, 0.0, true)]).unwrap();
        assert!((curve.time_of(20.0).unwrap() - 2.0).abs() < 1e-6);
        assert!((curve.time_of(15.0).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(curve.time_of(20.5), None);
    }
}
