//! Measures pirates that get five messages each and then end, on every executor and on hand-written tokio tasks.
//!
//! `whole` is the time from before the first actor is created until after the last one has ended. `delivery` is the
//! time from the FSM's first message until all of its messages have been handled. The rate counts five messages per
//! pirate in both. No pirate chats. Every run is checked: all pirates and all gold must return.

use corsair::fsm::{Form, Fsm};
use corsair::{Config, Executor};
use corsair_benches::{phases, tokio_tasks};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group,
    criterion_main,
};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A contender: a runtime and the implementation of the pirates on it.
struct Contender {
    name: &'static str,
    /// Runs the contender with the given number of pirates, and returns the times of the whole run and of the delivery.
    run: Box<dyn Fn(u32) -> (Duration, Duration)>,
    /// The largest number of pirates to measure. More pirates would take too long, or exceed the executor's limit.
    most: u32,
}

/// Returns a contender that runs corsair's pirates on one executor.
fn corsair(
    name: &'static str,
    executor: Executor,
    workers: usize,
    form: Form,
    most: u32,
) -> Contender {
    let workers = NonZeroUsize::new(workers).expect("at least one worker");
    let config = Config {
        workers,
        ..Config::default()
    };
    let run = move |population| {
        let fsm = Fsm {
            population,
            form,
            talk: Duration::ZERO,
            // On the wall clock, a million pirates that chat once a second would spend most of the time on chats, and
            // the hand-written pirates do not chat.
            chat: Some(Duration::from_secs(60)),
            ..Fsm::default()
        };
        let run = phases::run(executor, &config, fsm);
        (run.whole, run.delivery)
    };
    Contender {
        name,
        run: Box::new(run),
        most,
    }
}

fn contenders() -> Vec<Contender> {
    let by_hand = |population| {
        let times = tokio_tasks::run(population, 2);
        (times.whole, times.delivery)
    };
    let unbounded = |population| {
        let times = tokio_tasks::run_unbounded(population, 2);
        (times.whole, times.delivery)
    };
    vec![
        corsair(
            "virtual-1-handler",
            Executor::Virtual,
            1,
            Form::Handler,
            1_000_000,
        ),
        corsair(
            "virtual-2-handler",
            Executor::Virtual,
            2,
            Form::Handler,
            1_000_000,
        ),
        corsair(
            "virtual-1-async",
            Executor::Virtual,
            1,
            Form::Async,
            1_000_000,
        ),
        corsair(
            "virtual-2-async",
            Executor::Virtual,
            2,
            Form::Async,
            1_000_000,
        ),
        corsair("tokio-2-async", Executor::Tokio, 2, Form::Async, 100_000),
        Contender {
            name: "tokio-2-by-hand",
            run: Box::new(by_hand),
            most: 100_000,
        },
        Contender {
            name: "tokio-2-by-hand-unbounded",
            run: Box::new(unbounded),
            most: 100_000,
        },
        corsair("pool-2-async", Executor::Pool, 2, Form::Async, 100_000),
        corsair("threads-async", Executor::Threads, 2, Form::Async, 1_000),
    ]
}

fn whole(c: &mut Criterion) {
    let mut group = group(c, "fsm/whole");
    for contender in contenders() {
        for population in [1_000, 10_000, 100_000, 1_000_000] {
            bench(&mut group, &contender, population, |(whole, _)| whole);
        }
    }
    group.finish();
}

fn delivery(c: &mut Criterion) {
    let mut group = group(c, "fsm/delivery");
    for contender in contenders() {
        for population in [100_000, 1_000_000] {
            bench(&mut group, &contender, population, |(_, delivery)| delivery);
        }
    }
    group.finish();
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

fn bench(
    group: &mut BenchmarkGroup<'_, WallTime>,
    contender: &Contender,
    population: u32,
    phase: fn((Duration, Duration)) -> Duration,
) {
    if population > contender.most {
        return;
    }
    group.throughput(Throughput::Elements(5 * u64::from(population)));
    group.bench_with_input(
        BenchmarkId::new(contender.name, population),
        &population,
        |b, &n| {
            b.iter_custom(|iterations| (0..iterations).map(|_| phase((contender.run)(n))).sum());
        },
    );
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(1));
    targets = delivery, whole
}
criterion_main!(benches);
