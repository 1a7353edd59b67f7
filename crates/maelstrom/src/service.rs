//! The services that nodes can use: key-value stores with three levels of consistency, and
//! timestamps.

use crate::{Body, Packet};
use corsair::{Actor, Context, Event, Flow};
use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};

/// The number of past states from which `seq-kv` may answer.
const VERSIONS: usize = 32;

/// A service, which is an actor.
#[derive(Debug)]
pub(crate) enum Service {
    /// The service `lin-kv`: every request is executed at once.
    Linearizable(Table),
    /// The service `seq-kv`: reads may return a past state, but no client ever goes back to an
    /// earlier one.
    Sequential(Sequential),
    /// The service `lww-kv`: two replicas that are merged at random times.
    LastWriteWins([Replica; 2]),
    /// `lin-tso`: whole numbers from 0.
    Timestamps(u64),
}

type Table = BTreeMap<String, Json>;

impl Service {
    /// Returns the service with this index in [`SERVICES`](crate::SERVICES).
    pub(crate) fn new(index: u32) -> Service {
        match index {
            0 => Service::Linearizable(Table::new()),
            1 => Service::Sequential(Sequential::default()),
            2 => Service::LastWriteWins(Default::default()),
            _ => Service::Timestamps(0),
        }
    }

    fn answer<C: Context<Packet>>(&mut self, from: u32, body: &Body, cx: &mut C) -> Body {
        match self {
            Service::Linearizable(table) => {
                let (write, reply) = execute(body, |key| table.get(key));
                if let Some((key, value)) = write {
                    table.insert(key, value);
                }
                reply
            }
            Service::Sequential(states) => states.answer(from, body, |bound| cx.below(bound)),
            Service::LastWriteWins(replicas) => {
                let [source, target, chosen] = [(); 3].map(|()| cx.below(2) as usize);
                let merged = replicas[source].clone();
                replicas[target].merge(&merged);
                replicas[chosen].answer(body)
            }
            Service::Timestamps(next) if body.kind == "ts" => {
                *next += 1;
                Body::new("ts_ok").with("ts", *next - 1)
            }
            Service::Timestamps(_) => not_supported(body),
        }
    }
}

impl Actor<Packet> for Service {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        let (from, body) = match event {
            Event::Message { from, body } => match body {
                Packet::Body(body) => (from, body),
                Packet::Forwarded(from, body) => (from, body),
                _ => return Flow::Continue,
            },
            _ => return Flow::Continue,
        };
        let reply = self.answer(from.as_u32(), &body, cx).reply_to(&body);
        cx.send(from, Packet::Body(reply));
        Flow::Continue
    }
}

fn not_supported(body: &Body) -> Body {
    Body::error(10, &format!("the service has no request '{}'", body.kind))
}

/// Returns the write and the reply that result from a request.
fn execute<'a>(
    body: &Body,
    get: impl Fn(&str) -> Option<&'a Json>,
) -> (Option<(String, Json)>, Body) {
    let Some(key) = body.get("key").map(Json::to_string) else {
        return (None, Body::error(12, "a request needs a \"key\""));
    };
    let current = get(&key);
    let field = |name| body.get(name).cloned().unwrap_or(Json::Null);
    match (&*body.kind, current) {
        ("read", Some(value)) => (None, Body::new("read_ok").with("value", value.clone())),
        ("write", _) => (Some((key, field("value"))), Body::new("write_ok")),
        ("cas", Some(value)) if *value == field("from") => {
            (Some((key, field("to"))), Body::new("cas_ok"))
        }
        ("cas", Some(value)) => {
            let text = format!("current value {value} is not {}", field("from"));
            (None, Body::error(22, &text))
        }
        ("cas", None) if body.get("create_if_not_exists") == Some(&Json::Bool(true)) => {
            (Some((key, field("to"))), Body::new("cas_ok"))
        }
        ("read" | "cas", None) => (None, Body::error(20, "key does not exist")),
        _ => (None, not_supported(body)),
    }
}

/// The current state, and the data to reconstruct earlier states.
#[derive(Debug, Default)]
pub(crate) struct Sequential {
    table: Table,
    /// The number of writes so far, which is also the number of the current version.
    version: u64,
    /// For each of the last writes: the key, and its previous value.
    undo: VecDeque<(String, Option<Json>)>,
    /// The version that each client has seen.
    seen: BTreeMap<u32, u64>,
}

impl Sequential {
    fn at(&self, version: u64, key: &str) -> Option<&Json> {
        let first = self.version - self.undo.len() as u64;
        let later = self.undo.iter().skip((version - first) as usize);
        match later.into_iter().find(|(changed, _)| changed == key) {
            Some((_, before)) => before.as_ref(),
            None => self.table.get(key),
        }
    }

    fn answer(&mut self, from: u32, body: &Body, mut below: impl FnMut(u32) -> u32) -> Body {
        let oldest = self.version - self.undo.len() as u64;
        let seen = self
            .seen
            .get(&from)
            .map_or(oldest, |seen| oldest.max(*seen));
        let version = seen + u64::from(below((self.version - seen) as u32 + 1));
        let (write, reply) = execute(body, |key| self.at(version, key));
        let is_change = write.is_some_and(|(key, value)| self.at(version, &key) != Some(&value));
        if !is_change {
            self.seen.insert(from, version);
            return reply;
        }
        // A write takes place in the newest state.
        let (write, reply) = execute(body, |key| self.table.get(key));
        if let Some((key, value)) = write {
            let before = self.table.insert(key.clone(), value);
            self.undo.push_back((key, before));
            if self.undo.len() >= VERSIONS {
                self.undo.pop_front();
            }
            self.version += 1;
        }
        self.seen.insert(from, self.version);
        reply
    }
}

/// A replica with a Lamport clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replica {
    clock: u64,
    table: BTreeMap<String, (u64, Json)>,
}

impl Replica {
    fn answer(&mut self, body: &Body) -> Body {
        let (write, reply) = execute(body, |key| self.table.get(key).map(|(_, value)| value));
        if let Some((key, value)) = write {
            self.table.insert(key, (self.clock, value));
            self.clock += 1;
        }
        reply
    }

    /// Takes the later of both values of each key.
    fn merge(&mut self, other: &Replica) {
        self.clock = self.clock.max(other.clock);
        for (key, (time, value)) in &other.table {
            match self.table.get(key) {
                Some((own, _)) if own >= time => {}
                _ => {
                    self.table.insert(key.clone(), (*time, value.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(value: i64) -> Body {
        Body::new("write").with("key", "x").with("value", value)
    }

    fn read() -> Body {
        Body::new("read").with("key", "x")
    }

    // Guarantee: maelstrom-4.
    #[test]
    fn a_sequential_client_never_goes_back_and_others_may_lag() {
        let mut states = Sequential::default();
        for value in 0..100 {
            states.answer(0, &write(value), |_| 0);
        }
        // The writer sees its own write; another client sees the oldest stored state.
        assert_eq!(states.answer(0, &read(), |_| 0).int("value"), Some(99));
        let old = states.answer(1, &read(), |_| 0).int("value").unwrap();
        assert!(old < 99, "{old}");
        let newest = states.answer(1, &read(), |bound| bound - 1).int("value");
        assert_eq!(newest, Some(99));
        assert_eq!(states.answer(1, &read(), |_| 0).int("value"), Some(99));
    }

    // Guarantee: maelstrom-4.
    #[test]
    fn the_later_write_wins_in_both_replicas() {
        let mut replicas = [Replica::default(), Replica::default()];
        replicas[0].answer(&write(1));
        assert_eq!(replicas[1].answer(&read()).int("code"), Some(20));
        replicas[0].answer(&write(2));
        let other = replicas[0].clone();
        replicas[1].merge(&other);
        assert_eq!(replicas[1].answer(&read()).int("value"), Some(2));
    }

    // Guarantee: maelstrom-4.
    #[test]
    fn compare_and_set_fails_with_the_codes_of_the_protocol() {
        let mut table = Replica::default();
        let cas = |from: i64, to: i64| {
            let body = Body::new("cas").with("key", "x");
            body.with("from", from).with("to", to)
        };
        assert_eq!(table.answer(&cas(1, 2)).int("code"), Some(20));
        let create = cas(1, 2).with("create_if_not_exists", true);
        assert_eq!(table.answer(&create).kind, "cas_ok");
        assert_eq!(table.answer(&cas(1, 2)).int("code"), Some(22));
        assert_eq!(table.answer(&cas(2, 3)).kind, "cas_ok");
        assert_eq!(table.answer(&Body::new("read")).int("code"), Some(12));
        assert_eq!(
            table.answer(&Body::new("pop").with("key", 1)).int("code"),
            Some(10)
        );
    }
}
