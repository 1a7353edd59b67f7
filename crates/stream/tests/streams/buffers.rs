//! Disk buffers of sinks: a receiver that is down for a while gets every post when it is back.

use crate::http::Service;
use crate::program::{Server, terminal};
use crate::sinks::counter;
use corsair::edge::Overflow;
use corsair_stream::engine::{SinkDisk, TaskOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The values of the field `v` that a receiver has got, in the order of arrival.
#[derive(Clone, Default)]
pub struct Received(Arc<Mutex<Vec<i64>>>);

impl Received {
    /// Receives posts at this address until the process ends.
    pub fn listen(&self, address: SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        let received = self.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let received = received.clone();
                std::thread::spawn(move || received.serve(socket.unwrap()));
            }
        });
    }

    fn serve(&self, socket: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(socket);
        loop {
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).ok()? > 2 {
                let (name, value) = line.split_once(':').unwrap_or_default();
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
            // The series of an alert are under `data`.
            let series = body.get("series").or(body["data"].get("series"))?;
            let values = series[0]["values"].as_array()?;
            self.0
                .lock()
                .unwrap()
                .extend(values.iter().map(|row| row[1].as_i64().unwrap()));
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            reader.get_mut().write_all(answer).ok()?;
        }
    }

    /// Waits until this value has arrived, and returns all values.
    pub fn until(&self, last: i64) -> Vec<i64> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let values = self.0.lock().unwrap().clone();
            if values.last() == Some(&last) {
                return values;
            }
            assert!(Instant::now() < until, "{last} does not arrive: {values:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// An address at which nothing listens yet.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// The values without repetitions of values that came before.
fn first_arrivals(values: &[i64]) -> Vec<i64> {
    let mut seen = std::collections::HashSet::new();
    let first = values.iter().filter(|value| seen.insert(**value));
    first.copied().collect()
}

/// A service with disk buffers of this many bytes, and memory for a few bodies.
fn service(directory: &Path, bytes: u64) -> Service {
    Service::with(|options| {
        options.sink_memory = 500;
        options.patience = Duration::from_millis(50);
        options.sink_disk = Some(SinkDisk {
            directory: directory.join("sinks"),
            bytes,
        });
    })
}

// Guarantee: stream-11.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_was_down_gets_every_post_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let address = free_address();
    let service = service(dir.path(), 1 << 20);
    let text = format!("stream | from('m') | http_post('http://{address}/hook')");
    service.task("t", &text).await;
    for at in 0..500 {
        service.write(&format!("m v={at}i {at}\n")).await;
    }
    service.engine.checkpoint().await;
    assert!(counter(&service, "t", "http_post1", "on_disk") > 400);
    let received = Received::default();
    received.listen(address);
    let wait = received.clone();
    let values = tokio::task::spawn_blocking(move || wait.until(499))
        .await
        .unwrap();
    assert_eq!(values, (0..500).collect::<Vec<_>>());
    service.engine.drain().await;
    assert_eq!(counter(&service, "t", "http_post1", "posted"), 500);
    assert_eq!(counter(&service, "t", "http_post1", "on_disk"), 0);
}

// Guarantee: stream-11.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_buffer_drops_what_its_policy_says_and_counts_it() {
    for policy in [Overflow::DropOldest, Overflow::DropNewest] {
        let dir = tempfile::tempdir().unwrap();
        let address = free_address();
        let service = service(dir.path(), 5_000);
        let text =
            format!("stream | from('m') | http_post('http://{address}/hook').overflow('{policy}')");
        service.task("t", &text).await;
        for at in 0..500 {
            service.write(&format!("m v={at}i {at}\n")).await;
        }
        service.engine.checkpoint().await;
        let received = Received::default();
        received.listen(address);
        let dropped = counter(&service, "t", "http_post1", "dropped") as usize;
        assert!((300..490).contains(&dropped), "{policy}: {dropped}");
        service.engine.drain().await;
        let values = received.0.lock().unwrap().clone();
        assert_eq!(values.len() + dropped, 500, "{policy}");
        assert!(values.is_sorted(), "{policy}: {values:?}");
        let last = *values.last().unwrap();
        match policy {
            Overflow::DropOldest => assert_eq!(last, 499),
            _ => assert!(
                last < 200 && values == (0..=last).collect::<Vec<_>>(),
                "{values:?}"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_buffer_that_blocks_refuses_writes_until_the_receiver_is_back() {
    for node in ["http_post('URL')", "alert().info(v >= 0).post('URL')"] {
        let dir = tempfile::tempdir().unwrap();
        let address = free_address();
        let service = service(dir.path(), 2_000);
        let node = node.replace("URL", &format!("http://{address}/hook"));
        let options = TaskOptions {
            capacity: std::num::NonZeroUsize::MIN,
            overflow: Overflow::Block,
        };
        let text = format!("stream | from('m') | {node}");
        service.engine.add("t", &text, options).await.unwrap();
        let (mut accepted, mut refused) = (0, 0);
        while refused < 3 {
            let path = "/write?db=db&precision=s";
            let line = format!("m v={accepted}i {accepted}\n");
            let (status, _) = service.request(axum::http::Method::POST, path, &line).await;
            match status.as_u16() {
                204 => accepted += 1,
                503 => refused += 1,
                other => panic!("{other}"),
            }
            assert!(accepted < 1_000, "{node}");
        }
        assert!(accepted > 20, "{node}: {accepted}");
        let received = Received::default();
        received.listen(address);
        service.engine.drain().await;
        let status = service.engine.status("t").unwrap();
        let dropped = status.nodes.iter().flat_map(|node| &node.counters);
        let dropped =
            dropped.filter(|(name, _)| matches!(*name, "dropped" | "failed" | "not_delivered"));
        assert_eq!(dropped.map(|(_, count)| count).sum::<u64>(), 0, "{node}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_task_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let service = service(dir.path(), 1 << 20);
    let text = format!(
        "stream | from('m') | http_post('http://{}/')",
        free_address()
    );
    service.task("t", &text).await;
    for at in 0..50 {
        service.write(&format!("m v={at}i {at}\n")).await;
    }
    service.engine.checkpoint().await;
    let files = || std::fs::read_dir(dir.path().join("sinks/t")).map_or(0, Iterator::count);
    assert_eq!(files(), 1);
    service.engine.delete("t").await.unwrap();
    assert_eq!(files(), 0);
}

// Guarantee: stream-11.
#[cfg(unix)]
#[test]
fn posts_on_disk_survive_kills_and_arrive_in_order() {
    let terminal = terminal();
    let address = free_address();
    let flags = "--data data --checkpoint 0.05 --sink-memory 500";
    let mut server = Server::start(&terminal, flags);
    let text = format!("stream | from('m') | http_post('http://{address}/hook')");
    let task = serde_json::json!({ "name": "t", "text": text }).to_string();
    assert!(server.post("/tasks", &task).starts_with("HTTP/1.1 201"));
    for at in 0..600 {
        let line = format!("m v={at}i {at}\n");
        let answer = server.post("/write?db=db&precision=s", &line);
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        if at % 60 == 59 {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            server = Server::start(&terminal, flags);
        }
    }
    let received = Received::default();
    received.listen(address);
    let values = received.until(599);
    assert_eq!(first_arrivals(&values), (0..600).collect::<Vec<_>>());
    assert_eq!(server.end("-TERM").2, Some(0));
}
