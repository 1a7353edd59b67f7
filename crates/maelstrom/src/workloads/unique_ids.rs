//! The workload `unique-ids`: no two requests may get the same id.

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload, value};
use corsair_check::Value;
use std::collections::HashMap;

pub(crate) struct UniqueIds;

impl Workload for UniqueIds {
    fn name(&self) -> &'static str {
        "unique-ids"
    }

    fn session(&self, _: &Start) -> Box<dyn Session> {
        Box::new(IdSession)
    }

    fn has_final_phase(&self) -> bool {
        false
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn check(&self, history: &[Record]) -> Findings {
        let mut counts: HashMap<&Value, u32> = HashMap::with_capacity(history.len());
        for id in history.iter().filter_map(Record::result) {
            *counts.entry(id).or_default() += 1;
        }
        let repeated = counts.iter().filter(|(_, count)| **count > 1);
        let mut repeated: Vec<(&Value, u32)> = repeated.map(|(id, count)| (*id, *count)).collect();
        repeated.sort_unstable();
        let sentences = repeated.into_iter();
        let mut findings = Findings::default();
        findings.list(
            "duplicate id",
            sentences
                .map(|(id, count)| format!("{id} was given {count} times"))
                .collect(),
        );
        findings
    }
}

struct IdSession;

impl Session for IdSession {
    fn call(&mut self, _: &mut dyn FnMut(u32) -> u32, _: Phase) -> Option<Call> {
        Some(Call {
            function: "generate",
            value: Value::Nil,
            body: Some(Body::new("generate")),
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        match (&*reply.kind, reply.get("id")) {
            ("generate_ok", Some(id)) => Ok(Answer::Done(value(id))),
            _ => Err("'generate_ok' with the field \"id\"".to_owned()),
        }
    }
}
