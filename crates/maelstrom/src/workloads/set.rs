//! The workloads `broadcast` and `g-set`: every added element must eventually be read on every
//! node.

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload, value};
use corsair_check::Value;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashSet};

pub(crate) struct Set {
    name: &'static str,
    names: &'static Names,
    is_broadcast: bool,
}

/// The names of requests and fields.
struct Names {
    add: &'static str,
    added: &'static str,
    element: &'static str,
    elements: &'static str,
}

pub(crate) const BROADCAST: Set = Set {
    name: "broadcast",
    names: &Names {
        add: "broadcast",
        added: "broadcast_ok",
        element: "message",
        elements: "messages",
    },
    is_broadcast: true,
};

pub(crate) const GROW_ONLY: Set = Set {
    name: "g-set",
    names: &Names {
        add: "add",
        added: "add_ok",
        element: "element",
        elements: "value",
    },
    is_broadcast: false,
};

impl Workload for Set {
    fn name(&self) -> &'static str {
        self.name
    }

    fn session(&self, start: &Start) -> Box<dyn Session> {
        // One client of each node sends the topology.
        let topology = (self.is_broadcast && start.client < start.nodes).then(|| {
            let topology = start.topology.neighbours(start.nodes);
            Body::new("topology").with("topology", topology)
        });
        Box::new(SetSession {
            names: self.names,
            topology,
            next: start.client.into(),
            clients: start.clients.into(),
            is_final_done: false,
        })
    }

    fn is_idempotent(&self, function: &str) -> bool {
        self.is_broadcast && function == "read"
    }

    fn check(&self, history: &[Record]) -> Findings {
        check(history, self.names.add)
    }
}

struct SetSession {
    names: &'static Names,
    topology: Option<Body>,
    /// The next element. No two clients add equal elements.
    next: i64,
    clients: i64,
    is_final_done: bool,
}

impl Session for SetSession {
    fn setup(&mut self) -> Option<Body> {
        self.topology.take()
    }

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
        let element = self.next;
        self.next += self.clients;
        Some(Call {
            function: self.names.add,
            value: Value::Int(element),
            body: Some(Body::new(self.names.add).with(self.names.element, element)),
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        let Names {
            added, elements, ..
        } = self.names;
        if reply.kind == *added {
            return Ok(Answer::Done(Value::Nil));
        }
        match (&*reply.kind, reply.get(elements)) {
            ("read_ok", Some(Json::Array(values))) => {
                let values = values.iter().map(value);
                Ok(Answer::Done(Value::List(values.collect())))
            }
            _ => Err(format!(
                "'{added}', or 'read_ok' with a list in \"{elements}\""
            )),
        }
    }
}

/// The observations of an element in reads.
#[derive(Default)]
struct Seen {
    /// The time after which the element is known to have been added.
    known: Option<u64>,
    /// The index of the last read that contains the element. `absent` is the index of the last earlier read that does
    /// not.
    present: Option<usize>,
    absent: Option<usize>,
}

/// Checks for lost elements: elements that were certainly added and are missing in the last reads.
fn check(history: &[Record], add: &str) -> Findings {
    let mut findings = Findings::default();
    let mut elements: BTreeMap<&Value, Seen> = BTreeMap::new();
    for record in history.iter().filter(|record| record.function == add) {
        let seen = elements.entry(&record.value).or_default();
        seen.known = record.result().map(|_| record.returned);
    }
    let is_read = |record: &&Record| record.function == "read" && record.result().is_some();
    let mut reads: Vec<&Record> = history.iter().filter(is_read).collect();
    reads.sort_by_key(|read| read.call);
    let (mut repeated, mut invented) = (Vec::new(), Vec::new());
    for (place, read) in reads.iter().enumerate() {
        let list = read.result().and_then(Value::list).unwrap_or_default();
        let mut once = HashSet::with_capacity(list.len());
        for element in list {
            if !once.insert(element) {
                repeated.push(format!("a read has {element} twice"));
                continue;
            }
            let Some(seen) = elements.get_mut(element) else {
                invented.push(format!("a read has {element}, which nobody added"));
                continue;
            };
            if seen.present.map_or(0, |present| present + 1) < place {
                seen.absent = Some(place - 1);
            }
            seen.present = Some(place);
            seen.known = Some(
                seen.known
                    .map_or(read.returned, |known| known.min(read.returned)),
            );
        }
    }
    let (mut lost, mut stable, mut unread) = (Vec::new(), 0, 0);
    for (element, mut seen) in elements {
        if seen.present.map_or(0, |present| present + 1) < reads.len() {
            seen.absent = Some(reads.len() - 1);
        }
        match (seen.known, seen.absent) {
            _ if seen.present > seen.absent => stable += 1,
            (Some(known), Some(absent)) if known < reads[absent].call => {
                lost.push(format!("{element} is missing in the last read"));
            }
            _ => unread += 1,
        }
    }
    if lost.is_empty() && stable == 0 {
        findings.undecided = Some("no element was read at the end".to_owned());
    }
    findings.notes.push(format!(
        "{stable} elements read everywhere at the end, {} lost, {unread} never known",
        lost.len()
    ));
    findings.list("lost element", lost);
    findings.list("repeated element", repeated);
    findings.list("invented element", invented);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair_check::Outcome;

    fn record(function: &'static str, value: Value, call: u64, outcome: Outcome) -> Record {
        Record {
            process: 0,
            function,
            value,
            call,
            returned: call + 1,
            outcome,
            is_final: false,
        }
    }

    fn add(element: i64, call: u64) -> Record {
        record("add", element.into(), call, Outcome::Ok(Value::Nil))
    }

    fn read(elements: &[i64], call: u64) -> Record {
        let list = elements.iter().map(|element| Value::Int(*element));
        record(
            "read",
            Value::Nil,
            call,
            Outcome::Ok(Value::List(list.collect())),
        )
    }

    fn violations(history: &[Record]) -> Vec<String> {
        check(history, "add").violations
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn an_element_may_be_late_but_not_vanish() {
        assert!(violations(&[add(1, 0), read(&[], 10), read(&[1], 20)]).is_empty());
        let lost = violations(&[add(1, 0), read(&[1], 10), read(&[], 20), read(&[], 30)]);
        assert_eq!(lost, ["lost element: 1 is missing in the last read"]);
        let never = violations(&[add(1, 0), read(&[], 20)]);
        assert_eq!(never, ["lost element: 1 is missing in the last read"]);
        // The read began before the element was known to have been added.
        assert!(violations(&[add(2, 0), add(1, 5), read(&[2], 5)]).is_empty());
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn repeated_and_invented_elements_are_violations() {
        let twice = violations(&[add(1, 0), read(&[1, 1], 10)]);
        assert_eq!(twice, ["repeated element: a read has 1 twice"]);
        let invented = violations(&[add(1, 0), read(&[1, 7], 10)]);
        assert_eq!(
            invented,
            ["invented element: a read has 7, which nobody added"]
        );
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn nothing_read_is_undecided() {
        let findings = check(&[add(1, 5), read(&[], 2)], "add");
        assert!(findings.violations.is_empty() && findings.undecided.is_some());
    }
}
