//! A node that forwards requests to the service `lin-kv`, and the replies of this service to the clients.

use crate::{Body, Cluster, Packet};
use corsair::{Actor, Addr, Context, Event, Flow};
use std::collections::BTreeMap;

/// The largest number of requests that wait for a reply; the oldest are forgotten.
const MOST_WAITING: usize = 10_000;

/// Forwards requests to another actor, with new ids.
pub(super) struct Relay {
    to: Addr,
    next: i64,
    /// For each forwarded request, the client and the client's id.
    waiting: BTreeMap<i64, (Addr, Option<i64>)>,
}

impl Relay {
    pub(super) fn new(to: Addr) -> Relay {
        Relay {
            to,
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Forwards a request, or the reply to a request.
    pub(super) fn pass<C: Context<Packet>>(&mut self, from: Addr, mut body: Body, cx: &mut C) {
        match body.in_reply_to {
            None => {
                self.next += 1;
                self.waiting.insert(self.next, (from, body.msg_id));
                if self.waiting.len() > MOST_WAITING {
                    self.waiting.pop_first();
                }
                cx.send(self.to, Packet::Body(body.with_id(self.next)));
            }
            Some(id) => {
                if let Some((asker, asked)) = self.waiting.remove(&id) {
                    body.in_reply_to = asked;
                    cx.send(asker, Packet::Body(body));
                }
            }
        }
    }
}

pub(super) struct LinKv(Relay);

impl LinKv {
    pub(super) fn new(_: u32, cluster: Cluster) -> LinKv {
        // The service has an address in every cluster.
        let service = cluster.find("lin-kv").unwrap_or(Addr::NONE);
        LinKv(Relay::new(service))
    }
}

impl Actor<Packet> for LinKv {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        if let Event::Message { from, body } = event
            && let Packet::Body(body) = body
        {
            self.0.pass(from, body, cx);
        }
        Flow::Continue
    }
}
