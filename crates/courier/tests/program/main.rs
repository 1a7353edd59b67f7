//! The program from the point of view of its users: a node in a process, and refused arguments.

mod export;
mod operate;
mod terminal;
mod tls;

use corsair_courier_load::{Kind, Plan, Progress};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use terminal::{Terminal, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_corsair-courier");

#[test]
fn a_node_serves_a_load_from_elsewhere_and_ends_on_request() {
    let terminal = Terminal::new(PROGRAM);
    let mut node = terminal
        .command("serve --listen 127.0.0.1:0 --data data --rate 100000 --strangers 100000 --password-memory 8")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(node.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line
        .split_whitespace()
        .find(|word| word.starts_with("http://"))
        .unwrap();
    let url = url.trim_end_matches(',');
    let host = url.trim_start_matches("http://");
    let plan = Plan {
        kind: Kind::OneOnOne,
        workers: 2,
        messages: 5,
        users: 16,
        rate: None,
        text: 100,
        seed: 1,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let progress = Progress::default();
    let load = corsair_courier_load::run(host, &plan, &progress);
    assert_eq!(runtime.block_on(load).unwrap().deliveries.count(), 10);
    let in_use = terminal.refuse("serve --listen 127.0.0.1:0 --data data");
    assert!(in_use.contains("in use by another process"), "{in_use}");
    let taken = format!("serve --listen {}", host);
    let taken = terminal.refuse(&taken);
    assert!(taken.contains("cannot listen"), "{taken}");
    signal("-TERM", &node);
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

/// Sends a handwritten request, and returns the complete answer.
fn request(host: &str, path: &str, token: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nauthorization: Bearer {token}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn no_secret_is_printed() {
    let terminal = Terminal::new(PROGRAM);
    let mut node = terminal
        .command("serve --listen 127.0.0.1:0 --data data --password-memory 8")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(node.stdout.take().unwrap());
    let mut printed = String::new();
    stdout.read_line(&mut printed).unwrap();
    let host = printed.split("http://").nth(1).unwrap();
    let host = host.split(',').next().unwrap().to_owned();
    let credentials = r#"{"name":"anne","password":"correct horse"}"#;
    let made = request(&host, "/users", "", credentials);
    let token = made.split("\"token\":\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    assert!(token.starts_with("courier_"), "{made}");
    let forged = format!("{}AAAA", &token[..token.len() - 4]);
    let answers = [
        request(
            &host,
            "/sessions",
            "",
            &credentials.replace("horse", "mule"),
        ),
        request(&host, "/conversations", &forged, r#"{"recipients":[1]}"#),
        request(&host, "/conversations", &token, r#"{"recipients":[99]}"#),
    ];
    for (answer, status) in answers.iter().zip(["401", "401", "422"]) {
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    signal("-TERM", &node);
    assert_eq!(node.wait().unwrap().code(), Some(0));
    stdout.read_to_string(&mut printed).unwrap();
    let mut stderr = node.stderr.take().unwrap();
    stderr.read_to_string(&mut printed).unwrap();
    printed.extend(answers);
    for secret in ["correct horse", "correct mule", &token[30..], &forged[30..]] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence() {
    let terminal = Terminal::new(PROGRAM);
    std::fs::write(terminal.directory.path().join("key"), "0123456789abcdef").unwrap();
    for (args, part) in [
        ("", "corsair-courier serve"),
        ("deliver", "'deliver'"),
        ("serve --listen nowhere", "nowhere"),
        ("serve --nats nats://127.0.0.1:1", "--cluster-key FILE"),
        ("serve --nats-snapshot 9", "was removed"),
        ("serve --cluster-key key", "--data DIR"),
        ("serve --cluster-key none --data d", "none"),
        ("serve --join 127.0.0.1:1", "--cluster-key"),
        (
            "serve --cluster-key key --data d --join nowhere",
            "HOST:PORT",
        ),
        (
            "serve --cluster-key key --data d --listen 0.0.0.0:8080",
            "--advertise HOST:PORT",
        ),
        (
            "serve --cluster-key key --data d --cluster-ca x",
            "--tls-cert",
        ),
        ("remove --data d --node x", "'x' is not an id"),
        ("members --data none", "no node runs"),
        ("recover --data none", "none"),
        ("serve --text 9 --body 8", "raise --body"),
        ("serve --heartbeat 100h", "24h"),
        ("serve --heartbeat 10", "10s or 10ms"),
        ("serve --rate 0", "0"),
        ("serve --registration token", "--registration-token FILE"),
        (
            "serve --registration-token x",
            "without --registration token",
        ),
        (
            "serve --registration token --registration-token none",
            "cannot read",
        ),
        ("serve --connections 99999999999", "too large"),
        ("serve --keep 0d", "1s or more"),
        ("serve --keep 30", "30s or 30ms"),
        ("backup --data none --to x", "no data"),
        ("compact --data none", "no data"),
        ("restore --from none --data d", "none"),
    ] {
        let said = terminal.refuse(args);
        assert!(said.contains(part), "`{args}` says {said:?}, not {part:?}");
    }
}

#[test]
fn help_lists_the_flags() {
    let said = Terminal::new(PROGRAM).run("serve --help");
    assert_eq!(said.code, Some(0));
    assert!(said.stdout.contains("--cluster-key"), "{}", said.stdout);
    assert!(!said.stdout.contains("nats"), "{}", said.stdout);
}
