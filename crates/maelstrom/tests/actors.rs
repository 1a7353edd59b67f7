//! Tests whose nodes are actors.

use corsair::{Actor, Context, Event, Flow};
use corsair_hunt::FaultPlan;
use corsair_maelstrom::{Body, LatencyShape, Packet, Report, Test, TestError, nodes, workloads};
use std::num::NonZeroUsize;
use std::time::Duration;

fn test(workload: &str) -> Test {
    Test {
        node_count: 5,
        concurrency: 10,
        rate: 50.0,
        time_limit: Duration::from_secs(30),
        latency: Duration::from_millis(20),
        latency_shape: LatencyShape::Exponential,
        partitions: Some(Duration::from_secs(3)),
        ..Test::new(workload)
    }
}

// Guarantee: maelstrom-1.
#[test]
fn every_workload_is_solved_in_a_parted_network() {
    for workload in workloads() {
        let report = nodes::run(&test(workload)).unwrap();
        assert!(report.is_valid(), "{report}");
        assert!(report.history.len() > 900, "{report}");
    }
}

// Guarantee: maelstrom-2.
#[test]
fn a_test_has_the_same_digest_and_history_on_any_number_of_workers() {
    for workload in ["broadcast", "kafka", "lin-kv"] {
        let run = |workers| {
            let test = Test {
                workers: NonZeroUsize::new(workers).unwrap(),
                time_limit: Duration::from_secs(10),
                ..test(workload)
            };
            nodes::run(&test).unwrap()
        };
        let one = run(1);
        assert!(one.digest.is_some());
        for workers in 2..=4 {
            let other = run(workers);
            assert_eq!(other.digest, one.digest, "{workload}");
            assert_eq!(other.history, one.history, "{workload}");
        }
    }
}

/// A node that answers each request with the result of a function.
struct Fixed(fn(&Body, u64) -> Body, u64);

impl Actor<Packet> for Fixed {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        if let Event::Message {
            from,
            body: Packet::Body(body),
        } = event
        {
            self.1 += 1;
            let reply = (self.0)(&body, self.1).reply_to(&body);
            cx.send(from, Packet::Body(reply));
        }
        Flow::Continue
    }
}

fn answered(workload: &str, answer: fn(&Body, u64) -> Body) -> Result<Report, TestError> {
    let test = Test {
        node_count: 3,
        concurrency: 6,
        rate: 100.0,
        time_limit: Duration::from_secs(10),
        ..Test::new(workload)
    };
    test.run(move |_, _| Fixed(answer, 0))
}

// Guarantee: maelstrom-3.
#[test]
fn wrong_nodes_are_found() {
    type Wrong = (&'static str, fn(&Body, u64) -> Body, &'static str);
    let wrong: [Wrong; 5] = [
        (
            "echo",
            |_, _| Body::new("echo_ok").with("echo", "no"),
            "echo: sent",
        ),
        (
            "unique-ids",
            |_, n| Body::new("generate_ok").with("id", n),
            "duplicate id: ",
        ),
        (
            "g-set",
            |body, _| match &*body.kind {
                "read" => Body::new("read_ok").with("value", Vec::<i64>::new()),
                _ => Body::new("add_ok"),
            },
            "lost element: ",
        ),
        (
            "pn-counter",
            |body, n| match &*body.kind {
                "read" => Body::new("read_ok").with("value", n),
                _ => Body::new("add_ok"),
            },
            "sum: a node has",
        ),
        (
            "lin-kv",
            |body, n| match &*body.kind {
                "read" => Body::new("read_ok").with("value", n % 5),
                "write" => Body::new("write_ok"),
                _ => Body::new("cas_ok"),
            },
            "not linearizable: key",
        ),
    ];
    for (workload, answer, part) in wrong {
        let report = answered(workload, answer).unwrap();
        let violations = &report.findings.violations;
        assert!(
            violations.iter().any(|text| text.contains(part)),
            "{report}"
        );
        assert!(!report.is_valid() && report.to_string().contains("INVALID"));
    }
}

// Guarantee: maelstrom-5.
#[test]
fn answers_without_their_fields_are_named() {
    for (workload, part) in [
        ("echo", "expected 'echo_ok'"),
        ("unique-ids", "expected 'generate_ok'"),
        ("broadcast", "n0 answers"),
        ("g-counter", "expected 'add_ok'"),
        ("lin-kv", "expected 'write_ok'"),
        ("kafka", "expected '"),
    ] {
        let answer: fn(&Body, u64) -> Body = match workload {
            "broadcast" => |_, _| Body::error(10, "what?"),
            _ => |_, _| Body::new("hello"),
        };
        let error = answered(workload, answer).unwrap_err().to_string();
        assert!(error.contains(part), "{workload}: {error}");
    }
}

#[test]
fn a_node_that_never_answers_leaves_unknown_operations() {
    struct Deaf;
    impl Actor<Packet> for Deaf {
        fn on<C: Context<Packet>>(&mut self, _: Event<Packet>, _: &mut C) -> Flow {
            Flow::Continue
        }
    }
    let report = Test::new("lin-kv").run(|_, _| Deaf).unwrap();
    assert!(!report.is_valid());
    let violations = report.findings.violations.join("\n");
    assert!(violations.contains("succeeded"), "{violations}");
    let error = Test::new("broadcast").run(|_, _| Deaf).unwrap_err();
    assert!(
        error.to_string().contains("does not answer the setup"),
        "{error}"
    );
}

// Guarantee: maelstrom-5.
#[test]
fn parameters_and_plans_that_do_not_fit_are_refused() {
    let plan = |json: &str| Test {
        node_count: 2,
        faults: serde_json::from_str::<FaultPlan>(json).unwrap(),
        ..Test::new("echo")
    };
    let side = r#"{"faults": [{"partition": {"from": 1, "until": 90001, "side": [0]}}]}"#;
    for (test, part) in [
        (Test::new("ech"), "'ech' is not a workload"),
        (
            Test {
                node_count: 0,
                ..Test::new("echo")
            },
            "node-count is 0",
        ),
        (
            Test {
                node_count: 64,
                ..Test::new("echo")
            },
            "1 to 63",
        ),
        (
            Test {
                concurrency: 0,
                ..Test::new("echo")
            },
            "concurrency is 0",
        ),
        (
            Test {
                rate: f64::NAN,
                ..Test::new("echo")
            },
            "rate is NaN",
        ),
        (
            Test {
                rate: 0.0,
                ..Test::new("echo")
            },
            "rate is 0",
        ),
        (
            Test {
                time_limit: Duration::ZERO,
                ..Test::new("echo")
            },
            "time-limit is 0",
        ),
        (
            Test {
                availability: Some(2.0),
                ..Test::new("echo")
            },
            "availability is 2",
        ),
        (
            plan(r#"{"faults": [{"crash": {"nodes": [0], "at": 1, "down": 1}}]}"#),
            "has the fault crash; a test supports loss",
        ),
        (
            plan(r#"{"absent": [{"node": 0, "from": 1, "until": 2}]}"#),
            "has the fault absence",
        ),
        (
            plan(r#"{"faults": [{"delay": {"nodes": [2], "from": 1, "until": 2, "by": 1}}]}"#),
            "names node 2",
        ),
        (
            plan(r#"{"faults": [{"loss": {"share": 1001}}]}"#),
            "loss has the share 1001",
        ),
        (plan(side), "after the end"),
    ] {
        let error = nodes::run(&test).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
