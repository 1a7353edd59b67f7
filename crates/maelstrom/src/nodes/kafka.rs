//! Nodes for `kafka`. The first node stores all logs; the other nodes forward requests to it.

use super::lin_kv::Relay;
use crate::{Body, Cluster, Packet};
use corsair::{Actor, Addr, Context, Event, Flow};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// The largest number of messages of a key in one reply.
const MOST_POLLED: usize = 100;

#[derive(Default)]
struct Log {
    messages: Vec<Json>,
    /// The last offset that was processed.
    committed: Option<i64>,
}

/// A node that stores logs. Only the first node does; the others forward their clients' requests to
/// it.
pub(super) struct Kafka {
    relay: Option<Relay>,
    logs: BTreeMap<String, Log>,
}

impl Kafka {
    pub(super) fn new(index: u32, cluster: Cluster) -> Kafka {
        Kafka {
            relay: (index > 0).then(|| Relay::new(cluster.node(0))),
            logs: BTreeMap::new(),
        }
    }

    fn answer(&mut self, body: &mut Body) -> Body {
        let map = |body: &mut Body, name| match body.take(name) {
            Some(Json::Object(map)) => map,
            _ => Map::new(),
        };
        match &*body.kind {
            "send" => {
                let key = body
                    .get("key")
                    .and_then(Json::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let log = self.logs.entry(key).or_default();
                log.messages.push(body.take("msg").unwrap_or_default());
                Body::new("send_ok").with("offset", log.messages.len() - 1)
            }
            "poll" => {
                let polled = map(body, "offsets")
                    .into_iter()
                    .filter_map(|(key, offset)| {
                        let from = usize::try_from(offset.as_i64()?).ok()?;
                        let messages = self.logs.get(&key)?.messages.get(from..)?;
                        let pairs = messages.iter().enumerate().take(MOST_POLLED);
                        let pairs = pairs.map(|(index, message)| {
                            Json::from(vec![(from + index).into(), message.clone()])
                        });
                        Some((key, pairs.collect::<Json>()))
                    });
                Body::new("poll_ok").with("msgs", polled.collect::<Map<_, _>>())
            }
            "commit_offsets" => {
                for (key, offset) in map(body, "offsets") {
                    let log = self.logs.entry(key).or_default();
                    log.committed = log.committed.max(offset.as_i64());
                }
                Body::new("commit_offsets_ok")
            }
            "list_committed_offsets" => {
                let keys = body
                    .get("keys")
                    .and_then(Json::as_array)
                    .into_iter()
                    .flatten();
                let offsets = keys.filter_map(|key| {
                    let key = key.as_str()?;
                    Some((key.to_owned(), self.logs.get(key)?.committed?.into()))
                });
                let offsets = offsets.collect::<Map<_, _>>();
                Body::new("list_committed_offsets_ok").with("offsets", offsets)
            }
            other => Body::error(10, other),
        }
    }

    fn request<C: Context<Packet>>(&mut self, from: Addr, mut body: Body, cx: &mut C) {
        if let Some(relay) = &mut self.relay {
            return relay.pass(from, body, cx);
        }
        let reply = self.answer(&mut body).reply_to(&body);
        cx.send(from, Packet::Body(reply));
    }
}

impl Actor<Packet> for Kafka {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        if let Event::Message { from, body } = event
            && let Packet::Body(body) = body
        {
            self.request(from, body, cx);
        }
        Flow::Continue
    }
}
