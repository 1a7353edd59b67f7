//! What travels over edges and channels in benches, here and in `benches/versus/edges`.

use std::hint::black_box;

/// How many points an edge or channel holds.
pub const CAPACITY: usize = 64;
/// How many points go through per iteration, from all senders together.
pub const MANY: u64 = 100_000;
/// How many are handed over at once by those that can.
pub const BATCH: usize = 64;

/// What the published system measures an edge with: a point, 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// From 0, each once.
    pub time: u64,
    /// The same.
    pub value: f64,
}

/// The point of a time.
pub fn point(time: u64) -> Point {
    Point {
        time,
        value: time as f64,
    }
}

/// Checks that all points have come, in any order.
#[derive(Debug, Default)]
pub struct Check {
    times: u64,
    values: f64,
}

impl Check {
    /// A point has come.
    #[inline]
    pub fn add(&mut self, point: Point) {
        self.times += point.time;
        self.values += point.value;
    }

    /// Panics unless all have.
    pub fn all(&self) {
        assert_eq!(black_box(self.times), MANY * (MANY - 1) / 2);
        assert_eq!(black_box(self.values), (MANY * (MANY - 1) / 2) as f64);
    }
}
