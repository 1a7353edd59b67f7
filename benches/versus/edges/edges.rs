//! Compares edges with other channels: with one sender and with four senders, on threads and on tasks, one message at a
//! time and in batches.
//!
//! All contenders use the same message type and capacity, and the sum of the received values is checked. Contenders
//! without batches send one message at a time, and receive buffered messages in the fastest way that they support.

#[path = "../../src/points.rs"]
mod points;
mod tasks;
mod threads;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use points::{BATCH, CAPACITY, Check, MANY, Point, point};
use std::time::Duration;

/// Returns the points that one of several senders sends.
fn share(sender: u64, senders: u64) -> impl Iterator<Item = Point> {
    (0..MANY)
        .skip(sender as usize)
        .step_by(senders as usize)
        .map(point)
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
