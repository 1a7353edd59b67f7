//! `corsair check`: verdicts, exit codes, drawings, refusals.

use crate::terminal::{Terminal, picture};

const STALE: &str = "{:process 0 :type :invoke :f :put :key 1 :value 5}
{:process 0 :type :ok :f :put :key 1 :value 5}
{:process 1 :type :invoke :f :get :key 1 :value nil}
{:process 1 :type :ok :f :get :key 1 :value nil}
{:process 2 :type :invoke :f :get :key 2 :value nil}
{:process 2 :type :ok :f :get :key 2 :value nil}
";

#[test]
fn a_violation_is_shown_drawn_and_reported_by_the_exit_code() {
    let terminal = Terminal::new();
    terminal.write("history.edn", STALE);
    let output = terminal.run("check history.edn --model kv --svg out/why.svg");
    assert_eq!(output.code, Some(1));
    let said = output.stdout;
    for part in [
        "3 operations of 2 objects",
        "key 1; 2 operations show it",
        "cannot follow",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let drawing = picture(&terminal, "out/why.svg");
    assert!(drawing.contains("get() → nil"));
}

#[test]
fn a_consistent_history_succeeds() {
    let terminal = Terminal::new();
    terminal.write(
        "history.edn",
        &STALE.replace(
            ":get :key 1 :value nil}\n{:process 2",
            ":get :key 1 :value 5}\n{:process 2",
        ),
    );
    let said = terminal.succeed("check history.edn --model kv");
    assert!(said.contains("\nlinearizable\n"), "{said}");
}

#[test]
fn an_undecided_check_says_which_bound_it_reached() {
    let terminal = Terminal::new();
    let calls = (0..40).map(|n| format!("{{:process {n} :type :invoke :f :write :value {n}}}\n"));
    let reads = (100..140).map(|n| format!("{{:process {n} :type :invoke :f :read :value nil}}\n"));
    let done = (0..40).map(|n| format!("{{:process {n} :type :ok :f :write :value {n}}}\n"));
    let values = (100..140).map(|n| {
        format!(
            "{{:process {n} :type :ok :f :read :value {}}}\n",
            if n == 139 { -1 } else { n - 100 }
        )
    });
    let history: String = calls.chain(reads).chain(done).chain(values).collect();
    terminal.write("hard.edn", &history);
    let output = terminal.run("check hard.edn --model register --memory 1");
    assert_eq!(output.code, Some(3));
    let said = output.stdout;
    assert!(
        said.contains("unknown: the memory was not enough (--memory); 0 of 1 objects"),
        "{said}"
    );
}

#[test]
fn deliveries_are_checked_by_the_same_command() {
    let terminal = Terminal::new();
    terminal.write(
        "queue.edn",
        "{:process 0 :type :invoke :f :send :value 1}
{:process 0 :type :ok :f :send :value 1}",
    );
    let output = terminal.run("check queue.edn --model deliveries");
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("1 lost: line 1"));
}

#[test]
fn bad_histories_are_refused_in_one_sentence() {
    let terminal = Terminal::new();
    terminal.write("bomb.edn", &"[".repeat(100_000));
    terminal.write("other.edn", "{:process 0 :type :invoke :f :steal}");
    for (line, said) in [
        (
            "check bomb.edn --model kv",
            "bomb.edn: line 1: values are nested more than 64 deep",
        ),
        (
            "check other.edn --model kv",
            "line 1: the model kv has no operation :steal",
        ),
        ("check other.edn --model abacus", "abacus"),
        ("check missing.edn --model kv", "cannot read missing.edn"),
        ("check other.edn --model kv --memory 0", "memory"),
    ] {
        let error = terminal.refuse(line);
        assert!(error.contains(said), "{line} → {error}");
    }
}
