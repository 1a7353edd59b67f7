//! The load generator from the point of view of its users: flags and tables.

#[path = "../../../courier/tests/program/terminal.rs"]
mod terminal;

use std::process::{Command, Stdio};
use std::time::Duration;
use terminal::{Terminal, signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_corsair-courier-load");

/// Runs the program with `--format json`, which must succeed, and returns the object.
fn measured(terminal: &Terminal, args: &str) -> serde_json::Value {
    let said = terminal.run(&format!("{args} --format json"));
    assert_eq!(said.code, Some(0), "{args}: {}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn a_small_load_prints_both_tables() {
    let terminal = Terminal::new(PROGRAM);
    let said = terminal.run("--kind 1on2 --workers 2 --messages 5 --users 4");
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
    let terminal = Terminal::new(PROGRAM);
    let said =
        terminal.run("--kind 1onAll --workers 1 --messages 4 --users 3 --rate 200 --format json");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["load"]["post"]["count"], 4);
    assert_eq!(json["load"]["post_to_socket"]["count"], 8);
    assert!(json["load"]["post_to_socket"]["p50_ns"].as_u64().unwrap() > 0);
}

#[test]
fn with_a_rate_times_count_from_when_a_message_was_meant_to_be_sent() {
    let terminal = Terminal::new(PROGRAM);
    let load = |rate: &str| {
        let args = format!("--kind 1on1 --workers 1 --messages 40 {rate}");
        let load = &measured(&terminal, &args)["load"];
        let of = |value: &serde_json::Value| value.as_u64().unwrap();
        (of(&load["post"]["total_ns"]), of(&load["wall_ns"]))
    };
    // Posts follow each other, so together they take no longer than the load.
    let (total, wall) = load("");
    assert!(total <= wall, "{total} {wall}");
    // All posts are due at once, so each latency includes the earlier posts.
    let (total, wall) = load("--rate 1000000000");
    assert!(total > wall, "{total} {wall}");
}

#[test]
fn every_kind_of_recipients_gets_its_messages() {
    let terminal = Terminal::new(PROGRAM);
    for (kind, least, most) in [
        ("1on1", 12, 12),
        ("1on2", 24, 24),
        ("1on5", 60, 60),
        ("1onAny", 12, 84),
        ("1onAll", 84, 84),
    ] {
        let args = format!("--kind {kind} --workers 3 --messages 4 --users 8");
        let load = &measured(&terminal, &args)["load"];
        assert_eq!(load["post"]["count"], 12, "{kind}");
        let came = load["post_to_socket"]["count"].as_u64().unwrap();
        assert!((least..=most).contains(&came), "{kind}: {came}");
    }
}

#[test]
fn a_comparison_and_idle_sockets_are_measured() {
    let terminal = Terminal::new(PROGRAM);
    let json = measured(&terminal, "--messages 1 --compare 20ms");
    let comparison = &json["comparison"];
    assert!(comparison["ratio"].as_f64().unwrap() > 0.0, "{comparison}");
    assert_eq!(comparison["bare_per_s"].as_array().unwrap().len(), 5);
    let json = measured(&terminal, "--idle 20");
    assert_eq!(json["idle"]["sockets"], 20);
    assert!(json["idle"]["after_bytes"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn a_low_limit_of_open_files_is_raised() {
    let terminal = Terminal::new(PROGRAM);

    let said = Command::new("sh")
        .current_dir(terminal.directory.path())
        .args(["-c", "ulimit -S -n 50 && exec \"$0\" --idle 60", PROGRAM])
        .output()
        .unwrap();
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

/// The progress bar appears only on a terminal.
#[test]
#[cfg(target_os = "linux")]
fn a_load_shows_its_progress_on_a_terminal_only() {
    let terminal = Terminal::new(PROGRAM);
    let load = "--workers 1 --messages 40 --rate 100";
    let said = terminal.run(load);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    // `script` runs the command on a terminal.
    let command = format!("{} {load}", PROGRAM);
    let said = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&said.stdout);
    assert!(shown.contains("of 40 messages"), "{shown}");
    assert!(shown.contains("POST to socket"), "{shown}");
}

#[test]
fn a_load_that_is_interrupted_leaves_nothing_behind() {
    let terminal = Terminal::new(PROGRAM);
    let temporary = terminal.directory.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let data = || std::fs::read_dir(&temporary).unwrap().count();
    let mut load = terminal
        .command("--workers 1 --messages 1000 --rate 1")
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

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence() {
    let terminal = Terminal::new(PROGRAM);
    for (args, part) in [
        ("serve", "'serve'"),
        ("--kind 2on2", "1on1"),
        ("--compare 10", "500ms"),
        ("--users 3 --workers 8", "--users"),
        ("--kind 1on5 --workers 1 --users 5", "6 users"),
        ("--rate 1e-300", "--rate"),
        (
            "--workers 500000000 --users 500000000 --messages 500000000",
            "--messages",
        ),
        ("--url ftp://x", "http://HOST:PORT"),
        ("--url http://127.0.0.1:1", "connection"),
        ("--url http://127.0.0.1:1 --compare 1s", "--compare"),
    ] {
        let said = terminal.refuse(args);
        assert!(said.contains(part), "`{args}` says {said:?}, not {part:?}");
    }
}
