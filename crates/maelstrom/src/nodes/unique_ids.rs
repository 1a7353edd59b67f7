//! A node that makes ids from its number and a counter.

use crate::{Body, Packet};
use corsair::{Actor, Context, Event, Flow};

pub(super) struct UniqueIds {
    node: u32,
    next: u64,
}

impl UniqueIds {
    pub(super) fn new(node: u32) -> UniqueIds {
        UniqueIds { node, next: 0 }
    }
}

impl Actor<Packet> for UniqueIds {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        if let Event::Message { from, body } = event
            && let Packet::Body(request) = body
        {
            // There are fewer than 64 nodes.
            let id = self.next << 6 | u64::from(self.node);
            self.next += 1;
            let reply = Body::new("generate_ok").with("id", id).reply_to(&request);
            cx.send(from, Packet::Body(reply));
        }
        Flow::Continue
    }
}
