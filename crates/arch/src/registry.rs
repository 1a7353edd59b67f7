//! The package eureka: the registry of a zone, which knows the instances of its region.
//!
//! A registry keeps a log of changes for every service. For every instance that asks, it stores the position in that
//! log up to which it has sent changes, so an answer contains only later changes. Registries of one region replicate
//! changes to each other. They forward entries about nodes and edges to edda, the log of the run.

use crate::log;
use crate::message::{Change, Msg};
use crate::model::Model;
use crate::ordered::{Ordered, Transit, post};
use crate::saved::state;
use corsair::{Actor, Addr, Context, Event, Flow};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A registry of one zone.
#[derive(Debug)]
pub(crate) struct Registry {
    model: Arc<Model>,
    /// The index of the registry among all actors. Instances have the lowest indices.
    pub(crate) index: u32,
    first: u32,
    /// The changes of each service, the oldest first.
    log: FxHashMap<u32, Vec<Change>>,
    /// For each known instance, the position of its last change in its service's log, and whether the instance is
    /// present.
    last: FxHashMap<u32, (u32, bool)>,
    /// The number of entries of a service's log that were sent to a requester, by requester and service.
    sent: FxHashMap<(u32, u32), u32>,
    ordered: Ordered,
}

state!(Registry {
    first,
    log,
    last,
    sent,
    ordered
});

impl Registry {
    pub(crate) fn new(model: &Arc<Model>, registry: u32) -> Registry {
        Registry {
            model: Arc::clone(model),
            index: model.registry(registry),
            first: 0,
            log: FxHashMap::default(),
            last: FxHashMap::default(),
            sent: FxHashMap::default(),
            ordered: Ordered::default(),
        }
    }

    /// Records a change. Returns false if nothing has changed.
    fn note(&mut self, change: Change) -> bool {
        let Change { node, there } = change;
        let was_there = self.last.get(&node).is_some_and(|&(_, there)| there);
        if was_there == there {
            return false;
        }
        let service = self.model.instance(node).service;
        let log = self.log.entry(service).or_default();
        self.last.insert(node, (log.len() as u32, there));
        log.push(change);
        true
    }

    /// Sends a message that arrives after `after` nanoseconds.
    fn send_after<C: Context<Msg>>(&self, to: u32, after: u64, message: Msg, cx: &mut C) {
        post(Addr::from_u32(self.first + to), after, message, cx);
    }

    /// Records a change that an instance has reported, and forwards it to the other registries of the region
    /// and to the log.
    fn learn<C: Context<Msg>>(&mut self, change: Change, log: Msg, cx: &mut C) {
        if !self.note(change) {
            return;
        }
        let here = self.model.place(self.index).region;
        for registry in 0..self.model.topology.registries() {
            let other = self.model.registry(registry);
            if other != self.index && self.model.place(other).region == here {
                let transit = Transit {
                    sender: self.index,
                    receiver: other,
                    now: cx.now().as_nanos(),
                    travel: self.model.usual_travel(self.index, other),
                };
                let after = (self.ordered).surely(&self.model, transit, || cx.random());
                self.send_after(other, after, Msg::ReplicateNode(change), cx);
            }
        }
        self.record(log, cx);
    }

    /// Sends an entry to the log of nodes and edges.
    fn record<C: Context<Msg>>(&self, message: Msg, cx: &mut C) {
        let edda = self.model.edda();
        let travel = self.model.usual_travel(self.index, edda);
        self.send_after(edda, travel, message, cx);
    }

    /// Answers a look-up of a service with the changes since the last answer to the requester.
    fn answer<C: Context<Msg>>(&mut self, service: u32, cx: &mut C) {
        let asker = cx.envelope().from.as_u32().wrapping_sub(self.first);
        let Some(log) = self.log.get(&service) else {
            return;
        };
        let travel = self.model.usual_travel(self.index, asker);
        let transit = Transit {
            sender: self.index,
            receiver: asker,
            now: cx.now().as_nanos(),
            travel,
        };
        let arrives = (self.ordered).once(&self.model, transit, || cx.random());
        let Some(after) = arrives else {
            // A lost answer leaves the position unchanged, so the next answer contains the same changes.
            return;
        };
        let sent = self.sent.entry((asker, service)).or_default();
        let from = std::mem::replace(sent, log.len() as u32);
        for place in from..log.len() as u32 {
            let Change { node, there } = self.log[&service][place as usize];
            // If an instance has several changes, only the latest is sent.
            let is_last = self.last.get(&node).is_some_and(|last| last.0 == place);
            if is_last && self.model.may_call(asker, node) {
                let message = if there {
                    Msg::NameDrop { node }
                } else {
                    Msg::Forget { node }
                };
                self.send_after(asker, after, message, cx);
            }
        }
    }
}

impl Actor<Msg> for Registry {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.first = cx.me().as_u32() - self.index;
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        let Event::Message { from, body } = event else {
            return Flow::Continue;
        };
        log::received(&self.model, &body, cx);
        match body {
            Msg::Register { node } => self.learn(Change { node, there: true }, body, cx),
            Msg::Delete { node, .. } => self.learn(Change { node, there: false }, body, cx),
            Msg::ReplicateNode(change) => {
                self.note(change);
            }
            Msg::LookUp { service } => self.answer(service, cx),
            Msg::Edge { .. } | Msg::ForgetEdge { .. } => self.record(body, cx),
            Msg::Goodbye => {
                cx.send(from, Msg::Goodbye);
                return Flow::Stop;
            }
            _ => {}
        }
        Flow::Continue
    }
}
