//! A node that returns each message to its sender.

use crate::{Body, Packet};
use corsair::{Actor, Context, Event, Flow};

pub(super) struct Echo;

impl Actor<Packet> for Echo {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        if let Event::Message { from, body } = event
            && let Packet::Body(mut request) = body
        {
            let echo = request.take("echo").unwrap_or_default();
            let reply = Body::new("echo_ok").with("echo", echo).reply_to(&request);
            cx.send(from, Packet::Body(reply));
        }
        Flow::Continue
    }
}
