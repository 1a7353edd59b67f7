//! Edges: what it costs to collect a point and emit it again, against the raw channels.
//!
//! Everywhere the same message, the same capacity, and the sum of what came out is checked. Contenders
//! that wait in the same way are compared: threads with the crossbeam channel, `async` code with
//! tokio's. `one_*` alternates collect and emit within one thread or task; `two_*` has an end on each
//! of two threads or tasks.

use corsair::edge::{self, Collector, Emitter, FanOut, Flavour, Merge, Options};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How many points an edge or channel holds.
const CAPACITY: usize = 64;
/// How many points go through per iteration.
const MANY: u64 = 100_000;
/// How many are handed over at once by those that can.
const BATCH: usize = 64;

/// What the published system measures an edge with: a point.
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

fn options(statistics: bool) -> Options {
    Options::new(CAPACITY).statistics(statistics)
}

fn each(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut run: impl FnMut() -> Check) {
    group.bench_function(name, |bencher| bencher.iter(|| run().all()));
}

/// Alternately in one thread.
fn one_blocking<F: Flavour<Point>>(
    tx: &mut Collector<Point, F>,
    rx: &mut Emitter<Point, F>,
) -> Check {
    let mut check = Check::default();
    for time in 0..MANY {
        tx.collect_blocking(point(time)).expect("there is room");
        check.add(rx.emit_blocking().expect("there is one"));
    }
    check
}

/// Alternately in one task.
async fn one_async<F: Flavour<Point>>(
    tx: &mut Collector<Point, F>,
    rx: &mut Emitter<Point, F>,
) -> Check {
    let mut check = Check::default();
    for time in 0..MANY {
        tx.collect(point(time)).await.expect("there is room");
        check.add(rx.emit().await.expect("there is one"));
    }
    check
}

fn one_thread(criterion: &mut Criterion) {
    let mut group = group(criterion, "one_thread");
    for (name, statistics) in [("ring", true), ("ring_no_statistics", false)] {
        let (mut tx, mut rx) = edge::ring(options(statistics));
        each(&mut group, name, || one_blocking(&mut tx, &mut rx));
    }
    for (name, statistics) in [("queue", true), ("queue_no_statistics", false)] {
        let (mut tx, mut rx) = edge::queue(options(statistics));
        each(&mut group, name, || one_blocking(&mut tx, &mut rx));
    }
    let (tx, rx) = crossbeam_channel::bounded(CAPACITY);
    each(&mut group, "raw_crossbeam", || {
        let mut check = Check::default();
        for time in 0..MANY {
            tx.send(point(time)).expect("the receiver lives");
            check.add(rx.recv().expect("there is one"));
        }
        check
    });
    let (mut tx, mut rx) = edge::ring(options(true));
    each(&mut group, "ring_batches", || {
        let mut check = Check::default();
        let (mut batch, mut out) = (Vec::new(), Vec::new());
        let mut times = 0..MANY;
        loop {
            batch.extend(times.by_ref().take(BATCH).map(point));
            if batch.is_empty() {
                return check;
            }
            tx.collect_all_blocking(&mut batch).expect("there is room");
            rx.emit_many_blocking(&mut out, BATCH);
            out.drain(..).for_each(|point| check.add(point));
        }
    });
}

fn one_task(criterion: &mut Criterion) {
    let mut group = group(criterion, "one_task");
    let runtime = runtime();
    for (name, statistics) in [("ring", true), ("ring_no_statistics", false)] {
        let (mut tx, mut rx) = edge::ring(options(statistics));
        each(&mut group, name, || {
            runtime.block_on(one_async(&mut tx, &mut rx))
        });
    }
    for (name, statistics) in [("queue", true), ("queue_no_statistics", false)] {
        let (mut tx, mut rx) = edge::queue(options(statistics));
        each(&mut group, name, || {
            runtime.block_on(one_async(&mut tx, &mut rx))
        });
    }
    let (tx, mut rx) = tokio::sync::mpsc::channel(CAPACITY);
    each(&mut group, "raw_tokio", || {
        runtime.block_on(async {
            let mut check = Check::default();
            for time in 0..MANY {
                tx.send(point(time)).await.expect("the receiver lives");
                check.add(rx.recv().await.expect("there is one"));
            }
            check
        })
    });
}

/// From one thread to another.
fn two_blocking<F: Flavour<Point>>(
    mut tx: Collector<Point, F>,
    mut rx: Emitter<Point, F>,
) -> Check {
    thread::scope(|scope| {
        scope.spawn(move || {
            for time in 0..MANY {
                tx.collect_blocking(point(time)).expect("no end aborts");
            }
        });
        let mut check = Check::default();
        while let Some(point) = rx.emit_blocking() {
            check.add(point);
        }
        check
    })
}

fn two_blocking_batches(mut tx: Collector<Point>, mut rx: Emitter<Point>) -> Check {
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut batch = Vec::new();
            let mut times = 0..MANY;
            loop {
                batch.extend(times.by_ref().take(BATCH).map(point));
                if batch.is_empty() {
                    return;
                }
                tx.collect_all_blocking(&mut batch).expect("no end aborts");
            }
        });
        let (mut check, mut out) = (Check::default(), Vec::new());
        while rx.emit_many_blocking(&mut out, BATCH) > 0 {
            out.drain(..).for_each(|point| check.add(point));
        }
        check
    })
}

fn two_threads(criterion: &mut Criterion) {
    let mut group = group(criterion, "two_threads");
    for (name, statistics) in [("ring", true), ("ring_no_statistics", false)] {
        each(&mut group, name, || {
            let (tx, rx) = edge::ring(options(statistics));
            two_blocking(tx, rx)
        });
    }
    each(&mut group, "queue", || {
        let (tx, rx) = edge::queue(options(true));
        two_blocking(tx, rx)
    });
    each(&mut group, "raw_crossbeam", || {
        let (tx, rx) = crossbeam_channel::bounded(CAPACITY);
        thread::scope(|scope| {
            scope.spawn(move || {
                for time in 0..MANY {
                    tx.send(point(time)).expect("the receiver lives");
                }
            });
            let mut check = Check::default();
            while let Ok(point) = rx.recv() {
                check.add(point);
            }
            check
        })
    });
    for (name, statistics) in [
        ("ring_batches", true),
        ("ring_batches_no_statistics", false),
    ] {
        each(&mut group, name, || {
            let (tx, rx) = edge::ring(options(statistics));
            two_blocking_batches(tx, rx)
        });
    }
}

/// From one task to another.
async fn two_async<F: Flavour<Point>>(
    mut tx: Collector<Point, F>,
    mut rx: Emitter<Point, F>,
) -> Check {
    let sender = tokio::spawn(async move {
        for time in 0..MANY {
            tx.collect(point(time)).await.expect("no end aborts");
        }
    });
    let receiver = tokio::spawn(async move {
        let mut check = Check::default();
        while let Some(point) = rx.emit().await {
            check.add(point);
        }
        check
    });
    sender.await.expect("it does not panic");
    receiver.await.expect("it does not panic")
}

async fn two_async_batches(mut tx: Collector<Point>, mut rx: Emitter<Point>) -> Check {
    let sender = tokio::spawn(async move {
        let mut batch = Vec::new();
        let mut times = 0..MANY;
        loop {
            batch.extend(times.by_ref().take(BATCH).map(point));
            if batch.is_empty() {
                return;
            }
            tx.collect_all(&mut batch).await.expect("no end aborts");
        }
    });
    let receiver = tokio::spawn(async move {
        let (mut check, mut out) = (Check::default(), Vec::new());
        while rx.emit_many(&mut out, BATCH).await > 0 {
            out.drain(..).for_each(|point| check.add(point));
        }
        check
    });
    sender.await.expect("it does not panic");
    receiver.await.expect("it does not panic")
}

fn two_tasks(criterion: &mut Criterion) {
    let mut group = group(criterion, "two_tasks");
    let runtime = runtime();
    for (name, statistics) in [("ring", true), ("ring_no_statistics", false)] {
        each(&mut group, name, || {
            let (tx, rx) = edge::ring(options(statistics));
            runtime.block_on(two_async(tx, rx))
        });
    }
    each(&mut group, "queue", || {
        let (tx, rx) = edge::queue(options(true));
        runtime.block_on(two_async(tx, rx))
    });
    each(&mut group, "raw_tokio", || {
        let (tx, mut rx) = tokio::sync::mpsc::channel(CAPACITY);
        runtime.block_on(async {
            let sender = tokio::spawn(async move {
                for time in 0..MANY {
                    tx.send(point(time)).await.expect("the receiver lives");
                }
            });
            let receiver = tokio::spawn(async move {
                let mut check = Check::default();
                while let Some(point) = rx.recv().await {
                    check.add(point);
                }
                check
            });
            sender.await.expect("it does not panic");
            receiver.await.expect("it does not panic")
        })
    });
    for (name, statistics) in [
        ("ring_batches", true),
        ("ring_batches_no_statistics", false),
    ] {
        each(&mut group, name, || {
            let (tx, rx) = edge::ring(options(statistics));
            runtime.block_on(two_async_batches(tx, rx))
        });
    }
}

/// Every point to ten edges, and from them merged into one again; a time per point sent to all.
fn fan_out(criterion: &mut Criterion) {
    const WAYS: usize = 10;
    let mut group = group(criterion, "fan_out_to_10_and_merge");
    for (name, statistics) in [("ring", true), ("ring_no_statistics", false)] {
        let (mut all, mut merged) = (FanOut::new(), Merge::new());
        for _ in 0..WAYS {
            let (tx, rx) = edge::ring(options(statistics));
            all.add(tx);
            merged.add(rx);
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut times = 0;
                for time in 0..MANY {
                    all.collect_blocking(Arc::new(point(time)))
                        .expect("there are edges");
                    while let Ok(point) = merged.try_emit() {
                        times += point.time;
                    }
                }
                assert_eq!(black_box(times), WAYS as u64 * MANY * (MANY - 1) / 2);
            });
        });
    }
    let channels: Vec<_> = (0..WAYS)
        .map(|_| crossbeam_channel::bounded(CAPACITY))
        .collect();
    group.bench_function("raw_crossbeam", |bencher| {
        bencher.iter(|| {
            let mut times = 0;
            for time in 0..MANY {
                let point = Arc::new(point(time));
                for (tx, _) in &channels {
                    tx.send(Arc::clone(&point)).expect("the receiver lives");
                }
                for (_, rx) in &channels {
                    times += rx.recv().expect("there is one").time;
                }
            }
            assert_eq!(black_box(times), WAYS as u64 * MANY * (MANY - 1) / 2);
        });
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime")
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("edge/{name}"));
    group
        .throughput(Throughput::Elements(MANY))
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    group
}

criterion_group!(
    benches,
    one_thread,
    one_task,
    two_threads,
    two_tasks,
    fan_out
);
criterion_main!(benches);
