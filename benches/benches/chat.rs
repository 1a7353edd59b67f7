//! Measures ten virtual seconds in which pirates chat (timers, name drops and gifts), from the end of the delivery to
//! the first goodbye, in events per second of wall-clock time.
//!
//! `heap` is a simulator with one binary heap of events that runs the same pirates. With a million pirates it simulates
//! only one virtual second, because ten would take too long.

use corsair::fsm::{Form, Fsm};
use corsair::{Config, Executor};
use corsair_benches::event_heap::Simulation;
use corsair_benches::measuring::simulated;
use corsair_benches::phases;
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group,
    criterion_main,
};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const TALK: Duration = Duration::from_secs(10);

fn chat(c: &mut Criterion) {
    let mut group = c.benchmark_group("chat");
    group.sampling_mode(SamplingMode::Flat);
    for population in [1_000, 10_000, 100_000, 1_000_000] {
        for (name, form) in [("handler", Form::Handler), ("async", Form::Async)] {
            for workers in [1, 2] {
                let id = BenchmarkId::new(format!("virtual-{workers}-{name}"), population);
                bench_executor(&mut group, id, workers, form, population);
            }
        }
    }
    for population in [1_000, 10_000, 100_000] {
        let id = BenchmarkId::new("heap", population);
        bench_heap(&mut group, id, population, simulated(TALK));
    }
    let one_second = BenchmarkId::new("heap-one-second", 1_000_000);
    bench_heap(&mut group, one_second, 1_000_000, Duration::from_secs(1));
    group.finish();
}

fn bench_executor(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    workers: usize,
    form: Form,
    population: u32,
) {
    let workers = NonZeroUsize::new(workers).expect("at least one worker");
    let config = Config {
        workers,
        ..Config::default()
    };
    let run = || {
        let fsm = Fsm {
            population,
            form,
            talk: simulated(TALK),
            ..Fsm::default()
        };
        phases::run(Executor::Virtual, &config, fsm)
    };
    // Every repetition has the same number of events.
    let events = run().talk_events();
    group.throughput(Throughput::Elements(events));
    group.bench_function(id, |b| {
        b.iter_custom(|iterations| {
            let talk = |_| {
                let run = run();
                assert_eq!(run.talk_events(), events);
                run.talk
            };
            (0..iterations).map(talk).sum()
        });
    });
}

fn bench_heap(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    population: u32,
    talk: Duration,
) {
    let run = || {
        let mut simulation = Simulation::new(population);
        let begin = Instant::now();
        let events = simulation.talk(talk);
        let time = begin.elapsed();
        simulation.finish();
        (time, events)
    };
    let (_, events) = run();
    group.throughput(Throughput::Elements(events));
    group.bench_function(id, |b| {
        b.iter_custom(|iterations| {
            let talk = |_| {
                let (time, same) = run();
                assert_eq!(same, events);
                time
            };
            (0..iterations).map(talk).sum()
        });
    });
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(1));
    targets = chat
}
criterion_main!(benches);
