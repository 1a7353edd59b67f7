//! `corsair courier`: a node in a process, a small load, and what is refused.

use crate::terminal::{Terminal, refuse};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

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
    let pid = node.id().to_string();
    let told = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap();
    assert!(told.success());
    assert_eq!(node.wait().unwrap().code(), Some(0));
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
