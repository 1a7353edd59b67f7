//! The workloads `g-counter` and `pn-counter`: at the end, every node must have the sum of all
//! additions.

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload};
use corsair_check::{Outcome, Value};

pub(crate) struct Counter {
    name: &'static str,
    is_grow_only: bool,
}

pub(crate) const GROW_ONLY: Counter = Counter {
    name: "g-counter",
    is_grow_only: true,
};

pub(crate) const POSITIVE_NEGATIVE: Counter = Counter {
    name: "pn-counter",
    is_grow_only: false,
};

impl Workload for Counter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn session(&self, _: &Start) -> Box<dyn Session> {
        Box::new(CounterSession {
            is_grow_only: self.is_grow_only,
            is_final_done: false,
        })
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn check(&self, history: &[Record]) -> Findings {
        let mut findings = Findings::default();
        let sums = possible_sums(history);
        let finals = history.iter().filter(|record| record.is_final);
        let reads: Vec<i64> = finals.filter_map(|record| record.result()?.int()).collect();
        let is_possible = |read: i64| sums.iter().any(|(from, to)| (*from..=*to).contains(&read));
        let wrong = reads.iter().filter(|read| !is_possible(**read));
        let expected: Vec<String> = sums
            .iter()
            .map(|(from, to)| {
                if from == to {
                    from.to_string()
                } else {
                    format!("{from} to {to}")
                }
            })
            .take(10)
            .collect();
        let expected = expected.join(", ");
        let sentences =
            wrong.map(|read| format!("a node has {read} at the end; expected {expected}"));
        findings.list("sum", sentences.collect());
        findings
            .notes
            .push(format!("final reads {reads:?}; possible sums {expected}"));
        findings
    }
}

/// Returns the ranges of possible sums: all additions that succeeded, and any subset of those whose
/// outcome is unknown.
fn possible_sums(history: &[Record]) -> Vec<(i64, i64)> {
    let adds = || history.iter().filter(|record| record.function == "add");
    let delta = |record: &Record| record.value.int().unwrap_or(0);
    let certain: i64 = adds()
        .filter(|record| record.result().is_some())
        .map(delta)
        .sum();
    let mut ranges = vec![(certain, certain)];
    for add in adds().filter(|record| record.outcome == Outcome::Unknown) {
        let delta = delta(add);
        let moved = ranges.iter().map(|(from, to)| (from + delta, to + delta));
        let mut all: Vec<(i64, i64)> = ranges.iter().copied().chain(moved).collect();
        all.sort_unstable();
        ranges.clear();
        for (from, to) in all {
            match ranges.last_mut() {
                Some((_, last)) if from <= *last + 1 => *last = to.max(*last),
                _ => ranges.push((from, to)),
            }
        }
    }
    ranges
}

struct CounterSession {
    is_grow_only: bool,
    is_final_done: bool,
}

impl Session for CounterSession {
    fn call(&mut self, draw: &mut dyn FnMut(u32) -> u32, phase: Phase) -> Option<Call> {
        if phase == Phase::Final && std::mem::replace(&mut self.is_final_done, true) {
            return None;
        }
        if phase == Phase::Final || draw(2) == 0 {
            return Some(Call {
                function: "read",
                value: Value::Nil,
                body: Some(Body::new("read")),
            });
        }
        let delta = match self.is_grow_only {
            true => i64::from(draw(5)),
            false => i64::from(draw(10)) - 5,
        };
        Some(Call {
            function: "add",
            value: Value::Int(delta),
            body: Some(Body::new("add").with("delta", delta)),
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        match (&*reply.kind, reply.int("value")) {
            ("add_ok", _) => Ok(Answer::Done(Value::Nil)),
            ("read_ok", Some(sum)) => Ok(Answer::Done(Value::Int(sum))),
            _ => Err("'add_ok', or 'read_ok' with a whole number in \"value\"".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(delta: i64, outcome: Outcome) -> Record {
        Record {
            process: 0,
            function: "add",
            value: delta.into(),
            call: 0,
            returned: 1,
            outcome,
            is_final: false,
        }
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn additions_whose_outcome_is_unknown_may_count() {
        let ok = || Outcome::Ok(Value::Nil);
        let mut history = vec![
            add(5, ok()),
            add(-2, ok()),
            add(10, Outcome::Unknown),
            add(1, Outcome::Unknown),
            add(100, Outcome::Failed(Value::Nil)),
        ];
        assert_eq!(possible_sums(&history), [(3, 4), (13, 14)]);
        for (read, is_valid) in [(3, true), (14, true), (5, false), (103, false)] {
            let mut last = add(0, Outcome::Ok(Value::Int(read)));
            last.function = "read";
            last.is_final = true;
            history.push(last);
            let findings = GROW_ONLY.check(&history);
            assert_eq!(findings.violations.is_empty(), is_valid, "{read}");
            history.pop();
        }
    }
}
