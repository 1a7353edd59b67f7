//! The workload `kafka`: logs of messages by key, which are read from offsets.

mod check;

use crate::Body;
use crate::history::Record;
use crate::workload::{Answer, Call, Findings, Phase, Session, Start, Workload, value};
use corsair_check::Value;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

pub(crate) struct Kafka;

impl Workload for Kafka {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn session(&self, start: &Start) -> Box<dyn Session> {
        Box::new(KafkaSession {
            next: start.client.into(),
            clients: start.clients.into(),
            key_count: start.key_count,
            writes_per_key: start.writes_per_key,
            sent: 0,
            offsets: BTreeMap::new(),
            pending: Pending::None,
            end: End::Assign,
        })
    }

    fn is_idempotent(&self, function: &str) -> bool {
        function == "assign"
    }

    fn may_always_fail(&self, function: &str) -> bool {
        function == "crash"
    }

    fn check(&self, history: &[Record]) -> Findings {
        check::check(history)
    }
}

/// The purpose of the pending request.
enum Pending {
    None,
    /// The key and message of a send.
    Send(String, i64),
    Poll,
    /// The result of a poll whose offsets are being committed.
    Commit(Value),
    /// The request for the committed offsets of these keys.
    Assign(Vec<String>),
}

/// The steps of the final phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client is assigned all keys, and reads them from the beginning.
    Assign,
    /// The client polls the keys until there are no new messages.
    Poll,
    Done,
}

struct KafkaSession {
    /// The next message. No two clients send equal messages.
    next: i64,
    clients: i64,
    key_count: u32,
    writes_per_key: u32,
    sent: u32,
    /// The next offset of each assigned key.
    offsets: BTreeMap<String, i64>,
    pending: Pending,
    end: End,
}

impl KafkaSession {
    /// Returns the first key in use, which increases after a key has been written often enough.
    fn first_key(&self) -> u32 {
        let per_round = self.writes_per_key * self.key_count;
        self.sent * self.clients as u32 / per_round.max(1) * self.key_count
    }

    fn assign(&mut self, keys: Vec<String>, is_from_start: bool) -> Call {
        let list: Vec<Value> = keys.iter().map(|key| key.as_str().into()).collect();
        // Reading from the beginning needs no committed offsets, but the request shows that the node is alive.
        let body = Body::new("list_committed_offsets").with("keys", Json::from(keys.clone()));
        if is_from_start {
            self.offsets = keys.iter().map(|key| (key.clone(), 0)).collect();
        }
        self.pending = Pending::Assign(keys);
        Call {
            function: "assign",
            value: Value::List(list.into()),
            body: Some(body),
        }
    }

    fn poll(&mut self) -> Call {
        self.pending = Pending::Poll;
        let offsets: Map<String, Json> = (self.offsets.iter())
            .map(|(key, offset)| (key.clone(), Json::from(*offset)))
            .collect();
        Call {
            function: "poll",
            value: Value::Nil,
            body: Some(Body::new("poll").with("offsets", offsets)),
        }
    }

    fn finish(&mut self) -> Option<Call> {
        match self.end {
            End::Assign => {
                self.end = End::Poll;
                let last = self.first_key() + 2 * self.key_count;
                Some(self.assign((0..last).map(|key| key.to_string()).collect(), true))
            }
            End::Poll => Some(self.poll()),
            End::Done => None,
        }
    }

    /// Reads the messages of a poll, advances the offsets, and commits them.
    fn polled(&mut self, reply: &Body) -> Result<Answer, String> {
        let expected = || "'poll_ok' with lists of [offset, message] in \"msgs\"".to_owned();
        let (true, Some(Json::Object(all))) = (reply.kind == "poll_ok", reply.get("msgs")) else {
            return Err(expected());
        };
        let mut committed = Map::new();
        for (key, pairs) in all {
            let pairs = pairs.as_array().ok_or_else(expected)?;
            let offset = |pair: &Json| match pair.as_array().map(Vec::as_slice) {
                Some([offset, _]) => offset.as_i64(),
                _ => None,
            };
            let offsets = pairs.iter().map(offset).collect::<Option<Vec<i64>>>();
            let Some(last) = offsets.ok_or_else(expected)?.into_iter().max() else {
                continue;
            };
            if let Some(next) = self.offsets.get_mut(key) {
                *next = (last + 1).max(*next);
            }
            committed.insert(key.clone(), last.into());
        }
        let result = value(&Json::Object(all.clone()));
        if committed.is_empty() {
            if self.end == End::Poll {
                self.end = End::Done;
            }
            return Ok(Answer::Done(result));
        }
        self.pending = Pending::Commit(result);
        Ok(Answer::Ask(
            Body::new("commit_offsets").with("offsets", committed),
        ))
    }
}

impl Session for KafkaSession {
    fn call(&mut self, draw: &mut dyn FnMut(u32) -> u32, phase: Phase) -> Option<Call> {
        if phase == Phase::Final {
            return self.finish();
        }
        let first = self.first_key();
        let key = |draw: &mut dyn FnMut(u32) -> u32| (first + draw(self.key_count)).to_string();
        Some(match draw(100) {
            0 => Call {
                function: "crash",
                value: Value::Nil,
                body: None,
            },
            1..10 => {
                let keys: Vec<String> = (0..=draw(3)).map(|_| key(draw)).collect();
                let is_from_start = draw(4) == 0;
                self.assign(keys, is_from_start)
            }
            10..55 => self.poll(),
            _ => {
                let (key, message) = (key(draw), self.next);
                self.next += self.clients;
                self.sent += 1;
                let body = Body::new("send")
                    .with("key", key.as_str())
                    .with("msg", message);
                let value = [key.as_str().into(), Value::Int(message)].into();
                self.pending = Pending::Send(key, message);
                Call {
                    function: "send",
                    value,
                    body: Some(body),
                }
            }
        })
    }

    fn answer(&mut self, reply: &Body) -> Result<Answer, String> {
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::Send(key, message) => match (&*reply.kind, reply.int("offset")) {
                ("send_ok", Some(offset)) => {
                    let result = [key.as_str().into(), Value::Int(offset), Value::Int(message)];
                    Ok(Answer::Done(result.into()))
                }
                _ => Err("'send_ok' with a whole number in \"offset\"".to_owned()),
            },
            Pending::Poll => self.polled(reply),
            Pending::Commit(result) => match &*reply.kind {
                "commit_offsets_ok" => Ok(Answer::Done(result)),
                _ => Err("'commit_offsets_ok'".to_owned()),
            },
            Pending::Assign(keys) => {
                let (true, Some(Json::Object(committed))) = (
                    reply.kind == "list_committed_offsets_ok",
                    reply.get("offsets"),
                ) else {
                    return Err("'list_committed_offsets_ok' with a map in \"offsets\"".to_owned());
                };
                let known = std::mem::take(&mut self.offsets);
                let offset = |key: &String| {
                    let committed = || Some(committed.get(key)?.as_i64()? + 1);
                    known.get(key).copied().or_else(committed).unwrap_or(0)
                };
                let list: Vec<Value> = keys.iter().map(|key| key.as_str().into()).collect();
                self.offsets = keys.iter().map(|key| (key.clone(), offset(key))).collect();
                Ok(Answer::Done(Value::List(list.into())))
            }
            Pending::None => Err("no reply".to_owned()),
        }
    }

    fn failed(&mut self) {
        // The client continues as another process, which has no assigned keys, so a failed final poll assigns them
        // again.
        self.pending = Pending::None;
        self.offsets.clear();
        if self.end == End::Poll {
            self.end = End::Assign;
        }
    }
}
