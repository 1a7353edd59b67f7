//! Measures bulk marshalling with every strategy, and with one to ten times as many workers as there are cores.
//!
//! A run marshals 1,000 generated people into a batch that is reused by all runs. Documents are
//! compared with those of the serial strategy before anything is timed. The Go counterpart, with
//! the same people, is `benches/versus/go/marshal`.

use corsair_serial::{
    Batch, Chunked, Format, Json, ParallelTasks, ParallelThreads, Pooled, Postcard, Serial, Sonic,
    Strategy,
};
use corsair_testing::people::{self, Person};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use std::hint::black_box;
use std::thread::available_parallelism;
use std::time::Duration;

/// The number of records in a run.
const RECORDS: usize = 1000;

/// The seed of the records.
const SEED: u64 = 7;

/// Measures one cell of the grid: checks the documents of the strategy, then times it.
fn cell<S: Strategy, F: Format>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    strategy: &S,
    format: &F,
    people: &[Person],
) {
    let expected = Serial
        .marshal(format, people)
        .expect("people can be marshalled");
    let mut batch = Batch::new();
    strategy
        .marshal_into(format, people, &mut batch)
        .expect("people can be marshalled");
    assert!(
        batch.iter().eq(expected.iter()),
        "{} differs",
        strategy.name()
    );
    group.throughput(Throughput::Bytes(batch.size() as u64));
    let id = BenchmarkId::new(strategy.name(), strategy.workers());
    group.bench_function(id, |bencher| {
        bencher.iter(|| strategy.marshal_into(format, black_box(people), &mut batch));
    });
    assert!(
        batch.iter().eq(expected.iter()),
        "{} differs",
        strategy.name()
    );
}

/// Measures the configurations of the published programs, and all numbers of workers.
fn grid(criterion: &mut Criterion) {
    let people = people::generate(RECORDS, SEED);
    let cores = available_parallelism().map_or(1, usize::from);
    let mut group = criterion.benchmark_group("marshal/json");
    let mut one = Vec::new();
    group.bench_function("bare serde_json loop", |bencher| {
        bencher.iter(|| {
            one.clear();
            for person in black_box(&people) {
                serde_json::to_writer(&mut one, person).expect("people can be marshalled");
            }
            black_box(one.len())
        });
    });
    cell(&mut group, &Serial, &Json, &people);
    for workers in (1..=10).map(|times| times * cores) {
        cell(&mut group, &ParallelThreads::new(workers), &Json, &people);
        let tasks = ParallelTasks::new(workers).expect("threads can be started");
        cell(&mut group, &tasks, &Json, &people);
        let pooled = Pooled::new(workers).expect("threads can be started");
        cell(&mut group, &pooled, &Json, &people);
        let chunked = Chunked::new(workers).expect("threads can be started");
        cell(&mut group, &chunked, &Json, &people);
    }
    group.finish();
}

/// Measures the other formats, with the serial and the recommended strategy.
fn formats(criterion: &mut Criterion) {
    let people = people::generate(RECORDS, SEED);
    let cores = available_parallelism().map_or(1, usize::from);
    let chunked = Chunked::new(cores).expect("threads can be started");
    let mut group = criterion.benchmark_group("marshal/sonic");
    cell(&mut group, &Serial, &Sonic, &people);
    cell(&mut group, &chunked, &Sonic, &people);
    group.finish();
    let mut group = criterion.benchmark_group("marshal/postcard");
    cell(&mut group, &Serial, &Postcard, &people);
    cell(&mut group, &chunked, &Postcard, &people);
    group.finish();
}

/// Measures small batches: the strategy that decides by size should be as fast as the serial one.
fn few(criterion: &mut Criterion) {
    let cores = available_parallelism().map_or(1, usize::from);
    let chunked = Chunked::new(cores).expect("threads can be started");
    for count in [1, 10, 100] {
        let people = people::generate(count, SEED);
        let mut group = criterion.benchmark_group(format!("marshal/{count} values"));
        cell(&mut group, &Serial, &Json, &people);
        cell(&mut group, &chunked, &Json, &people);
        group.finish();
    }
}

criterion_group! {
    name = marshal;
    config = corsair_benches::for_about!(20, Duration::from_millis(600));
    targets = grid, formats, few
}
criterion_main!(marshal);
