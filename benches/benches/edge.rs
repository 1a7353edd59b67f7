//! Measures the time to send a point over an edge and to receive it, compared with other channels.
//!
//! All contenders use the same message type and capacity. The sum of the received values is checked. Only contenders
//! that wait in the same way are compared: blocking threads with the crossbeam channel, `async` code with tokio's
//! channel. Sending and receiving alternate within one thread or task. `benches/versus/edges` compares ends on separate
//! threads and tasks with other channels.

use corsair::edge::{self, FanOut, Flavour, Merge, Options, Receiver, Sender};
use corsair_benches::points::{BATCH, CAPACITY, Check, MANY, Point, point};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

fn options(statistics: bool) -> Options {
    Options::new(CAPACITY).statistics(statistics)
}

fn each(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut run: impl FnMut() -> Check) {
    group.bench_function(name, |bencher| bencher.iter(|| run().all()));
}

/// Sends and receives alternately in one thread.
fn one_blocking<F: Flavour<Point>>(
    tx: &mut Sender<Point, F>,
    rx: &mut Receiver<Point, F>,
) -> Check {
    let mut check = Check::default();
    for time in 0..MANY {
        tx.send_blocking(point(time)).expect("there is room");
        check.add(rx.recv_blocking().expect("there is one"));
    }
    check
}

/// Sends and receives alternately in one task.
async fn one_async<F: Flavour<Point>>(
    tx: &mut Sender<Point, F>,
    rx: &mut Receiver<Point, F>,
) -> Check {
    let mut check = Check::default();
    for time in 0..MANY {
        tx.send(point(time)).await.expect("there is room");
        check.add(rx.recv().await.expect("there is one"));
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
            tx.send_all_blocking(&mut batch).expect("there is room");
            rx.recv_many_blocking(&mut out, BATCH);
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

/// Sends every point to ten edges, and merges the edges again. The reported time is the time for one point and all ten
/// edges.
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
                    all.send_blocking(Arc::new(point(time)))
                        .expect("there are edges");
                    while let Ok(point) = merged.try_recv() {
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
    group.throughput(Throughput::Elements(MANY));
    group
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(20, Duration::from_secs(2));
    targets = one_thread, one_task, fan_out
}
criterion_main!(benches);
