//! The workload `echo`: nodes must return the values that they receive.

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload, value};
use corsair_check::Value;

pub(crate) struct Echo;

impl Workload for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn session(&self, _: &Start) -> Box<dyn Session> {
        Box::new(EchoSession)
    }

    fn has_final_phase(&self) -> bool {
        false
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn check(&self, history: &[Record]) -> Findings {
        let mut findings = Findings::default();
        let wrong = history
            .iter()
            .filter(|record| record.result() != Some(&record.value));
        let sentences = wrong.map(|record| match record.result() {
            Some(other) => format!("sent {}, got {other}", record.value),
            None => format!("sent {}, got no echo", record.value),
        });
        findings.list("echo", sentences.collect());
        findings
    }
}

struct EchoSession;

impl Session for EchoSession {
    fn call(&mut self, draw: &mut dyn FnMut(u32) -> u32, _: Phase) -> Option<Call> {
        let text = format!("Please echo {}", draw(128));
        Some(Call {
            function: "echo",
            value: Value::Text(text.as_str().into()),
            body: Some(Body::new("echo").with("echo", text)),
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        match (&*reply.kind, reply.get("echo")) {
            ("echo_ok", Some(echo)) => Ok(Answer::Done(value(echo))),
            _ => Err("'echo_ok' with the field \"echo\"".to_owned()),
        }
    }
}
