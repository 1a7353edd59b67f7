//! Collectors, as small servers of this process: what they get, and what happens when they die.

use crate::fleet::{Fleet, config};
use corsair::Executor;
use corsair_observe::{Clock, ObserveError, Observed, Observer, Settings};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A collector that answers 202 to so many requests and then hangs up.
struct Collector {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start(answers: usize) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let left = Arc::new(AtomicUsize::new(answers));
        let theirs = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (requests, left) = (Arc::clone(&theirs), Arc::clone(&left));
                std::thread::spawn(move || serve(stream.unwrap(), &requests, &left));
            }
        });
        Collector { address, requests }
    }

    fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let arrays = requests.iter().filter_map(|(_, body)| body.as_array());
        arrays.flatten().cloned().collect()
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<(String, Value)>>, left: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let count = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if count.is_err() {
            return;
        }
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let body = serde_json::from_slice(&body).unwrap();
        requests.lock().unwrap().push((path, body));
        write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}

const FLEET: Fleet = Fleet {
    clients: 100,
    servers: 30,
    requests: 40,
};

/// Spans of a run of the fleet.
const SPANS: u64 = 100 * 40 * 2;

fn run(change: impl FnOnce(&mut Settings)) -> Result<Observed, ObserveError> {
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
    let requests = zipkin.requests.lock().unwrap();
    assert!(requests.iter().all(|(path, _)| path == "/api/v2/spans"));
}

#[test]
fn an_otlp_collector_gets_both_sides_of_every_span() {
    let otlp = Collector::start(usize::MAX);
    let url = format!("http://{}", otlp.address);
    let observed = run(|to| to.otlp = Some(url)).unwrap();
    assert!(observed.losses.is_empty());
    let requests = otlp.requests.lock().unwrap();
    assert!(requests.iter().all(|(path, _)| path == "/v1/traces"));
    let spans = requests
        .iter()
        .flat_map(|(_, body)| body["resourceSpans"].as_array().unwrap())
        .map(|resource| resource["scopeSpans"][0]["spans"].as_array().unwrap().len() as u64);
    assert_eq!(spans.sum::<u64>(), 2 * SPANS);
}

#[test]
fn a_collector_that_dies_half_way_costs_a_counted_loss_and_not_the_run() {
    // The first request is the one that looks whether anybody is there.
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

#[test]
fn a_wrong_address_is_told_before_the_run() {
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
fn somebody_else_at_the_address_is_told_before_the_run() {
    // Answers the first request, and hangs up at the next.
    let other = Collector::start(0);
    let said = run(|to| to.otlp = Some(other.address.to_string())).unwrap_err();
    assert!(matches!(said, ObserveError::Unreachable { .. }), "{said}");
}

#[test]
#[cfg(feature = "metrics")]
fn metrics_are_served_while_the_run_goes_on() {
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
