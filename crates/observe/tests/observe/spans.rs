//! Spans for a program that stores them: the same spans as in files, without a file.

use crate::fleet::{Fleet, Msg, config};
use corsair::{Executor, Message};
use corsair_observe::{Clock, FlowFormat, Observer, SeenSpan, Settings};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const FLEET: Fleet = Fleet {
    clients: 60,
    servers: 30,
    requests: 40,
};

/// An owned copy of a [`SeenSpan`], which only lives as long as the call of the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    ids: (u64, u64, Option<u64>),
    client: (String, String),
    server: (String, String),
    operation: String,
    times: [Option<u64>; 4],
    one_way: bool,
    failed: bool,
}

impl Kept {
    fn of(span: &SeenSpan<'_>) -> Kept {
        Kept {
            ids: (span.trace, span.span, span.parent),
            client: (span.client.into(), span.client_service.into()),
            server: (span.server.into(), span.server_service.into()),
            operation: span.operation.into(),
            times: [
                span.client_send,
                span.server_receive,
                span.server_send,
                span.client_receive,
            ],
            one_way: span.one_way,
            failed: span.failed,
        }
    }
}

/// Runs the fleet and returns its spans. Files are written below `out`.
fn spans(workers: usize, out: &Path, flows: Vec<FlowFormat>) -> Vec<Kept> {
    let config = config(workers);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let kept_by_sink = Arc::clone(&kept);
    let settings = Settings {
        kinds: Msg::KINDS,
        out: out.to_owned(),
        flows,
        spans: Some(Box::new(move |span| {
            kept_by_sink.lock().unwrap().push(Kept::of(span));
        })),
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    };
    let observer = Observer::start(settings).unwrap();
    FLEET.run(Executor::Virtual, &config, &observer);
    let observed = observer.finish().unwrap();
    let kept = std::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(observed.spans, kept.len() as u64);
    assert_eq!(observed.incomplete, 0);
    kept
}

// Guarantee: arch-3.
#[test]
fn a_sink_receives_the_spans_of_the_file_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let kept = spans(2, directory.path(), vec![FlowFormat::ZipkinV1]);
    assert_eq!(kept.len(), 60 * 40 * 2);
    let file = std::fs::read(directory.path().join("json_metrics/fleet_flow.json")).unwrap();
    let written: Vec<Value> = serde_json::from_slice(&file).unwrap();
    assert_eq!(written.len(), kept.len());
    for (written, kept) in written.iter().zip(&kept) {
        let id = |id: u64| Value::from(format!("{id:016x}"));
        assert_eq!(written["traceId"], id(kept.ids.0));
        assert_eq!(written["id"], id(kept.ids.1));
        assert_eq!(
            written.get("parentId").cloned().unwrap_or_default(),
            kept.ids.2.map(id).unwrap_or_default()
        );
        assert_eq!(written["name"], kept.operation);
        let ends: HashMap<&str, &Value> = written["annotations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|end| (end["value"].as_str().unwrap(), end))
            .collect();
        for (name, time, actor) in [
            ("cs", kept.times[0], &kept.client),
            ("sr", kept.times[1], &kept.server),
            ("ss", kept.times[2], &kept.server),
            ("cr", kept.times[3], &kept.client),
        ] {
            let micros = ends.get(name).map(|end| &end["timestamp"]);
            assert_eq!(
                micros.and_then(|at| at.as_u64()),
                time.map(|nanos| nanos / 1_000),
                "{name} of {kept:?}"
            );
            if let Some(end) = ends.get(name) {
                // Zipkin's spans have the full name.
                let short = actor.0.rsplit('.').next().unwrap();
                let full = format!("..{short}...{}.karyon", actor.1);
                let written = end["endpoint"]["serviceName"].as_str().unwrap();
                assert!(written.ends_with(&full), "{written} of {kept:?}");
            }
        }
    }
}

#[test]
fn a_sink_receives_what_an_exchange_was_and_how_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let kept = spans(1, directory.path(), Vec::new());
    assert!(!directory.path().join("json_metrics").exists());
    let (puts, gets): (Vec<&Kept>, Vec<&Kept>) = kept.iter().partition(|span| span.one_way);
    assert_eq!((puts.len(), gets.len()), (60 * 40, 60 * 40));
    let asked: HashMap<u64, &Kept> = gets.iter().map(|get| (get.ids.1, *get)).collect();
    for get in &gets {
        assert_eq!((get.operation.as_str(), get.ids.2), ("GetRequest", None));
        assert_eq!(
            (get.client.1.as_str(), get.server.1.as_str()),
            ("client", "server")
        );
        let times = get.times.map(Option::unwrap);
        assert!(times[0] < times[1] && times[1] <= times[2] && times[2] < times[3]);
    }
    for put in &puts {
        // A server puts a value while it answers a request, and waits for no answer.
        let get = asked[&put.ids.2.unwrap()];
        assert_eq!((put.ids.0, &put.client), (get.ids.0, &get.server));
        assert_eq!(put.times[0], get.times[1]);
        assert_eq!(put.times[2..], [None, None]);
        assert!(put.operation == "Put" && !put.failed);
    }
    let failed = gets.iter().filter(|get| get.failed).count();
    assert!((60 * 4 / 2..60 * 4 * 2).contains(&failed), "{failed}");
}

// Guarantee: arch-3.
#[test]
fn a_sink_receives_the_same_for_any_number_of_workers() {
    let directory = tempfile::tempdir().unwrap();
    let one = spans(1, directory.path(), Vec::new());
    for workers in [2, 4] {
        assert!(
            spans(workers, directory.path(), Vec::new()) == one,
            "{workers} workers"
        );
    }
}
