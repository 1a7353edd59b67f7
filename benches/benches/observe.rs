//! Measures the time that recording costs the recording thread, and the rate at which spans are written.
//!
//! A run records messages on one thread, with the clock set to each arrival, and finishes the observer. Each message
//! has two records, one by its sender and one by its receiver. The number of written spans is checked.

use corsair::{Addr, Time};
use corsair_observe::{
    Clock, Exchange, FlowFormat, Metric, Node, Observer, Recorder, Settings, TraceContext,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// The number of messages in a run.
const MESSAGES: u64 = 200_000;

/// The number of actors, which send in turn.
const ACTORS: u64 = 1_000;

fn tell(recorder: &Recorder, spans: bool) {
    let service = recorder.service("service");
    for message in 0..MESSAGES {
        let actor = message % ACTORS;
        let (from, to) = (actor as u32, (actor as u32 + 1) % ACTORS as u32);
        let id = actor << 32 | (message / ACTORS + 1);
        let at = message * 100;
        if spans {
            let context = TraceContext::new(id, id, 0).expect("no id is 0");
            let sent = Time::from_nanos(at);
            recorder.client_send(sent, Addr::from_u32(from), context, 0, Exchange::OneWay);
            let received = Time::from_nanos(at + 50);
            recorder.server_receive(received, Addr::from_u32(to), context, 0);
        }
        recorder.sample(service, Metric::Network, 50);
    }
}

fn observed(out: &Path, flows: &[FlowFormat]) {
    let observer = Observer::start(Settings {
        out: out.to_owned(),
        flows: flows.to_vec(),
        times: true,
        kinds: &["Put"],
        ..Settings::new("bench", Clock::Wall)
    });
    let observer = observer.expect("the directory can be written");
    let recorder = observer.recorder();
    for actor in 0..ACTORS as u32 {
        let node = Node {
            name: format!("bench.us-east-1.zoneA.service{actor:02}"),
            container: None,
            full_name: format!("bench.us-east-1.zoneA..service{actor:02}...service.karyon"),
            service: "service".into(),
            package: "karyon".into(),
            region: "us-east-1".into(),
            zone: "zoneA".into(),
        };
        recorder.node(Time::ZERO, Addr::from_u32(actor), node);
    }
    tell(&recorder, true);
    let observed = observer.finish().expect("the files can be written");
    let expected = if flows.is_empty() { 0 } else { MESSAGES };
    assert_eq!((observed.spans, observed.incomplete), (expected, 0));
}

fn observe(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut group = criterion.benchmark_group("observe");
    group.throughput(Throughput::Elements(MESSAGES));
    group.bench_function("no listener", |bencher| {
        let recorder = Recorder::off();
        bencher.iter(|| tell(black_box(&recorder), true));
    });
    group.bench_function("times", |bencher| {
        bencher.iter(|| observed(directory.path(), &[]));
    });
    for format in [FlowFormat::ZipkinV1, FlowFormat::ZipkinV2, FlowFormat::Otlp] {
        let id = BenchmarkId::new("flows", format!("{format:?}"));
        group.bench_function(id, |bencher| {
            bencher.iter(|| observed(directory.path(), &[format]));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(2));
    targets = observe
}
criterion_main!(benches);
