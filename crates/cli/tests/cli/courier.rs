//! `corsair courier`: a node in a process, a small load, and what is refused.

use crate::terminal::{Terminal, refuse, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_small_load_prints_both_tables() {
    let terminal = Terminal::new();
    let said = terminal.run("courier bench --kind 1on2 --workers 2 --messages 5 --users 4");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let count = |name: &str| {
        let line = said.stdout.lines().find(|line| line.starts_with(name));
        let rest = line.unwrap_or_default().trim_start_matches(name);
        rest.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(
        count("POST to socket").as_deref(),
        Some("20"),
        "{}",
        said.stdout
    );
    assert_eq!(count("POST  ").as_deref(), Some("10"), "{}", said.stdout);
    assert!(said.stdout.contains("p99.9"), "{}", said.stdout);
}

#[test]
fn a_load_as_json_is_one_object() {
    let terminal = Terminal::new();
    let said = terminal.run(
        "courier bench --kind 1onAll --workers 1 --messages 4 --users 3 --rate 200 --format json",
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["load"]["post"]["count"], 4);
    assert_eq!(json["load"]["post_to_socket"]["count"], 8);
    assert!(json["load"]["post_to_socket"]["p50_ns"].as_u64().unwrap() > 0);
}

#[test]
fn with_a_rate_times_count_from_when_a_message_was_meant_to_be_sent() {
    let terminal = Terminal::new();
    let load = |rate: &str| {
        let args = format!("courier bench --kind 1on1 --workers 1 --messages 40 {rate}");
        let load = &terminal.json(&args)["load"];
        let of = |value: &serde_json::Value| value.as_u64().unwrap();
        (of(&load["post"]["total_ns"]), of(&load["wall_ns"]))
    };
    // One after the other, they take no longer together than the whole load.
    let (total, wall) = load("");
    assert!(total <= wall, "{total} {wall}");
    // All were meant to be sent at once, so that each has waited for those before it.
    let (total, wall) = load("--rate 1000000000");
    assert!(total > wall, "{total} {wall}");
}

#[test]
fn every_kind_of_recipients_gets_its_messages() {
    let terminal = Terminal::new();
    for (kind, least, most) in [
        ("1on1", 12, 12),
        ("1on2", 24, 24),
        ("1on5", 60, 60),
        ("1onAny", 12, 84),
        ("1onAll", 84, 84),
    ] {
        let args = format!("courier bench --kind {kind} --workers 3 --messages 4 --users 8");
        let load = &terminal.json(&args)["load"];
        assert_eq!(load["post"]["count"], 12, "{kind}");
        let came = load["post_to_socket"]["count"].as_u64().unwrap();
        assert!((least..=most).contains(&came), "{kind}: {came}");
    }
}

#[test]
fn a_comparison_and_idle_sockets_are_measured() {
    let terminal = Terminal::new();
    let json = terminal.json("courier bench --messages 1 --compare 20ms");
    let comparison = &json["comparison"];
    assert!(comparison["ratio"].as_f64().unwrap() > 0.0, "{comparison}");
    assert_eq!(comparison["bare_per_s"].as_array().unwrap().len(), 5);
    let json = terminal.json("courier bench --idle 20");
    assert_eq!(json["idle"]["sockets"], 20);
    assert!(json["idle"]["after_bytes"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn a_low_limit_of_open_files_is_raised() {
    let terminal = Terminal::new();
    let program = env!("CARGO_BIN_EXE_corsair");
    let said = std::process::Command::new("sh")
        .current_dir(terminal.path(""))
        .args([
            "-c",
            "ulimit -S -n 50 && exec \"$0\" courier bench --idle 60",
            program,
        ])
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

/// What is posted shows on a terminal, and nowhere else.
#[test]
#[cfg(target_os = "linux")]
fn a_load_shows_its_progress_on_a_terminal_only() {
    let terminal = Terminal::new();
    let load = "courier bench --workers 1 --messages 40 --rate 100";
    let said = terminal.run(load);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    // `script` gives the command a terminal of its own.
    let command = format!("{} {load}", env!("CARGO_BIN_EXE_corsair"));
    let said = std::process::Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&said.stdout);
    assert!(shown.contains("of 40 messages"), "{shown}");
    assert!(shown.contains("POST to socket"), "{shown}");
}

#[test]
fn a_node_serves_a_load_from_elsewhere_and_ends_when_it_is_told() {
    let terminal = Terminal::new();
    let mut node = terminal
        .command("courier serve --listen 127.0.0.1:0 --data data --rate 100000 --strangers 100000 --password-memory 8")
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
    let said = terminal.run(&format!(
        "courier bench --kind 1on1 --workers 2 --messages 5 --url {url}"
    ));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let in_use = refuse_in(&terminal, "courier serve --listen 127.0.0.1:0 --data data");
    assert!(in_use.contains("in use by another process"), "{in_use}");
    let taken = format!(
        "courier serve --listen {}",
        url.trim_start_matches("http://")
    );
    let taken = refuse_in(&terminal, &taken);
    assert!(taken.contains("cannot listen"), "{taken}");
    signal("-TERM", &node);
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

#[test]
fn a_load_that_is_interrupted_leaves_nothing_behind() {
    let terminal = Terminal::new();
    let temporary = terminal.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let data = || std::fs::read_dir(&temporary).unwrap().count();
    let mut load = terminal
        .command("courier bench --workers 1 --messages 1000 --rate 1")
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while data() == 0 {
        assert!(load.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal("-INT", &load);
    assert_eq!(load.wait().unwrap().code(), Some(130));
    assert_eq!(data(), 0);
}

/// Sends a request by hand, and gives back all of the answer.
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
    let terminal = Terminal::new();
    let mut node = terminal
        .command("courier serve --listen 127.0.0.1:0 --data data --password-memory 8")
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
    // The password of a NATS server stands in its URL.
    let said = refuse("courier serve --nats nats://anne:secret@127.0.0.1:1");
    assert!(
        said.contains("127.0.0.1:1") && !said.contains("secret"),
        "{said}"
    );
}

fn refuse_in(terminal: &Terminal, args: &str) -> String {
    let said = terminal.run(args);
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    said.stderr
}

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence() {
    for (args, part) in [
        ("courier", "corsair courier serve"),
        ("courier deliver", "'deliver'"),
        ("courier serve --listen nowhere", "nowhere"),
        ("courier serve --nats nats://127.0.0.1:1", "nats-server"),
        ("courier serve --heartbeat 10", "10s or 10ms"),
        ("courier serve --rate 0", "0"),
        ("courier bench --kind 2on2", "1on1"),
        ("courier bench --users 3 --workers 8", "--users"),
        ("courier bench --kind 1on5 --workers 1 --users 5", "6 users"),
        ("courier bench --rate 1e-300", "--rate"),
        (
            "courier bench --workers 500000000 --users 500000000 --messages 500000000",
            "--messages",
        ),
        ("courier bench --url ftp://x", "http://HOST:PORT"),
        ("courier bench --url http://127.0.0.1:1", "connection"),
        (
            "courier bench --url http://127.0.0.1:1 --compare 1s",
            "--compare",
        ),
    ] {
        let said = refuse(args);
        assert!(
            said.contains(part),
            "`corsair {args}` says {said:?}, not {part:?}"
        );
    }
}

#[test]
fn a_subcommand_has_help_of_its_own() {
    let terminal = Terminal::new();
    let said = terminal.run("courier serve --help");
    assert!(said.stdout.contains("--nats"), "{}", said.stdout);
    let said = terminal.run("--help");
    assert!(said.stdout.contains("--population"), "{}", said.stdout);
}
