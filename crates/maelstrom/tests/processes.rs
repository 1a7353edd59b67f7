//! Tests whose nodes are processes.

use corsair_maelstrom::{Program, Report, Test, TestError};
use std::path::PathBuf;
use std::time::Duration;

/// The example `node`, which cargo builds beside the tests.
fn node() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let directory = test.parent().and_then(|path| path.parent()).unwrap();
    directory
        .join("examples")
        .join(format!("node{}", std::env::consts::EXE_SUFFIX))
}

fn run(workload: &str, mode: &str) -> Result<Report, TestError> {
    let test = Test {
        node_count: 2,
        concurrency: 4,
        rate: 200.0,
        time_limit: Duration::from_millis(500),
        ..Test::new(workload)
    };
    test.run_processes(&Program {
        bin: node(),
        args: vec![mode.to_owned()],
        log_stderr: false,
    })
}

// Guarantee: maelstrom-1.
#[test]
fn a_process_solves_workloads() {
    for workload in ["echo", "unique-ids"] {
        let report = run(workload, "").unwrap();
        assert!(report.is_valid(), "{report}");
        assert!(report.history.len() > 20, "{report}");
    }
}

// Guarantee: maelstrom-3.
#[test]
fn a_wrong_process_is_found() {
    let report = run("unique-ids", "same").unwrap();
    let violations = report.findings.violations.join("\n");
    assert!(violations.contains("duplicate id"), "{report}");
}

// Guarantee: maelstrom-5.
#[test]
fn processes_that_misbehave_end_the_test_with_a_sentence() {
    for (mode, part) in [
        ("dead", "ended (exit status: 3)"),
        ("dead", "cannot open the store"),
        ("text", "wrote a line that is not JSON"),
        ("long", "a line of more than 1048576 bytes"),
        ("exits", "the disk is full"),
        ("stray", "to 'n99', which does not exist"),
    ] {
        let error = run("echo", mode).unwrap_err().to_string();
        assert!(error.contains(part), "{mode}: {error}");
    }
    // Which bound is reached first depends on the machine.
    let error = run("echo", "flood").unwrap_err().to_string();
    let is_flood = error.contains("floods the network");
    assert!(
        is_flood || error.contains("does not read its standard input"),
        "{error}"
    );
    let program = Program {
        bin: "no/such/node".into(),
        args: Vec::new(),
        log_stderr: false,
    };
    let error = Test::new("echo").run_processes(&program).unwrap_err();
    assert!(
        error.to_string().contains("cannot start no/such/node"),
        "{error}"
    );
}
