//! Collectors as small servers in this process: the data they receive, and the effects of their failures.

use crate::collector::Collector;
use crate::fleet::{Fleet, config};
use corsair::Executor;
use corsair_observe::{Clock, ObserveError, Observer, OutputSummary, Settings};
use std::net::TcpListener;
use std::path::Path;

const FLEET: Fleet = Fleet {
    clients: 100,
    servers: 30,
    requests: 40,
};

/// The number of spans in a run of the fleet.
const SPANS: u64 = 100 * 40 * 2;

fn run(change: impl FnOnce(&mut Settings)) -> Result<OutputSummary, ObserveError> {
    let config = config(2);
    let clock = Clock::Virtual(config.progress.clone());
    let mut settings = Settings::new("fleet", clock);
    settings.kinds = crate::fleet::everything(Path::new("."), Clock::Wall).kinds;
    change(&mut settings);
    let observer = Observer::start(settings)?;
    FLEET.run(Executor::Virtual, &config, &observer);
    observer.finish()
}

#[test]
fn a_zipkin_collector_gets_both_sides_of_every_span() {
    let zipkin = Collector::start(usize::MAX);
    let observed = run(|to| to.zipkin = Some(zipkin.address.to_string())).unwrap();
    assert_eq!((observed.spans, observed.losses), (SPANS, Vec::new()));
    let spans = zipkin.spans();
    assert_eq!(spans.len() as u64, 2 * SPANS);
    let kinds = |kind| spans.iter().filter(|span| span["kind"] == kind).count() as u64;
    assert_eq!((kinds("CLIENT"), kinds("SERVER")), (SPANS, SPANS));
    let requests = zipkin.requests();
    assert!(requests.iter().all(|(path, _)| path == "/api/v2/spans"));
}

#[test]
fn an_otlp_collector_gets_both_sides_of_every_span() {
    let otlp = Collector::start(usize::MAX);
    let url = format!("http://{}", otlp.address);
    let observed = run(|to| to.otlp = Some(url)).unwrap();
    assert!(observed.losses.is_empty());
    let requests = otlp.requests();
    assert!(requests.iter().all(|(path, _)| path == "/v1/traces"));
    assert_eq!(otlp.resource_spans().len() as u64, 2 * SPANS);
}

// Guarantee: observe-11.
#[test]
fn a_collector_that_dies_half_way_costs_a_counted_loss_and_not_the_run() {
    // The first request checks whether the collector answers.
    let zipkin = Collector::start(4);
    let observed = run(|to| to.zipkin = Some(zipkin.address.to_string())).unwrap();
    let [loss] = &observed.losses[..] else {
        panic!("{:?}", observed.losses);
    };
    let arrived = zipkin.spans().len() as u64 / 2;
    assert_eq!((loss.of, loss.lost), (SPANS, SPANS - arrived));
    assert!(
        arrived > 0 && loss.lost > 0 && !loss.reason.is_empty(),
        "{loss:?}"
    );
    let said = loss.to_string();
    let begins = "the Zipkin collector at http://127.0.0.1";
    assert!(
        said.starts_with(begins) && said.contains(" of 8000 spans: "),
        "{said}"
    );
}

// Guarantee: observe-10.
#[test]
fn a_wrong_address_is_reported_before_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    let said = run(|to| to.zipkin = Some(nobody.clone()))
        .unwrap_err()
        .to_string();
    let expected =
        format!("the Zipkin collector at http://{nobody}/api/v2/spans cannot be reached");
    assert!(said.starts_with(&expected), "{said}");
    let said = run(|to| to.otlp = Some("no address".into()))
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("write one as http://localhost:4318"),
        "{said}"
    );
}

#[test]
fn somebody_else_at_the_address_is_reported_before_the_run() {
    // The check is answered, and the next request is not.
    let other = Collector::start(0);
    let said = run(|to| to.otlp = Some(other.address.to_string())).unwrap_err();
    assert!(matches!(said, ObserveError::Unreachable { .. }), "{said}");
}

#[test]
#[cfg(feature = "metrics")]
fn metrics_are_served_while_the_run_goes_on() {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    let config = config(1);
    let observer = Observer::start(Settings {
        metrics: Some("127.0.0.1:0".parse().unwrap()),
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    });
    let observer = observer.unwrap();
    let address = observer.metrics_address().unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    assert!(get("/metrics").contains("corsair_run_seconds{arch=\"fleet\"} 0\n"));
    FLEET.run(Executor::Virtual, &config, &observer);
    let text = get("/metrics");
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("text/plain; version=0.0.4"));
    let count =
        "corsair_time_seconds_count{arch=\"fleet\",service=\"client\",metric=\"response\"} 4000\n";
    assert!(text.contains(count), "{text}");
    assert!(get("/").starts_with("HTTP/1.1 404"));
    let taken = Observer::start(Settings {
        metrics: Some(address),
        ..Settings::new("fleet", Clock::Wall)
    });
    let said = taken.unwrap_err().to_string();
    assert!(said.contains("choose another port"), "{said}");
    observer.finish().unwrap();
    assert!(
        TcpStream::connect(address).is_err(),
        "the server ends with the run"
    );
}
