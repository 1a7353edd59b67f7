//! The messages that are sent over edges and channels in the benchmarks, here and in
//! `benches/versus/edges`.

use std::hint::black_box;

/// The capacity of an edge or channel in points.
pub const CAPACITY: usize = 64;
/// The number of points per iteration, from all senders together.
pub const MANY: u64 = 100_000;
/// The number of points that are sent or received at once, if the contender supports it.
pub const BATCH: usize = 64;

/// A point of 16 bytes, with which the published system measures an edge.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The timestamp, which is different for every point of a run; the first is 0.
    pub time: u64,
    /// The value of the point.
    pub value: f64,
}

/// Returns the point with this timestamp.
pub fn point(time: u64) -> Point {
    Point {
        time,
        value: time as f64,
    }
}

/// Checks that all points have arrived, in any order.
#[derive(Debug, Default)]
pub struct Check {
    times: u64,
    values: f64,
}

impl Check {
    /// Records that a point has arrived.
    #[inline]
    pub fn add(&mut self, point: Point) {
        self.times += point.time;
        self.values += point.value;
    }

    /// Panics unless every point has been counted.
    pub fn all(&self) {
        assert_eq!(black_box(self.times), MANY * (MANY - 1) / 2);
        assert_eq!(black_box(self.values), (MANY * (MANY - 1) / 2) as f64);
    }
}
