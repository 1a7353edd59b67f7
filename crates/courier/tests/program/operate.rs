//! Tests of operation: file modes, lost logs, compaction, logs, metrics.

use crate::terminal::{Terminal, signal};
use crate::{PROGRAM, request};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

const ANNE: &str = r#"{"name":"anne","password":"correct horse"}"#;

/// A node that writes its output to the files `out` and `err` in the directory of the terminal.
pub struct Node<'t> {
    terminal: &'t Terminal,
    child: Child,
    pub host: String,
}

impl<'t> Node<'t> {
    pub fn start(terminal: &'t Terminal, flags: &str) -> Node<'t> {
        let directory = terminal.directory.path();
        let file = |name| File::create(directory.join(name)).unwrap();
        let line =
            format!("serve --listen 127.0.0.1:0 --password-memory 8 --strangers 1000 {flags}");
        let child = terminal
            .command(&line)
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap();
        let node = Node {
            terminal,
            child,
            host: String::new(),
        };
        let said = node.waits_for("out", "listens on http://");
        let host = said.split("http://").nth(1).unwrap();
        let host = host.split(',').next().unwrap().to_owned();
        Node { host, ..node }
    }

    fn said(&self, file: &str) -> String {
        fs::read_to_string(self.terminal.directory.path().join(file)).unwrap()
    }

    /// Waits until the file contains this text, and returns the complete contents.
    fn waits_for(&self, file: &str, part: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = self.said(file);
            if said.contains(part) {
                return said;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "no {part}: {said}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn stop(mut self) {
        signal("-TERM", &self.child);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// Sends a request without a body, and returns the complete answer.
pub fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// Guarantee: courier-21.
#[test]
fn the_files_of_the_data_and_of_backups_are_for_their_owner_alone() {
    let terminal = Terminal::new(PROGRAM);
    let directory = terminal.directory.path();
    // The permissions of an existing directory are not changed, so the permissions of the files protect the data.
    fs::create_dir(directory.join("data")).unwrap();
    let node = Node::start(&terminal, "--data data");
    assert!(request(&node.host, "/users", "", ANNE).starts_with("HTTP/1.1 201"));
    assert_eq!(
        terminal.run("backup --data data --to running").code,
        Some(0)
    );
    assert_eq!(terminal.run("compact --data data").code, Some(0));
    node.stop();
    assert_eq!(
        terminal.run("backup --data data --to stopped").code,
        Some(0)
    );
    // A copy of a backup may have any permissions.
    let copied = directory.join("stopped");
    fs::set_permissions(&copied, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        terminal.run("restore --from stopped --data restored").code,
        Some(0)
    );
    assert_eq!(mode(&directory.join("running")), 0o600);
    for data in ["data", "restored"] {
        let data = directory.join(data);
        assert_eq!(mode(&data.join("index.redb")), 0o600);
        assert_eq!(mode(&data.join("log")), 0o700);
        for file in fs::read_dir(data.join("log")).unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
}

// Guarantee: courier-11.
#[test]
fn an_index_that_is_behind_a_lost_or_emptied_log_is_refused() {
    for lose in ["remove", "empty the directory", "empty the files"] {
        let terminal = Terminal::new(PROGRAM);
        let node = Node::start(&terminal, "--data data");
        for number in 0..20 {
            let user = ANNE.replace("anne", &format!("anne{number}"));
            assert!(request(&node.host, "/users", "", &user).starts_with("HTTP/1.1 201"));
        }
        // The index has not written anything to disk.
        node.kill();
        let log = terminal.directory.path().join("data/log");
        match lose {
            "remove" => fs::remove_dir_all(&log).unwrap(),
            "empty the directory" => {
                fs::remove_dir_all(&log).unwrap();
                fs::create_dir(&log).unwrap();
            }
            _ => {
                for file in fs::read_dir(&log).unwrap() {
                    File::create(file.unwrap().path()).unwrap();
                }
            }
        }
        let said = terminal.refuse("serve --listen 127.0.0.1:0 --data data");
        assert!(
            said.contains("log") && said.contains("data"),
            "{lose}: {said}"
        );
        let said = terminal.refuse("backup --data data --to x");
        assert!(
            said.contains("log") && said.contains("data"),
            "{lose}: {said}"
        );
    }
}

// Guarantee: courier-17.
#[test]
fn a_node_without_any_data_can_be_compacted() {
    let terminal = Terminal::new(PROGRAM);
    let node = Node::start(&terminal, "--data data");
    let running = terminal.run("compact --data data");
    assert_eq!(running.code, Some(0), "{}", running.stderr);
    node.stop();
    let stopped = terminal.run("compact --data data");
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
}

// Guarantee: courier-14.
#[test]
fn a_disk_without_its_reserve_is_logged_once() {
    let terminal = Terminal::new(PROGRAM);
    let node = Node::start(&terminal, "--data data --reserve 9000000000000000000");
    for _ in 0..3 {
        let answer = request(&node.host, "/users", "", ANNE);
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        std::thread::sleep(Duration::from_millis(150));
    }
    let said = node.waits_for("err", "is full");
    assert_eq!(said.matches("is full").count(), 1, "{said}");
    node.stop();
}

/// Sends a body of this many bytes before reading, as many clients do.
fn sends_all_first(host: &str, bytes: usize) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "POST /users HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    )?;
    let part = [b' '; 1 << 16];
    for begin in (0..bytes).step_by(part.len()) {
        stream.write_all(&part[..part.len().min(bytes - begin)])?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

// Guarantee: courier-22.
#[test]
fn a_client_that_sends_a_body_over_the_limit_sees_413() {
    let terminal = Terminal::new(PROGRAM);
    let node = Node::start(&terminal, "");
    for bytes in [300_000, 8 << 20, 100 << 20] {
        let answer = sends_all_first(&node.host, bytes).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413"), "{bytes}: {answer}");
    }
    // The number of dropped bytes is bounded.
    assert!(sends_all_first(&node.host, 2 << 30).is_err());
    node.stop();
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let terminal = Terminal::new(PROGRAM);
    let node = Node::start(&terminal, "--metrics-listen 127.0.0.1:0");
    let said = node.waits_for("out", "metrics on http://");
    let metrics = said.split("metrics on http://").nth(1).unwrap();
    let metrics = metrics.split_whitespace().next().unwrap();
    let answer = get(metrics, "/metrics");
    assert!(answer.contains("courier_posted_total 0"), "{answer}");
    assert!(get(&node.host, "/metrics").starts_with("HTTP/1.1 404"));
    for path in ["/", "/users/online", "/openapi.json"] {
        assert!(get(metrics, path).starts_with("HTTP/1.1 404"), "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert!(get(metrics, path).starts_with("HTTP/1.1 200"), "{path}");
    }
    let taken = terminal.refuse(&format!(
        "serve --listen 127.0.0.1:0 --metrics-listen {metrics}"
    ));
    assert!(taken.contains("cannot listen"), "{taken}");
    node.stop();
}

#[test]
fn the_access_log_has_a_line_for_each_request_and_no_secret() {
    let terminal = Terminal::new(PROGRAM);
    let node = Node::start(&terminal, "--access-log --log warn");
    let made = request(&node.host, "/users", "", ANNE);
    let token = made.split("\"token\":\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    request(
        &node.host,
        "/conversations?secret=1",
        token,
        r#"{"recipients":[9]}"#,
    );
    let said = node.waits_for("err", "422");
    let lines: Vec<_> = said.lines().filter(|line| line.contains("POST")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].contains("127.0.0.1") && lines[0].contains("\"POST /users\" 201"),
        "{said}"
    );
    assert!(lines[1].contains("\"POST /conversations\" 422"), "{said}");
    for secret in ["correct horse", &token[20..], "secret=1"] {
        assert!(!said.contains(secret), "{said}");
    }
    node.stop();
    // Behind a proxy the log contains the address of the client.
    let node = Node::start(&terminal, "--access-log --trusted-proxy 127.0.0.1");
    let mut stream = TcpStream::connect(&node.host).unwrap();
    let head = "GET /ping HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 6.6.6.6, 1.2.3.4\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let said = node.waits_for("err", "GET /ping");
    assert!(
        said.contains("1.2.3.4 ") && !said.contains("6.6.6.6"),
        "{said}"
    );
    node.stop();
    // No log is written without the flag, or with only errors logged.
    let node = Node::start(&terminal, "--log error");
    request(&node.host, "/users", "", ANNE);
    assert_eq!(node.said("err"), "");
    node.stop();
    let said = terminal.refuse("serve --log loud");
    assert!(said.contains("loud") && said.contains("warn"), "{said}");
}
