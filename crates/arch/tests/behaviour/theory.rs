//! Queues are those of queueing theory: means within 1.5 %, 99th percentiles within 3 %.

use crate::scene::{Ran, plan, run, topology};
use corsair_arch::{LoadText, Plan, Scale};
use std::time::Duration;

/// Both ways take a millisecond.
const WAYS: f64 = 0.002;

/// A store with these fields behind a load of reads, for so many virtual seconds.
fn store(fields: &str, load: &str, seconds: u64) -> Ran {
    let services = format!(
        r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, {fields}}},
        {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
    );
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(seconds / 10),
        drain: Duration::from_secs(5),
        poll: Duration::from_secs(3_600),
        ..plan()
    };
    let mut topology = topology(&services, Scale::default());
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    let ran = run(topology, &plan);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    ran
}

/// The mean and the 99th percentile of the time in the store, in seconds.
fn times(ran: &Ran) -> (f64, f64) {
    let times = &ran.entry().times;
    let percentile = ran.entry().percentile(0.99).time.as_secs_f64();
    (times.mean() / 1e9 - WAYS, percentile - WAYS)
}

fn close(found: f64, expected: f64, part: f64, what: &str) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() < part,
        "{what}: {found}, not {expected}: off by {:.2} %",
        off * 100.0
    );
}

fn reads(rate: f64) -> String {
    format!(r#"{{"rate": {rate}, "arrivals": "poisson", "requests": {{"common": 1}}}}"#)
}

#[test]
fn one_server_with_exponential_work() {
    // M/M/1: the time there is exponential with the mean 1/(μ − λ).
    for (rate, seconds) in [(500.0, 400), (700.0, 1_500)] {
        let ran = store(
            r#""service_time": {"exponential": "1ms"}, "concurrency": 1"#,
            &reads(rate),
            seconds,
        );
        let mean = 1.0 / (1_000.0 - rate);
        let (found, p99) = times(&ran);
        close(found, mean, 0.015, "mean");
        close(p99, mean * 100f64.ln(), 0.03, "p99");
    }
}

#[test]
fn one_server_with_constant_and_with_uniform_work() {
    // M/G/1 by Pollaczek and Khinchine: the wait is λ·E[S²] / (2 (1 − ρ)).
    for (work, square) in [
        (r#""1ms""#, 1e-6),
        (r#"{"uniform": ["0ms", "2ms"]}"#, 4e-6 / 3.0),
    ] {
        let fields = format!(r#""service_time": {work}, "concurrency": 1"#);
        let ran = store(&fields, &reads(700.0), 500);
        let mean = 1e-3 + 700.0 * square / (2.0 * (1.0 - 0.7));
        close(times(&ran).0, mean, 0.015, work);
    }
}

#[test]
fn several_servers() {
    // M/M/4 at ρ = 0.75: Erlang's C is 0.5094, and those who wait do so for 1/(4μ − λ).
    let ran = store(
        r#""service_time": {"exponential": "1ms"}, "concurrency": 4"#,
        &reads(3_000.0),
        120,
    );
    close(times(&ran).0, 1e-3 + 0.509_434 / 1_000.0, 0.015, "mean");
}

#[test]
fn a_closed_network_of_one_station() {
    // Ten users who think for 20 ms, one server of 2 ms: mean value analysis.
    let (think, work, users) = (0.02, 0.002, 10);
    let mut length = 0.0;
    let mut throughput = 0.0;
    for n in 1..=users {
        let response = work * (1.0 + length);
        throughput = f64::from(n) / (think + WAYS + response);
        length = throughput * response;
    }
    let ran = store(
        r#""service_time": {"exponential": "2ms"}, "concurrency": 1"#,
        r#"{"users": 10, "think": {"exponential": "20ms"}, "requests": {"common": 1}}"#,
        300,
    );
    let found = ran.entry().times.len() as f64 / 270.0;
    close(found, throughput, 0.015, "throughput");
    close(times(&ran).0, length / throughput, 0.015, "mean");
}

#[test]
fn two_stations_in_tandem() {
    // Jackson: both are M/M/1, one after the other.
    let services = r#"{"name": "db", "package": "store", "count": 1, "regions": 1,
         "service_time": {"exponential": "1ms"}, "concurrency": 1},
        {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"],
         "service_time": {"exponential": "2ms"}},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#;
    let plan = Plan {
        duration: Duration::from_secs(500),
        warm_up: Duration::from_secs(20),
        drain: Duration::from_secs(5),
        poll: Duration::from_secs(3_600),
        ..plan()
    };
    let mut topology = topology(services, Scale::default());
    LoadText::read(&reads(600.0))
        .unwrap()
        .apply(&mut topology)
        .unwrap();
    let ran = run(topology, &plan);
    // The first has any number of servers, the second one.
    let mean = 0.004 + 0.002 + 1.0 / (1_000.0 - 600.0);
    close(ran.entry().times.mean() / 1e9, mean, 0.015, "mean");
}
