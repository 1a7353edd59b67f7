//! Tests of histories in every format, and of the errors for malformed ones.

use corsair_check::models::{self, KeyValue, Register};
use corsair_check::read::parse;
use corsair_check::{Limits, Outcome, Value, Verdict, check};

fn refused(text: &str) -> String {
    parse(text.as_bytes())
        .expect_err("the history was read")
        .to_string()
}

// Guarantee: check-5.
#[test]
fn formats_of_one_history_give_the_same_operations() {
    let edn = "[{:process 0, :type :invoke, :f :write, :value 3, :index 0}
                {:process :nemesis, :type :info, :f :start, :value \"cut\"}
                #jepsen.history.Op{:process 0, :type :ok, :f :write, :value 3}
                {:process 1 :type :invoke :f :cas :value [3 4]} ; a comment
                #_ {:ignored true}
                {:process 1 :type :info :f :cas :value [3 4] :error \"timeout\"}]";
    let json = r#"[{"process":0,"type":"invoke","f":"write","value":3},
        {"process":"nemesis","type":"info","f":"start"},
        {"process":0,"type":"ok","f":"write","value":3},
        {"process":1,"type":"invoke","f":"cas","value":[3,4]},
        {"process":1,"type":"info","f":"cas","value":[3,4]}]"#;
    let lines = "{\"process\":0,\"type\":\"invoke\",\"f\":\"write\",\"value\":3}
        {\"process\":0,\"type\":\"ok\",\"f\":\"write\",\"value\":3}
        {\"process\":1,\"type\":\"invoke\",\"f\":\"cas\",\"value\":[3,4]}";
    let log = "INFO  jepsen.core - nodes are up\n\
               INFO  jepsen.util - 0\t:invoke\t:write\t3\n\
               INFO  jepsen.util - :nemesis\t:info\t:start\tnil\n\
               INFO  jepsen.util - 0\t:ok\t:write\t3\n\
               INFO  jepsen.util - 1\t:invoke\t:cas\t[3 4]\n";
    let complete = r#"{"process":0,"f":"write","value":3,"call":0,"return":1,"output":3}
        {"process":1,"f":"cas","value":[3,4],"call":2}"#;
    let strip = |text: &str| {
        let mut records = parse(text.as_bytes()).unwrap();
        records.iter_mut().for_each(|record| record.line = 0);
        records
    };
    let expected = strip(edn);
    assert_eq!(expected.len(), 2);
    assert_eq!(expected[1].outcome, Outcome::Unknown);
    for text in [json, lines, log, complete] {
        assert_eq!(strip(text), expected, "{text}");
    }
}

#[test]
fn values_of_edn_are_read() {
    let text = r#"{:process 0 :type :invoke :f :write
        :value [nil true -7 +3 12N 1.5 2.5M "a\n\u0041\"" \a \newline sym/bol :k #{1} (2) {:a 1} #inst "x" 1/2]}"#;
    let records = parse(text.as_bytes()).unwrap();
    let values = records[0].value.list().unwrap();
    let shown: Vec<String> = values.iter().map(Value::to_string).collect();
    assert_eq!(
        shown,
        [
            "nil", "true", "-7", "3", "12", "1.5", "2.5", "a\nA\"", "a", "\n", "sym/bol", "k",
            "[1]", "[2]", "{a 1}", "x", "1/2"
        ]
    );
}

#[test]
fn keys_within_values_are_taken_apart() {
    let text = "{:process 0 :type :invoke :f :write :value [7 1]}
        {:process 0 :type :ok :f :write :value [7 1]}
        {:process 1 :type :invoke :f :cas :value [7 [1 2]]}
        {:process 1 :type :ok :f :cas :value [7 [1 2]]}
        {:process 0 :type :invoke :f :read :value [7 nil]}
        {:process 0 :type :ok :f :read :value [7 1]}";
    let records = parse(text.as_bytes()).unwrap();
    assert!(
        records
            .iter()
            .all(|record| record.key == Some(Value::Int(7)))
    );
    let history = models::operations::<Register>(&records).unwrap();
    let report = check(&Register, &history, &Limits::default());
    assert!(
        matches!(report.verdict, Verdict::Violation(_)),
        "a read of 1 after 1 became 2"
    );
    assert!(models::operations::<KeyValue>(&records).is_ok());
}

// Guarantee: check-6.
#[test]
fn malformed_histories_are_refused_with_the_line_and_the_reason() {
    let invoke = "{:process 0 :type :invoke :f :read}";
    for (text, said) in [
        ("", "line 1: the history is empty"),
        ("hello\nworld", "line 1: the history is empty"),
        ("{:process 0", "line 1: the history ends within a value"),
        (
            "[{:process 0 :type :invoke :f :read}",
            "the history ends too early",
        ),
        (
            "{:type :invoke :f :read}",
            "line 1: an event has no :process",
        ),
        ("{:process 0 :f :read}", "line 1: an event has no :type"),
        ("{:process 0 :type :invoke}", "line 1: an event has no :f"),
        ("{:process -1 :type :invoke :f :read}", "negative"),
        (
            "\n\n{:process 0 :type :begin :f :read}",
            "line 3: ':begin' is not a type",
        ),
        (
            "{:process 0 :type :ok :f :read}",
            "process 0 returns, but has not called",
        ),
        (
            &format!("{invoke}\n{invoke}"),
            "line 2: process 0 calls while its operation of line 1",
        ),
        (
            &format!("{invoke}\n{{:process 0 :type :ok :f :write}}"),
            "returns from :write, but has",
        ),
        ("{:process}", "the key 'process' of a map has no value"),
        ("(1 2)", "'1' is not an event"),
        ("]", "the history is empty"),
        ("[}", "a bracket closes nothing"),
        ("{:a \"x", "a string has no end"),
        ("{:a \"\\uZZZZ\"}", "'\\uZZZZ' is not a character"),
        ("[{\"process\": 0,", "the JSON ends too early"),
        (
            "[{\"process\": 0, \"type\": \"invoke\"}]",
            "event 1: an event has no :f",
        ),
        ("{\"process\": 18446744073709551615}", "above 2^63"),
        (
            "{\"process\":0,\"f\":\"read\",\"call\":9,\"return\":3}",
            "returns before it is called",
        ),
        (
            "{\"process\":0,\"f\":\"read\",\"call\":-9}",
            "whole numbers",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(said), "{text:?} → {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert!(
        parse(b"{:process 0 :f \xff}")
            .unwrap_err()
            .problem
            .contains("UTF-8")
    );
}

// Guarantee: check-6.
#[test]
fn bombs_are_refused_before_they_take_the_stack_or_the_memory() {
    for open in ["[", "(", "{", "#{", "^", "#_", "#a ", "{:a ", "[{:a ["] {
        let bomb = format!("{{:process 0 :value {}", open.repeat(1_000_000));
        let error = refused(&bomb);
        assert!(
            error.contains("nested more than 64 deep"),
            "{open} → {error}"
        );
    }
    let error = refused(&format!("[{{\"a\": {}", "[".repeat(1_000_000)));
    assert!(error.contains("recursion limit"), "{error}");
    let error = refused(&format!("{{:process 0 :value {}}}", "9".repeat(1_000_000)));
    assert!(error.contains("more than 64 digits"), "{error}");
}

// Guarantee: check-6.
#[test]
fn an_operation_that_the_model_lacks_is_named() {
    let records = parse(b"\n{:process 0 :type :invoke :f :steal :value 1}").unwrap();
    let error = models::operations::<Register>(&records)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("line 2: the model register has no operation :steal 1"),
        "{error}"
    );
}

// Guarantee: check-6.
#[test]
fn any_bytes_give_operations_or_an_error() {
    let mut runner = proptest::test_runner::TestRunner::default();
    let alphabet = proptest::sample::select(
        &[
            "{",
            "}",
            "[",
            "]",
            "#",
            "_",
            "\"",
            "\\",
            ":process ",
            "0 ",
            ":type ",
            ":invoke ",
            ":f ",
            ":read ",
            "^",
            ";",
            "\n",
            "jepsen.util - ",
            "\u{e9}",
            "1/",
            "(",
            ")",
        ][..],
    );
    let text = proptest::collection::vec(alphabet, 0..40);
    runner
        .run(&text, |parts| {
            drop(parse(parts.concat().as_bytes()));
            Ok(())
        })
        .unwrap();
}
