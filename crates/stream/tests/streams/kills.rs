//! Tests that a server that is killed at random moments ends with the files of a server that is not
//! killed.
//!
//! `STREAM_KILLS=1000 cargo test -p corsair-stream --test streams kills` kills more often.

use crate::program::{Server, terminal};
use crate::terminal::Terminal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bodies by their `Idempotency-Key`.
#[derive(Clone, Default)]
struct Posts(Arc<Mutex<HashMap<String, String>>>);

impl Posts {
    /// Receives posts until the process ends. Returns its URL.
    fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts = self.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let posts = posts.clone();
                std::thread::spawn(move || posts.serve(socket.unwrap()));
            }
        });
        format!("http://{address}/hook")
    }

    fn serve(&self, socket: TcpStream) {
        let mut reader = BufReader::new(socket);
        loop {
            let (mut length, mut key, mut line) = (0, String::new(), String::new());
            loop {
                line.clear();
                match reader.read_line(&mut line) {
                    Ok(3..) => {}
                    Ok(1..) => break,
                    _ => return,
                }
                let (name, value) = line.split_once(':').unwrap_or_default();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "idempotency-key" => key = value.trim().into(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let body = String::from_utf8(body).unwrap();
            assert!(!key.is_empty(), "a post without a key: {body}");
            let before = self.0.lock().unwrap().insert(key.clone(), body.clone());
            if let Some(before) = before {
                assert_eq!(before, body, "{key} names two bodies");
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if reader.get_mut().write_all(answer).is_err() {
                return;
            }
        }
    }

    /// The posts of alerts, and the points for an InfluxDB, in alphabetical order. A point that is written again replaces
    /// itself.
    fn bodies(&self) -> Vec<String> {
        let (mut alerts, mut points) = (Vec::new(), BTreeSet::new());
        for body in self.0.lock().unwrap().values() {
            match body.starts_with('{') {
                true => alerts.push(body.clone()),
                false => points.extend(body.lines().map(String::from)),
            }
        }
        assert!(!alerts.is_empty() && !points.is_empty());
        alerts.sort();
        alerts.extend(points);
        alerts
    }
}

/// Twenty tasks, whose alerts go to a file each. Those of two tasks also go to a receiver, and those of two others to an
/// InfluxDB.
fn tasks(files: &str, hook: &str) -> BTreeMap<String, String> {
    let windows = [
        "window(10s, every 10s) | sum(v)",
        "window(20s, every 5s) | mean(v)",
        "window().periodCount(7).everyCount(7) | max(v)",
        "window().period(10s).every(10s).align() | count(v)",
        "window(30s, every 10s) | min(v)",
        "window(10s, every 10s) | spread(v)",
        "window(15s, every 15s) | first(v)",
        "window(15s, every 15s) | last(v)",
        "window().periodCount(5).everyCount(2) | median(v)",
    ];
    let mut tasks = BTreeMap::new();
    for (at, window) in windows.into_iter().enumerate() {
        let value = window.rsplit(" | ").next().unwrap().trim_end_matches("(v)");
        for (kind, group) in [("all", ""), ("by", " | groupBy('h')")] {
            let name = format!("{kind}{at}");
            let log = format!(".log('{files}/{name}')");
            let post = match at {
                0 => format!(".post('{hook}')"),
                1 => format!(" | influxdb_out('{hook}').measurement('{name}')"),
                _ => String::new(),
            };
            let text = format!(
                "stream | from('m'){group} | {window} | alert().info({value} > -1000){log}{post}"
            );
            tasks.insert(name, text);
        }
    }
    let joined = format!(
        "var a = stream | from('m') | groupBy('h') var b = stream | from('n') | groupBy('h') a | join(b).as('a', 'b') | alert().info(\"a.v\" > -1000).log('{files}/joined')"
    );
    let level = format!(
        "stream | from('m') | groupBy('h') | derivative(v) | stateCount(v > 0) | alert().crit(state_count > 1).stateChangesOnly().log('{files}/level')"
    );
    tasks.insert("joined".into(), joined);
    tasks.insert("level".into(), level);
    tasks
}

/// A sequence that looks random, and repeats.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

fn lines(at: u64, random: &mut Sequence) -> String {
    let mut lines = String::new();
    for point in 0..1 + random.below(4) {
        let (host, value) = (random.below(3), random.below(100));
        let measurement = ["m", "m", "n"][random.below(3) as usize];
        let time = at * 2 + point / 2;
        lines += &format!("{measurement},h=h{host} v={value}i {time}\n");
    }
    lines
}

/// The number of writes in the log of a server.
fn position(server: &Server) -> u64 {
    let metrics = server.get("/metrics");
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("corsair_stream_log_position "));
    line.and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no position in {metrics}"))
}

/// Writes to a server, which is killed this number of times, until all writes are done. Returns the
/// files.
fn run(
    terminal: &Terminal,
    name: &str,
    (writes, kills): (u64, u64),
    durability: &str,
) -> (BTreeMap<String, String>, Vec<String>) {
    let files = terminal.path(format!("{name}-files"));
    std::fs::create_dir_all(&files).unwrap();
    let posts = Posts::default();
    let hook = posts.listen();
    let flags = format!(
        "--data {name} --checkpoint 0.05 --durability {durability} --alert-logs {}",
        files.display()
    );
    let mut server = Server::start(terminal, &flags);
    for (name, text) in tasks(files.to_str().unwrap(), &hook) {
        let body = serde_json::json!({ "name": name, "text": text }).to_string();
        let answer = server.post("/tasks", &body);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    let mut random = Sequence(1);
    let mut moments = Sequence(u64::from(std::process::id()));
    let mut killed = 0;
    for at in 0..writes {
        let lines = lines(at, &mut random);
        loop {
            // Spread over all writes, before, during and after one of them.
            let now = killed * writes < kills * at;
            let pid = server.child.id().to_string();
            let killer = now.then(|| {
                let wait = Duration::from_micros(moments.below(3_000));
                let done = Arc::new(AtomicBool::new(false));
                let mark = done.clone();
                let thread = std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    let status = std::process::Command::new("kill")
                        .args(["-9", &pid])
                        .status();
                    assert!(status.unwrap().success());
                    mark.store(true, Ordering::SeqCst);
                });
                (thread, done)
            });
            let accepted = write(&server, &lines);
            if let Some((thread, done)) = killer {
                thread.join().unwrap();
                assert!(done.load(Ordering::SeqCst));
                server.child.wait().unwrap();
                killed += 1;
                server = Server::start(terminal, &flags);
            }
            match (accepted, position(&server) == at + 1) {
                (true, true) | (false, true) => break,
                (true, false) => panic!("write {at} was answered and is lost"),
                (false, false) => assert!(now, "write {at} was not accepted"),
            }
        }
    }
    assert!(killed >= kills.min(writes - 1), "{killed} kills");
    let said = server.end("-TERM");
    assert_eq!(said.2, Some(0), "{said:?}");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let found = std::fs::read_dir(&files).unwrap().map(read).collect();
    (found, posts.bodies())
}

/// Returns true if a write was answered with 204.
fn write(server: &Server, lines: &str) -> bool {
    let Ok(mut socket) = TcpStream::connect(&server.address) else {
        return false;
    };
    let request = format!(
        "POST /write?db=db&precision=s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{lines}",
        lines.len()
    );
    let mut answer = Vec::new();
    let _ = socket.write_all(request.as_bytes());
    let _ = socket.read_to_end(&mut answer);
    answer.starts_with(b"HTTP/1.1 204")
}

// Guarantee: stream-9.
#[test]
fn files_and_posts_after_kills_are_those_of_a_run_without_a_kill() {
    let kills = std::env::var("STREAM_KILLS").map_or(12, |kills| kills.parse().unwrap());
    let writes = 200.max(kills * 3);
    let terminal = terminal();
    let (expected, posted) = run(&terminal, "whole", (writes, 0), "interval");
    assert_eq!(expected.len(), 20);
    assert!(expected.values().all(|text| !text.is_empty()) && !posted.is_empty());
    for durability in ["interval", "always"] {
        let (found, bodies) = run(&terminal, durability, (writes, kills), durability);
        for (name, text) in &expected {
            assert_eq!(&found[name], text, "{durability}: {name}");
        }
        assert_eq!(bodies, posted, "{durability}");
    }
}
