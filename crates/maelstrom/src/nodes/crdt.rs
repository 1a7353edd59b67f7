//! Nodes with replicated data types: each node sends its state to all others, and merges the states
//! that it receives.

use crate::{Body, Cluster, Packet};
use corsair::{Actor, Addr, Context, Event, Flow, Token};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::time::Duration;

const GOSSIP: Token = Token::new(0);
const PERIOD: Duration = Duration::from_secs(1);

/// A state with a merge operation that is associative, commutative and idempotent.
pub(super) trait State: Default + Send + 'static {
    fn add(&mut self, node: u32, request: &Body);
    fn read(&self) -> Json;
    fn merge(&mut self, other: &Json);
    fn to_json(&self) -> Json;
}

/// A set that only grows.
#[derive(Default)]
pub(super) struct Set(BTreeMap<String, Json>);

impl State for Set {
    fn add(&mut self, _: u32, request: &Body) {
        let element = request.get("element").cloned().unwrap_or_default();
        self.0.insert(element.to_string(), element);
    }

    fn read(&self) -> Json {
        self.0.values().cloned().collect()
    }

    fn merge(&mut self, other: &Json) {
        for element in other.as_array().into_iter().flatten() {
            self.0.insert(element.to_string(), element.clone());
        }
    }

    fn to_json(&self) -> Json {
        self.read()
    }
}

/// For each node, the sum of its positive additions and the sum of its negative additions.
#[derive(Default)]
pub(super) struct Counter(BTreeMap<u32, [i64; 2]>);

impl State for Counter {
    fn add(&mut self, node: u32, request: &Body) {
        let delta = request.int("delta").unwrap_or(0);
        self.0.entry(node).or_default()[usize::from(delta < 0)] += delta.abs();
    }

    fn read(&self) -> Json {
        let sums = self.0.values().map(|[plus, minus]| plus - minus);
        sums.sum::<i64>().into()
    }

    fn merge(&mut self, other: &Json) {
        for (node, sums) in other.as_object().into_iter().flatten() {
            let Ok(node) = node.parse() else { continue };
            let own: &mut [i64; 2] = self.0.entry(node).or_default();
            for (index, own) in own.iter_mut().enumerate() {
                let other = sums.get(index).and_then(Json::as_i64).unwrap_or(0);
                *own = other.max(*own);
            }
        }
    }

    fn to_json(&self) -> Json {
        let entries = self.0.iter();
        let entries = entries.map(|(node, sums)| (node.to_string(), Json::from(sums.to_vec())));
        Json::Object(entries.collect::<Map<_, _>>())
    }
}

pub(super) struct Replica<S> {
    cluster: Cluster,
    index: u32,
    state: S,
}

impl<S: State> Replica<S> {
    pub(super) fn new(index: u32, cluster: Cluster) -> Replica<S> {
        let state = S::default();
        Replica {
            cluster,
            index,
            state,
        }
    }

    fn request<C: Context<Packet>>(&mut self, from: Addr, body: &Body, cx: &mut C) {
        let reply = match &*body.kind {
            "add" => {
                self.state.add(self.index, body);
                Body::new("add_ok")
            }
            "read" => Body::new("read_ok").with("value", self.state.read()),
            "merge" => {
                self.state.merge(body.get("state").unwrap_or(&Json::Null));
                return;
            }
            other => Body::error(10, other),
        };
        cx.send(from, Packet::Body(reply.reply_to(body)));
    }
}

impl<S: State> Actor<Packet> for Replica<S> {
    fn start<C: Context<Packet>>(&mut self, cx: &mut C) {
        cx.timer(PERIOD, GOSSIP);
    }

    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        match event {
            Event::Message {
                from,
                body: Packet::Body(body),
            } => self.request(from, &body, cx),
            Event::Timer(_) => {
                let body = Body::new("merge").with("state", self.state.to_json());
                let me = cx.me();
                for node in self.cluster.nodes().iter().filter(|node| *node != me) {
                    cx.send(node, Packet::Body(body.clone()));
                }
                cx.timer(PERIOD, GOSSIP);
            }
            _ => {}
        }
        Flow::Continue
    }
}
