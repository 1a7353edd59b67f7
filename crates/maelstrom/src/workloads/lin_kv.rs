//! The workload `lin-kv`: registers by key that are read, written, and compared and set; all
//! operations must be linearizable.

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload, value};
use corsair_check::models::{KeyValue, KeyValueAction, KeyValueInput};
use corsair_check::{Limits, Operation, Outcome, Value, Verdict, smallest_violation, timeline};
use std::time::Duration;

pub(crate) struct LinKv;

/// The upper bound of values, exclusive.
const VALUES: u32 = 5;
/// The approximate number of operations of all clients on a key.
const OPERATIONS_PER_KEY: u32 = 128;

impl Workload for LinKv {
    fn name(&self) -> &'static str {
        "lin-kv"
    }

    fn session(&self, start: &Start) -> Box<dyn Session> {
        Box::new(LinKvSession {
            is_reader: start.client.is_multiple_of(2) && start.clients > 1,
            is_only: start.clients == 1,
            key: 0,
            left: (OPERATIONS_PER_KEY / start.clients).max(2),
            per_key: (OPERATIONS_PER_KEY / start.clients).max(2),
        })
    }

    fn has_final_phase(&self) -> bool {
        false
    }

    fn patience(&self, latency: Duration) -> Duration {
        (10 * latency).max(Duration::from_secs(1))
    }

    fn check(&self, history: &[Record]) -> Findings {
        let operations: Vec<_> = history.iter().filter_map(operation).collect();
        let limits = Limits::default();
        let report = corsair_check::check(&KeyValue, &operations, &limits);
        let mut findings = Findings::default();
        match &report.verdict {
            Verdict::Linearizable => findings.notes.push(format!(
                "{} operations on {} keys are linearizable",
                operations.len(),
                report.progress.objects
            )),
            Verdict::Violation(violation) => {
                let least = smallest_violation(&KeyValue, &operations, violation, &limits);
                let explanation = timeline::explain(&KeyValue, &least, &limits);
                let key = violation
                    .key
                    .as_ref()
                    .map_or(String::new(), Value::to_string);
                let shown = timeline::text(&KeyValue, &least, &explanation);
                let text = format!("key {key}; {} operations show it:\n\n{shown}", least.len());
                findings.list("not linearizable", vec![text]);
            }
            Verdict::Unknown(bound) => {
                let text = format!("the search for an order reached its bound ({bound:?})");
                findings.undecided = Some(text);
            }
        }
        findings
    }
}

/// Returns the operation of a record; `None` if it had no effect.
fn operation(record: &Record) -> Option<Operation<KeyValueInput, Value>> {
    let [key, argument] = record.value.list()? else {
        return None;
    };
    let action = match (record.function, argument.list()) {
        ("read", _) => KeyValueAction::Get,
        ("cas", Some([from, to])) => KeyValueAction::CompareAndSet(from.clone(), to.clone()),
        _ => KeyValueAction::Put(argument.clone()),
    };
    let completion = match &record.outcome {
        Outcome::Ok(result) => Some((record.returned, result.clone())),
        Outcome::Unknown => None,
        Outcome::Failed(_) => return None,
    };
    let key = key.clone();
    Some(Operation {
        process: record.process,
        input: KeyValueInput { key, action },
        call: record.call,
        completion,
    })
}

struct LinKvSession {
    /// True if the client reads; half of the clients do, and the others write.
    is_reader: bool,
    is_only: bool,
    key: u32,
    /// The number of operations left for this key.
    left: u32,
    per_key: u32,
}

impl Session for LinKvSession {
    fn call(&mut self, draw: &mut dyn FnMut(u32) -> u32, _: Phase) -> Option<Call> {
        if self.left == 0 {
            self.key += 1;
            self.left = self.per_key;
        }
        self.left -= 1;
        let key = i64::from(self.key);
        let mut number = || i64::from(draw(VALUES));
        let (from, to) = (number(), number());
        let (function, argument, body) = match draw(3) {
            _ if self.is_reader => ("read", Value::Nil, Body::new("read")),
            0 if self.is_only => ("read", Value::Nil, Body::new("read")),
            1 => (
                "write",
                Value::Int(to),
                Body::new("write").with("value", to),
            ),
            _ => {
                let body = Body::new("cas").with("from", from).with("to", to);
                ("cas", [Value::Int(from), Value::Int(to)].into(), body)
            }
        };
        Some(Call {
            function,
            value: [Value::Int(key), argument].into(),
            body: Some(body.with("key", key)),
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        match (&*reply.kind, reply.get("value")) {
            ("write_ok" | "cas_ok", _) => Ok(Answer::Done(Value::Bool(true))),
            ("read_ok", Some(read)) => Ok(Answer::Done(value(read))),
            _ => Err("'write_ok', 'cas_ok', or 'read_ok' with the field \"value\"".to_owned()),
        }
    }
}
