//! A collector of spans: a small server in this process. The tests of the command line also use it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A collector that answers 202 to a number of requests and then hangs up. A Neo4j database sends the same answer when
/// it succeeds.
pub struct Collector {
    /// The address of the collector.
    pub address: SocketAddr,
    requests: Requests,
}

/// The path and the body of each answered request.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

impl Collector {
    /// Starts a collector that answers this many requests.
    pub fn start(answers: usize) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Requests::default();
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

    /// Returns the path and the body of each answered request.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the spans that were received as arrays, as Zipkin sends them.
    pub fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let arrays = requests.iter().filter_map(|(_, body)| body.as_array());
        arrays.flatten().cloned().collect()
    }

    /// Returns the spans of all resources that were received by OTLP.
    pub fn resource_spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let resources = requests
            .iter()
            .flat_map(|(_, body)| list(&body["resourceSpans"]));
        let scopes = resources.flat_map(|resource| list(&resource["scopeSpans"]));
        scopes.flat_map(|scope| list(&scope["spans"])).collect()
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
        let answer = r#"{"results":[],"errors":[]}"#;
        let length = answer.len();
        write!(
            stream,
            "HTTP/1.1 202 Accepted\r\ncontent-length: {length}\r\n\r\n{answer}"
        )
        .unwrap();
    }
}
