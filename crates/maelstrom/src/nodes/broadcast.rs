//! A node that sends new values to its neighbours, and repeats them until the neighbours have
//! acknowledged them.

use crate::{Body, Cluster, Packet};
use corsair::{Actor, Addr, Context, Event, Flow, Token};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const RETRY: Token = Token::new(0);
/// The time after which unacknowledged messages are sent again.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Broadcast {
    cluster: Cluster,
    index: u32,
    /// The values, in the order of arrival.
    messages: Vec<Json>,
    known: BTreeSet<String>,
    /// For each neighbour, the values that it has not acknowledged.
    unacknowledged: BTreeMap<Addr, BTreeMap<String, Json>>,
}

impl Broadcast {
    pub(super) fn new(index: u32, cluster: Cluster) -> Broadcast {
        Broadcast {
            cluster,
            index,
            messages: Vec::new(),
            known: BTreeSet::new(),
            unacknowledged: BTreeMap::new(),
        }
    }

    fn learn<C: Context<Packet>>(&mut self, from: Addr, message: Json, cx: &mut C) {
        let key = message.to_string();
        if !self.known.insert(key.clone()) {
            return;
        }
        for (neighbour, waiting) in &mut self.unacknowledged {
            if *neighbour != from {
                waiting.insert(key.clone(), message.clone());
                let body = Body::new("gossip").with("messages", Json::from(vec![message.clone()]));
                cx.send(*neighbour, Packet::Body(body));
            }
        }
        self.messages.push(message);
    }

    fn retry<C: Context<Packet>>(&mut self, cx: &mut C) {
        for (neighbour, waiting) in &self.unacknowledged {
            if !waiting.is_empty() {
                let messages: Vec<Json> = waiting.values().cloned().collect();
                let body = Body::new("gossip").with("messages", messages);
                cx.send(*neighbour, Packet::Body(body));
            }
        }
        cx.timer(PATIENCE, RETRY);
    }

    fn request<C: Context<Packet>>(&mut self, from: Addr, mut body: Body, cx: &mut C) {
        let list = |body: &mut Body| match body.take("messages") {
            Some(Json::Array(messages)) => messages,
            _ => Vec::new(),
        };
        let reply = match &*body.kind {
            "topology" => {
                let name = self.cluster.name(self.cluster.node(self.index));
                let neighbours = body.get("topology").and_then(|topology| topology.get(name));
                let names = neighbours.and_then(Json::as_array).into_iter().flatten();
                let addrs = names.filter_map(|name| self.cluster.find(name.as_str()?));
                for neighbour in addrs.collect::<Vec<_>>() {
                    self.unacknowledged.entry(neighbour).or_default();
                }
                Body::new("topology_ok")
            }
            "broadcast" => {
                let message = body.take("message").unwrap_or_default();
                self.learn(from, message, cx);
                Body::new("broadcast_ok")
            }
            "read" => Body::new("read_ok").with("messages", self.messages.clone()),
            "gossip" => {
                let messages = list(&mut body);
                for message in &messages {
                    self.learn(from, message.clone(), cx);
                }
                Body::new("gossip_ok").with("messages", messages)
            }
            "gossip_ok" => {
                let waiting = self.unacknowledged.entry(from).or_default();
                for message in list(&mut body) {
                    waiting.remove(&message.to_string());
                }
                return;
            }
            other => Body::error(10, other),
        };
        cx.send(from, Packet::Body(reply.reply_to(&body)));
    }
}

impl Actor<Packet> for Broadcast {
    fn start<C: Context<Packet>>(&mut self, cx: &mut C) {
        cx.timer(PATIENCE, RETRY);
    }

    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        match event {
            Event::Message {
                from,
                body: Packet::Body(body),
            } => self.request(from, body, cx),
            Event::Timer(_) => self.retry(cx),
            _ => {}
        }
        Flow::Continue
    }
}
