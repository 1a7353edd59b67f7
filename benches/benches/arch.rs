//! Benchmarks of architectures. The first one measures netflixoss under load: simulated messages per second of
//! wall-clock time, on one worker, with and without flows (which a separate thread writes). The second one measures a
//! chain of ten services with timeouts and retries. The third one measures a complete run of 6,000 instances, from the
//! definition to the graph. The last one learns a definition from the traces of that chain.
//!
//! The timed part of the first three is a complete run, including its output. At a scale of 10,000 %, eight of ten messages introduce
//! instances to each other; at smaller scales, nearly all messages belong to the load.

use corsair::{Config, Executor, Report};
use corsair_arch::{KINDS, Plan, Scale, Topology, learn, read, read_text, simulate};
use corsair_benches::measuring::simulated;
use corsair_observe::{Clock, FlowFormat, GraphFormat, Observer, Settings};
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn topology(percent: u32) -> Topology {
    let checked = read("netflixoss", Path::new("")).expect("a built-in definition");
    let regions = 1;
    Topology::new(&checked, Scale { regions, percent }).expect("a scale that fits")
}

/// The output files of a run.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    Nothing,
    Flows,
    Graph,
}

/// Runs netflixoss. Returns its report and the duration of the run, including its output.
fn run(
    topology: &Topology,
    workers: usize,
    duration: Duration,
    chat: Duration,
    written: Written,
) -> (Report, Duration) {
    let out = tempfile::tempdir().expect("a temporary directory");
    let config = Config {
        workers: NonZeroUsize::new(workers).expect("at least one worker"),
        ..Config::default()
    };
    let clock = Clock::Virtual(config.progress.clone());
    let mut settings = Settings::new("netflixoss", clock);
    settings.kinds = KINDS;
    settings.out = out.path().to_owned();
    match written {
        Written::Nothing => {}
        Written::Flows => {
            settings.flows = vec![FlowFormat::ZipkinV1];
            settings.times = true;
        }
        Written::Graph => settings.graphs = vec![GraphFormat::Json],
    }
    let topology = topology.clone();
    let begin = Instant::now();
    let observer = (written != Written::Nothing)
        .then(|| Observer::start(settings).expect("a directory to write to"));
    let plan = Plan {
        duration,
        chat,
        recorder: observer
            .as_ref()
            .map(Observer::recorder)
            .unwrap_or_default(),
        ..Plan::default()
    };
    let (report, totals) =
        simulate(Executor::Virtual, &config, topology, &plan).expect("a run that completes");
    let written = observer.map(|observer| observer.finish().expect("files"));
    let time = begin.elapsed();
    assert!(totals.errors() < totals.requests() / 10 + 1);
    assert!(written.is_none_or(|written| !written.files.is_empty()));
    (report, time)
}

fn load(c: &mut Criterion) {
    let mut group = c.benchmark_group("arch-load");
    group.sampling_mode(SamplingMode::Flat);
    // One request every ten microseconds: 100,000 per second, each with about ten messages.
    let (duration, chat) = (simulated(Duration::from_secs(1)), Duration::from_micros(10));
    for percent in [100, 10_000] {
        let topology = topology(percent);
        for (name, written) in [("plain", Written::Nothing), ("flows", Written::Flows)] {
            let loaded = || run(&topology, 1, duration, chat, written);
            let messages = loaded().0.delivered();
            group.throughput(Throughput::Elements(messages));
            group.bench_function(BenchmarkId::new(name, percent), |b| {
                b.iter_custom(|iterations| {
                    let timed = |_| {
                        let (report, time) = loaded();
                        assert_eq!(report.delivered(), messages);
                        time
                    };
                    (0..iterations).map(timed).sum()
                });
            });
        }
    }
    group.finish();
}

/// Returns ten services, each of which works and calls the next, with a timeout and retries; some calls fail.
fn chain_of_ten() -> Topology {
    let calls = r#"{"timeout": "100ms", "retries": {"most": 2, "backoff": "2ms", "jitter": 0.5}}"#;
    let mut services: Vec<String> = (0..9)
        .map(|number| {
            let next = number + 1;
            format!(
                r#"{{"name": "s{number}", "package": "service", "count": 3, "regions": 1,
                "calls": {{"s{next}": {calls}}},
                "endpoints": [{{"name": "get", "steps": [{{"work": {{"exponential": "500us"}}}}, {{"call": "s{next}"}}]}}]}}"#
            )
        })
        .collect();
    services.push(
        r#"{"name": "s9", "package": "service", "count": 3, "regions": 1, "error_rate": 0.001,
        "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "500us"}}]}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["s0"]}"#
            .to_owned(),
    );
    let text = format!(
        r#"{{"arch": "chain", "load": {{"www": {{"rate": 50000, "arrivals": "poisson",
        "requests": {{"s0.get": 1}}}}}}, "services": [{}]}}"#,
        services.join(",")
    );
    let checked = read_text(&text, "chain").expect("a valid definition");
    Topology::new(&checked, Scale::default()).expect("a scale that fits")
}

fn chain(c: &mut Criterion) {
    let mut group = c.benchmark_group("arch-chain");
    group.sampling_mode(SamplingMode::Flat);
    let topology = chain_of_ten();
    let duration = Duration::from_secs(1);
    let ran = || run(&topology, 1, duration, duration, Written::Nothing);
    let messages = ran().0.delivered();
    assert!(
        messages > 900_000,
        "twenty messages for each of 50,000 requests"
    );
    group.throughput(Throughput::Elements(messages));
    group.bench_function("ten", |b| {
        b.iter_custom(|iterations| (0..iterations).map(|_| ran().1).sum());
    });
    group.finish();
}

fn whole(c: &mut Criterion) {
    let mut group = c.benchmark_group("arch-whole");
    group.sampling_mode(SamplingMode::Flat);
    let topology = topology(10_000);
    assert!(topology.len() > 6_000);
    let (duration, chat) = (
        simulated(Duration::from_secs(10)),
        Duration::from_millis(10),
    );
    for workers in [1, 2] {
        let whole = || run(&topology, workers, duration, chat, Written::Graph);
        let messages = whole().0.delivered();
        group.throughput(Throughput::Elements(messages));
        group.bench_function(BenchmarkId::new("graph", workers), |b| {
            b.iter_custom(|iterations| (0..iterations).map(|_| whole().1).sum());
        });
    }
    group.finish();
}

/// Learns from a file of 5,000 traces: reads them and estimates all parameters, without resampling.
fn traces(c: &mut Criterion) {
    let mut group = c.benchmark_group("arch-learn");
    group.sampling_mode(SamplingMode::Flat);
    let out = tempfile::tempdir().expect("a temporary directory");
    let config = Config::default();
    let mut settings = Settings::new("chain", Clock::Virtual(config.progress.clone()));
    settings.kinds = KINDS;
    settings.out = out.path().to_owned();
    settings.flows = vec![FlowFormat::Otlp];
    settings.times = true;
    let observer = Observer::start(settings).expect("a directory to write to");
    let duration = Duration::from_millis(100);
    let plan = Plan {
        duration,
        chat: duration,
        recorder: observer.recorder(),
        ..Plan::default()
    };
    simulate(Executor::Virtual, &config, chain_of_ten(), &plan).expect("a run that completes");
    let written = observer.finish().expect("files").files;
    let files = written.into_iter().map(|file| file.path);
    let is_traces = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let files: Vec<_> = files.filter(is_traces).collect();
    let learned = || learn(&files, "chain").expect("traces of a chain");
    let traces = learned().traces;
    assert!(traces > 4_000, "{traces}");
    group.throughput(Throughput::Elements(traces));
    group.bench_function("otlp", |b| b.iter(learned));
    group.finish();
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(1));
    targets = load, chain, whole, traces
}
criterion_main!(benches);
