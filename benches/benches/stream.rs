//! Measures the time from one `POST /write` of 5000 lines, which calls the handler without a socket, until all tasks
//! have processed the points. The tasks and lines come from kapacitor's `integrations/benchmark_test.go`.
//!
//! Throughput is in deliveries: a delivery is a point that one task receives. After the timed part, every task is asked
//! for the number of its points. Starting and stopping the engine is not timed either.

use corsair_stream::engine::EngineOptions;
use corsair_stream_load::Workload;
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group,
    criterion_main,
};
use std::time::Duration;
use tokio::runtime::Runtime;

const FROM: &str = "stream | from().measurement('m1')";
const COUNT: &str = "stream | from().measurement('m1') | window(100s, every 100s) | count(value)";
const WHERE: &str = "stream | from().measurement('m1') | where(value > 2500)";
const ALERT: &str = "stream | from().measurement('m1') \
    | alert().info(value > 10).warn(value > 20).crit(value > 30)";
const JOIN: &str = "var m1 = stream | from().measurement('m1')
    var m2 = stream | from().measurement('m2')
    m1 | join(m2).as('m1', 'm2').tolerance(1s) | eval(m1.value * m2.value).as('value')";

const TASKS: [usize; 3] = [10, 100, 1000];
const LINES: usize = 5000;

fn run(group: &mut BenchmarkGroup<'_, WallTime>, id: BenchmarkId, workload: &Workload) {
    let runtime = Runtime::new().expect("a runtime");
    let deliveries = workload.delivered * workload.tasks as u64;
    let lines = workload
        .bodies
        .iter()
        .map(|body| body.iter().filter(|&&b| b == b'\n').count());
    group.throughput(Throughput::Elements(match deliveries {
        0 => lines.sum::<usize>() as u64,
        _ => deliveries,
    }));
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|rounds| {
            let once = || runtime.block_on(workload.run(EngineOptions::default()));
            (0..rounds).map(|_| once().expect("the work is done")).sum()
        });
    });
}

fn matching(criterion: &mut Criterion) {
    let mut group = flat(criterion, "stream/match");
    for tasks in TASKS {
        let workload = Workload::new(tasks, FROM, "m1", LINES);
        run(&mut group, BenchmarkId::from_parameter(tasks), &workload);
    }
}

fn none(criterion: &mut Criterion) {
    let mut group = flat(criterion, "stream/none");
    for tasks in TASKS {
        let workload = Workload::new(tasks, FROM, "m2", LINES);
        run(&mut group, BenchmarkId::from_parameter(tasks), &workload);
    }
}

/// Measures many tasks with the workload of kapacitor's benchmark.
fn packets(criterion: &mut Criterion) {
    let mut group = flat(criterion, "stream/packets");
    for tasks in TASKS {
        for (name, measurement) in [("match", "packets"), ("none", "other")] {
            let text = format!("stream | from().measurement('{measurement}')");
            let workload = Workload::packets(tasks, &text);
            run(&mut group, BenchmarkId::new(name, tasks), &workload);
        }
    }
}

/// Measures tasks that process every point.
fn work(criterion: &mut Criterion) {
    let mut group = flat(criterion, "stream/work");
    for (name, text) in [("where", WHERE), ("count", COUNT), ("alert", ALERT)] {
        let workload = Workload::new(100, text, "m1", LINES);
        run(&mut group, BenchmarkId::new(name, 100), &workload);
    }
    let mut join = Workload::new(100, JOIN, "m1", LINES);
    join.bodies
        .extend(Workload::new(100, JOIN, "m2", LINES).bodies);
    run(&mut group, BenchmarkId::new("join", 100), &join);
}

fn flat<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(20, Duration::from_secs(2));
    targets = matching, none, packets, work
}
criterion_main!(benches);
