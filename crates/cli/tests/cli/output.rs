//! The printed output of a run: spigo's lines, a summary, a JSON object, a log of messages.

use crate::terminal::{Terminal, signal, succeed};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn the_lines_of_a_run_are_spigos_and_then_a_summary() {
    let stdout = succeed("-a fsm -p 1000 -d 0");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "fsm: population 1000 pirates");
    assert_eq!(lines[1], "fsm: Talk amongst yourselves for 0s");
    assert!(
        lines[2].starts_with("fsm: Delivered 5000 messages in "),
        "{}",
        lines[2]
    );
    assert_eq!(
        lines[3..6],
        ["fsm: Shutdown", "fsm: Exit", "corsair: complete"]
    );
    for part in [
        "Hello 1000",
        "NameDrop 2000",
        "Chat 1000",
        "Goodbye 2000",
        "dead letters",
        "digest",
    ] {
        assert!(
            lines[6..].iter().any(|line| line.contains(part)),
            "{part} is missing in\n{stdout}"
        );
    }
}

#[test]
fn ten_seconds_of_talk_are_ten_seconds_of_virtual_time() {
    let json = Terminal::new().json("-a fsm -p 50");
    let time = json["time_seconds"].as_f64().unwrap();
    assert!((10.0..11.0).contains(&time), "{json}");
    assert!(json["messages_total"].as_u64().unwrap() > 50 * 7, "{json}");
}

#[test]
fn json_is_one_object_and_nothing_else() {
    let json = Terminal::new().json("-a fsm -p 100 -d 0 --seed 3 --workers 2 --form async");
    assert_eq!(json["pirates"], 100);
    assert_eq!(json["delivered"]["messages"], 500);
    assert_eq!(json["messages"]["NameDrop"], 200);
    assert_eq!(json["gold"]["missing"], 0);
    assert_eq!(json["gold"]["goodbyes"], 100);
    assert_eq!(json["outcome"], "completed");
    assert_eq!((&json["seed"], &json["form"]), (&3.into(), &"async".into()));
}

// Guarantee: core-58.
#[test]
fn the_digest_does_not_depend_on_workers_form_or_lookahead() {
    let terminal = Terminal::new();
    let digests = [
        "--workers 1",
        "--workers 2",
        "--workers 3 --form async",
        "--lookahead 100us",
    ]
    .map(|how| terminal.json(&format!("-a fsm -p 300 -d 2 --seed 5 {how}"))["digest"].clone());
    assert!(digests[0].is_string());
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[test]
fn every_executor_delivers_everything() {
    let terminal = Terminal::new();
    for executor in ["virtual", "tokio", "threads", "pool"] {
        let json = terminal.json(&format!("-a fsm -p 40 -d 0 --executor {executor}"));
        assert_eq!(json["executor"], executor);
        assert_eq!(json["delivered"]["messages"], 200, "{executor}");
        assert_eq!(json["gold"]["goodbyes"], 40, "{executor}");
        assert_eq!(json["gold"]["missing"], 0, "{executor}");
    }
}

#[test]
fn the_log_has_every_message_in_the_order_of_time() {
    let terminal = Terminal::new();
    let log = terminal.succeed("-a fsm -p 20 -d 3 -m --workers 2");
    let again = terminal.succeed("-a fsm -p 20 -d 3 -m --workers 1");
    let messages = |log: &str| -> Vec<String> {
        let lines = log.lines().skip_while(|line| !line.contains("Talk"));
        let lines = lines
            .take_while(|line| !line.starts_with("corsair"))
            .map(str::to_owned);
        lines.filter(|line| !line.starts_with("fsm: ")).collect()
    };
    let lines = messages(&log);
    assert_eq!(lines, messages(&again));
    assert!(lines.is_sorted_by_key(|line| line.split(' ').next().unwrap().to_owned()));
    let total = terminal.json("-a fsm -p 20 -d 3")["messages_total"]
        .as_u64()
        .unwrap();
    assert_eq!(lines.len() as u64, total);
    let hello = lines.iter().find(|line| line.contains(" Hello ")).unwrap();
    let words: Vec<&str> = hello.split(' ').collect();
    assert_eq!((words[2], words[3], words[4]), ("fsm", "Hello", words[1]));
    let stages: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("fsm: "))
        .collect();
    assert_eq!(stages.len(), 5, "{stages:?}");
    assert_eq!(stages[3..], ["fsm: Shutdown", "fsm: Exit"]);
}

#[test]
fn per_actor_totals_add_up() {
    let terminal = Terminal::new();
    let json = terminal.json("-a fsm -p 30 -d 1 --per-actor totals.csv");
    let table = terminal.read("totals.csv");
    let received = table.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        fields[2].parse::<u64>().unwrap()
    });
    assert_eq!(
        received.sum::<u64>(),
        json["messages_total"].as_u64().unwrap()
    );
    assert!(
        table.contains("\nfsm.atlantic.bermuda.blackbeard29.pirate,"),
        "{table}"
    );
}

#[test]
fn a_reader_that_leaves_early_makes_no_error() {
    let terminal = Terminal::new();
    let mut command = terminal.command("-a fsm -p 2000 -d 1 -m -j");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "fsm: population 2000 pirates\n");
    // The reader has closed its end from here on.
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert!(terminal.path("json/fsm.json").exists());
}

/// Runs until the talk begins, presses Ctrl-C, and returns the exit code and the output.
#[cfg(unix)]
fn interrupted(args: &str) -> (Option<i32>, String) {
    let terminal = Terminal::new();
    let mut child = terminal
        .command(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    while !printed.contains("Talk") {
        assert_ne!(stdout.read_line(&mut printed).unwrap(), 0, "{printed}");
    }
    signal("-INT", &child);
    stdout.read_to_string(&mut printed).unwrap();
    (child.wait().unwrap().code(), printed)
}

// Guarantee: core-52.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_cleanly_with_its_summary() {
    for executor in ["virtual", "tokio", "pool", "threads"] {
        // The run is so long that it has not ended on any machine when the key is pressed.
        let args = format!("-a fsm -p 50 -d 1000000000 --executor {executor}");
        let (code, printed) = interrupted(&args);
        assert_eq!(code, Some(130), "{executor}: {printed}");
        assert!(
            printed.contains("corsair: cancelled by Ctrl-C"),
            "{executor}: {printed}"
        );
        // With a thread for each actor, some actors may not have begun.
        assert!(
            printed.contains("by kind      Hello "),
            "{executor}: {printed}"
        );
    }
}
