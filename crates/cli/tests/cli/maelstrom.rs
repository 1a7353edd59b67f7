//! `corsair maelstrom`: verdicts, exit codes, histories, refusals.

use crate::terminal::Terminal;

#[test]
fn actors_pass_a_workload_and_their_history_can_be_checked() {
    let terminal = Terminal::new();
    let command = "maelstrom -w lin-kv --node-count 3 --concurrency 2n --rate 20 --time-limit 5 \
                   --latency 10 --nemesis partition --nemesis-interval 1 --history out.json";
    let said = terminal.succeed(command);
    assert!(said.contains("digest "), "{said}");
    let checked = terminal.succeed("check out.json --model kv");
    assert!(checked.contains("\nlinearizable\n"), "{checked}");
}

#[test]
fn a_run_has_the_same_digest_on_any_number_of_workers() {
    let terminal = Terminal::new();
    terminal.write(
        "plan.json",
        r#"{"faults": [{"loss": {"share": 50}}, {"delay": {"nodes": [1], "from": 100, "until": 900, "by": 70}}]}"#,
    );
    let digest = |workers: u32| {
        let command = format!(
            "maelstrom -w broadcast --node-count 5 --rate 50 --time-limit 4 --faults plan.json --workers {workers}"
        );
        let said = terminal.succeed(&command);
        let at = said.find("digest ").unwrap_or_else(|| panic!("{said}"));
        said[at..].lines().next().unwrap().to_owned()
    };
    let one = digest(1);
    assert!((2..=4).all(|workers| digest(workers) == one));
}

#[test]
fn an_invalid_result_is_reported_by_the_exit_code() {
    let terminal = Terminal::new();
    terminal.write(
        "plan.json",
        r#"{"faults": [{"partition": {"from": 0, "until": 6000, "side": [0]}}]}"#,
    );
    let output = terminal.run(
        "maelstrom -w lin-kv --node-count 2 --rate 20 --time-limit 4 --availability total --faults plan.json",
    );
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("succeeded"), "{}", output.stdout);
}

#[test]
fn what_cannot_be_tested_is_refused_in_a_sentence() {
    let terminal = Terminal::new();
    for (file, text) in [
        (
            "crash.json",
            r#"{"faults": [{"crash": {"nodes": [0], "at": 1, "down": 1}}]}"#,
        ),
        (
            "node.json",
            r#"{"faults": [{"delay": {"nodes": [7], "from": 1, "until": 2, "by": 1}}]}"#,
        ),
        ("share.json", r#"{"faults": [{"loss": {"share": 2000}}]}"#),
        ("unknown.json", r#"{"faults": [{"quake": {}}]}"#),
        ("text.json", "loss"),
    ] {
        terminal.write(file, text);
    }
    for (flags, part) in [
        ("", "--workload"),
        ("-w ech", "echo"),
        ("-w echo --node-count 0", "node-count is 0"),
        ("-w echo --node-count 64", "1 to 63"),
        (
            "-w echo --concurrency many",
            "'many' is not a number of clients",
        ),
        ("-w echo --rate 0", "rate is 0"),
        ("-w echo --time-limit=-1", "--time-limit"),
        ("-w echo --time-limit 1e30", "--time-limit"),
        ("-w echo --nemesis-interval nan", "--nemesis-interval"),
        ("-w echo --availability most", "'most' is not 'total'"),
        ("-w echo --availability 2", "availability is 2"),
        ("-w echo --topology ring", "topology"),
        ("-w echo --latency-dist normal", "uniform"),
        ("-w echo --nemesis kill", "partition"),
        ("-w echo --faults missing.json", "cannot read missing.json"),
        (
            "-w echo --faults text.json",
            "text.json is not a fault plan",
        ),
        ("-w echo --faults unknown.json", "unknown variant `quake`"),
        ("-w echo --faults crash.json", "has the fault crash"),
        ("-w echo --faults node.json", "names node 7"),
        ("-w echo --faults share.json", "loss has the share 2000"),
        ("-w echo --bin no/such/node", "cannot start no/such/node"),
        ("-w echo -- --fast", "for a program (--bin)"),
    ] {
        let output = terminal.run(&format!("maelstrom {flags}"));
        assert_eq!(output.code, Some(2), "{flags}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{flags}: {}", output.stderr);
    }
}
