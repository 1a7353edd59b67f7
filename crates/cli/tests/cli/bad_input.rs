//! Bad input: one sentence, exit code 2, never a panic.

use crate::terminal::{Terminal, refuse};

/// Runs the command with each of the arguments, and checks that the refusal contains each of the parts.
fn refused(cases: &[(&str, &[&str])]) {
    for (args, parts) in cases {
        let said = refuse(args);
        for part in *parts {
            assert!(
                said.contains(part),
                "`corsair {args}` says {said:?}, and not {part:?}"
            );
        }
    }
}

#[test]
fn a_service_that_is_a_separate_program_is_reported_with_how_to_run_it() {
    refused(&[
        (
            "stream serve --addr 127.0.0.1:0",
            &["cargo run -p corsair-stream"],
        ),
        ("courier serve", &["cargo run -p corsair-courier"]),
    ]);
}

#[test]
fn files_that_never_end() {
    refused(&[
        ("usl /dev/zero", &["/dev/zero", "more than 64 MiB"]),
        ("-config /dev/../dev/zero", &["-config", "more than 64 MiB"]),
    ]);
}

#[test]
fn numbers_out_of_range_or_unreadable() {
    refused(&[
        ("-a fsm -p 1", &["-p", "at least 2"]),
        ("-a fsm -p 0", &["-p", "at least 2"]),
        ("-a fsm -p -5", &["-p", "-5"]),
        ("-a fsm -p=-5", &["-p", "-5"]),
        ("-a fsm -p abc", &["-p", "'abc'", "whole number"]),
        ("-a fsm -p 1.5", &["-p", "'1.5'"]),
        ("-a fsm -p 99999999999", &["-p", "too large"]),
        ("-a fsm -d -1", &["-d", "negative"]),
        ("-a fsm -d 1e30", &["-d", "584 years"]),
        ("-a fsm -d soon", &["-d", "'soon'"]),
        ("-a fsm -cpus 0", &["-cpus", "1 or more"]),
        ("-a fsm --workers=two", &["--workers", "'two'"]),
        ("-a fsm --workers 5000", &["5000", "too many"]),
        ("-a fsm --seed -3", &["--seed", "too small"]),
        ("-a fsm --mailbox 0", &["--mailbox", "1 or more"]),
    ]);
}

// Guarantee: core-10.
#[test]
fn durations_and_latencies() {
    refused(&[
        ("-a fsm --latency 10", &["--latency", "10ms or 10s"]),
        ("-a fsm --latency 0s", &["latency of zero"]),
        (
            "-a fsm --latency 5ms..1ms",
            &["--latency", "ends before it begins"],
        ),
        ("-a fsm --latency 1ms..x", &["--latency", "'x'"]),
        (
            "-a fsm --latency 1ms --lookahead 2ms",
            &["lookahead", "2ms", "1ms"],
        ),
        (
            "-a fsm --lookahead 0ms",
            &["the lookahead must not be zero"],
        ),
        ("-a fsm --end never", &["--end", "'never'"]),
        ("-a fsm -kv chat", &["-kv", "chat:10ms"]),
        ("-a fsm -kv chat:fast", &["-kv", "'fast'"]),
        ("-a fsm -kv chat:0ms", &["-kv", "1ms"]),
        ("-a fsm -kv chat:2h", &["-kv", "65535ms"]),
        ("-a fsm -kv rum:10ms", &["-kv", "'rum'", "chat"]),
        ("-a lamp --interval 1s", &["--interval", "--timeline"]),
        ("-a lamp --timeline t.png", &["--timeline", ".csv or .svg"]),
        (
            "-a fsm --epoch yesterday",
            &["--epoch", "2016-04-17T13:38:45Z"],
        ),
    ]);
}

#[test]
fn architectures_that_are_not_there() {
    refused(&[
        (
            "-a nosuch",
            &[
                "'nosuch'",
                "json_arch/nosuch_arch.json",
                "netflixoss",
                "fsm",
            ],
        ),
        ("-a fms", &["'fms'", "did you mean `corsair -a fsm`?"]),
        ("-a netflixos", &["did you mean `corsair -a netflixoss`?"]),
        ("-a nosuch.json", &["nosuch.json"]),
    ]);
}

#[test]
fn architectures_that_cannot_be_as_asked() {
    refused(&[
        (
            "-a lamp -p 10",
            &["-p", "10 %", "'rds-mysql'", "at least 50 %"],
        ),
        ("-a lamp -p 0", &["-p", "0 %"]),
        ("-a lamp -p -3", &["-p", "too small"]),
        ("-p 4000000000", &["-p", "too many"]),
        ("-a lamp -w 7", &["-w", "7 regions", "1 to 6"]),
        ("-a lamp -w 0", &["-w", "0 regions"]),
        ("-a migration -s 10", &["-s", "10", "9 or less"]),
        ("-a lamp -u 0s", &["-u", "at least 1ms"]),
        ("-a lamp -u 5", &["-u", "5ms or 5s"]),
        ("-a lamp -kv chat:10ns", &["-kv", "at least 1us"]),
        ("-a lamp -kv rum:1ms", &["-kv", "'rum'", "chat"]),
        ("-a lamp --latency 1us", &["--latency", "1µs", "10µs"]),
        ("-a lamp --form async", &["--form", "fsm"]),
        (
            "-a lamp --flow-format zipkin3",
            &["--flow-format", "'zipkin3'", "did you mean zipkin"],
        ),
        (
            "-a lamp --metrics nowhere",
            &["--metrics", "127.0.0.1:9090"],
        ),
        ("-a lamp -m --format json", &["-m", "--format json"]),
        ("-a lamp -r", &["-r", "json/lamp.json", "-j"]),
        ("-a lamp -r -p 200", &["-p and -r"]),
        ("-a lamp -r -w 2", &["-w and -r"]),
        ("-a lamp --lookahead 1ms", &["lookahead", "200"]),
    ]);
}

#[test]
fn definitions_that_are_wrong_are_reported_with_file_and_line() {
    let terminal = Terminal::new();
    let definition = |name: &str, text: &str| {
        terminal.write(&format!("json_arch/{name}_arch.json"), text);
        terminal.refuse(&format!("-a {name}"))
    };
    assert_eq!(
        definition(
            "a",
            "{\"arch\": \"a\", \"services\": [\n{\"name\": \"db\", \"package\": \"stor\"}]}"
        ),
        "-a: json_arch/a_arch.json:2: service 'db' has the unknown package 'stor'; did you mean store?"
    );
    assert_eq!(
        definition("b", "{\"arch\": \"b\",\n"),
        "-a: json_arch/b_arch.json:2: the text is incomplete; the file is cut off"
    );
}

#[test]
fn graphs_compose_files_and_searches_that_make_no_sense() {
    let terminal = Terminal::new();
    terminal.write("old.json", "{\"version\": \"spigo-0.2\", \"graph\": []}");
    terminal.write("cut.json", "{\"version\": \"spigo-0.4\", \"graph\": [");
    terminal.write("bad.yml", "a: [b\n");
    for (args, parts) in [
        ("-a lamp --reload old.json", ["-r", "spigo-0.2"].as_slice()),
        ("-a lamp --reload cut.json", &["-r", "cut off"]),
        #[cfg(feature = "compose")]
        ("compose2arch bad.yml", &["bad.yml", "not valid YAML"]),
        #[cfg(feature = "compose")]
        ("compose2arch none.yml", &["cannot read none.yml"]),
        ("capacity -a lamp --from 0", &["--from", "above 0"]),
        ("capacity -a lamp --errors 2", &["--errors", "0 to 1"]),
        ("capacity -a fsm", &["-a", "fsm", "netflixoss"]),
        ("capacity -a lamp --limit soon", &["soon"]),
    ] {
        let said = terminal.refuse(args);
        for part in parts {
            assert!(
                said.contains(part),
                "`corsair {args}` says {said:?}, and not {part:?}"
            );
        }
    }
}

#[test]
fn flags_of_architectures_do_not_go_with_pirates() {
    refused(&[
        ("-a fsm -c", &["-c", "not for fsm", "--per-actor"]),
        ("-a fsm -k localhost:9092", &["-k", "Kafka", "not for fsm"]),
        ("-a fsm -u 2s", &["-u 2s", "not for fsm"]),
        ("-a fsm -f", &["-f", "not for fsm"]),
    ]);
}

#[test]
fn flags_and_words_that_are_not_there() {
    refused(&[
        (
            "-a fsm -cpuprofil f",
            &["cpuprofil", "did you mean", "-cpuprofile"],
        ),
        ("-a fsm --sed 3", &["--sed", "did you mean --seed?"]),
        ("-a fsm --populaton=3", &["did you mean --population (-p)?"]),
        ("-a fsm -z", &["-z", "corsair --help"]),
        ("-a fsm -zebra", &["zebra"]),
        (
            "-a fsm --executor virtuel",
            &["--executor", "'virtuel'", "did you mean virtual?"],
        ),
        (
            "-a fsm --executor goroutines",
            &["virtual, tokio, threads, pool"],
        ),
        ("-a fsm --form sync", &["--form", "did you mean async?"]),
        ("-a fsm --overflow drop", &["--overflow", "drop_newest"]),
        ("-a fsm --format yaml", &["--format", "text, json"]),
        (
            "-a fsm -j=perhaps",
            &["-j", "'perhaps'", "neither true nor false"],
        ),
        ("-a fsm -p", &["-p needs a value", "-p 100"]),
        ("-a fsm -p -d 0", &["-p needs a value"]),
        ("-a fsm --seed", &["--seed needs a value"]),
        ("fsm", &["'fsm'", "-a fsm"]),
        ("completions", &["corsair completions bash"]),
        ("completions cobol", &["cobol"]),
    ]);
}

#[test]
fn flags_that_contradict_each_other() {
    refused(&[
        ("-a fsm -cpus 1 --workers 2", &["-cpus 1", "--workers 2"]),
        ("-a fsm -m --format json", &["-m", "--format json"]),
        ("-a fsm -r -p 10", &["-p", "-r"]),
    ]);
    crate::terminal::succeed("-a fsm -p 5 -d 0 -cpus 2 --workers 2");
}

#[test]
fn more_pirates_than_memory_holds() {
    refused(&[
        (
            "-a fsm -p 4294967295 --executor tokio",
            &["-p", "4294967295", "available", "at most"],
        ),
        (
            "-a fsm -p 4294967295 --executor threads",
            &["-p", "available", "at most"],
        ),
    ]);
}

#[test]
fn runs_that_fail_say_why() {
    let terminal = Terminal::new();
    let said = terminal.run("-a fsm -p 5 -d 10 --end 1s");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.starts_with("corsair: time ran past the end"),
        "{said:?}"
    );
    assert!(said.stdout.contains("corsair: failed at"), "{said:?}");
    assert!(!said.stdout.contains("complete"), "{said:?}");
}

#[test]
fn places_that_cannot_be_written_are_reported_before_the_run() {
    let terminal = Terminal::new();
    terminal.write("occupied", "a file where a directory should be");
    for (args, parts) in [
        ("-a fsm -p 5 -j --out occupied", ["-j", "occupied"]),
        (
            "-a fsm -p 5 --per-actor occupied/a.csv",
            ["--per-actor", "occupied"],
        ),
        (
            "-a fsm -p 5 -cpuprofile occupied/cpu",
            ["-cpuprofile", "occupied"],
        ),
        ("-a fsm -p 5 -cpuprofile .", ["-cpuprofile", "directory"]),
        (
            "-a fsm -p 5 -saveconfig --out occupied",
            ["-saveconfig", "occupied"],
        ),
    ] {
        let said = terminal.refuse(args);
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{args}: {said}"
        );
    }
}
