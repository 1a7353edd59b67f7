//! Edges beside other channels: one to one and four to one, threads and tasks, one message at a time and in batches.
//!
//! Everywhere the same message, the same capacity, and the sum of what came out is checked. Contenders without batches
//! send one by one, and receive what is there by the quickest way that they have.

mod tasks;
mod threads;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

/// How many messages an edge or channel holds.
const CAPACITY: usize = 64;
/// How many messages go through per iteration, from all senders together.
const MANY: u64 = 100_000;
/// How many are handed over at once by those that can.
const BATCH: usize = 64;

/// What travels: 16 bytes.
#[derive(Clone, Copy)]
struct Point {
    time: u64,
    value: f64,
}

fn point(time: u64) -> Point {
    Point {
        time,
        value: time as f64,
    }
}

/// The points of one of several senders.
fn share(sender: u64, senders: u64) -> impl Iterator<Item = Point> {
    (0..MANY)
        .skip(sender as usize)
        .step_by(senders as usize)
        .map(point)
}

/// Checks that all points have come, in any order.
#[derive(Default)]
struct Check {
    times: u64,
    values: f64,
}

impl Check {
    #[inline]
    fn add(&mut self, point: Point) {
        self.times += point.time;
        self.values += point.value;
    }

    fn all(&self) {
        assert_eq!(black_box(self.times), MANY * (MANY - 1) / 2);
        assert_eq!(black_box(self.values), (MANY * (MANY - 1) / 2) as f64);
    }
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .throughput(Throughput::Elements(MANY))
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(1_200));
    group
}

criterion_group!(benches, threads::benches, tasks::benches);
criterion_main!(benches);
