//! Sending through a network model.

use super::{ShardAccess, VirtualContext};
use crate::contract::{AddrRange, Message, SpanId, time::nanos};
use crate::network::Delivery;
use crate::virtual_time::event::Kind;
use crate::virtual_time::shard::{MakeBodies, Shard};
use crate::virtual_time::turn_cell::caught;

impl<M: Message, R: ShardAccess<M>> VirtualContext<M, R> {
    /// Sends a message.
    #[inline(always)]
    pub(super) fn post(&self, kind: Kind, to: u32, delay: u64, answers: u64, body: M) -> SpanId {
        let shard = self.shard();
        if kind == Kind::Message && shard.settings.plain {
            return SpanId(shard.post_plain(to, delay, body));
        }
        if shard.settings.network.is_none() {
            return SpanId(shard.post(kind, to, delay, answers, body));
        }
        self.post_by_network(kind, to, delay, answers, body, None)
    }

    /// Sends a message that travels for `transit` nanoseconds.
    #[inline(always)]
    pub(super) fn post_in(&self, transit: u64, to: u32, body: M) -> SpanId {
        let shard = self.shard();
        let transit = transit.max(shard.min_latency());
        if shard.settings.network.is_none() {
            return SpanId(shard.post_in(transit, Kind::Message, to, 0, body));
        }
        self.post_by_network(Kind::Message, to, 0, 0, body, Some(transit))
    }

    /// Sends messages to one receiver, one after the other.
    #[inline(always)]
    pub(super) fn post_all<const N: usize>(&self, to: u32, bodies: [M; N]) {
        let shard = self.shard();
        if shard.settings.plain {
            return shard.post_all(to, bodies);
        }
        for body in bodies {
            self.post(Kind::Message, to, 0, 0, body);
        }
    }

    /// Sends messages to each of a range of actors.
    #[inline(always)]
    pub(super) fn post_each<const N: usize>(&self, to: AddrRange, bodies: impl MakeBodies<M, N>) {
        if N == 0 || to.is_empty() {
            return;
        }
        let bodies = if self.shard().settings.plain {
            match Shard::post_each(self.access.shard(), to, bodies) {
                Ok(()) => return,
                Err(bodies) => bodies,
            }
        } else {
            bodies
        };
        self.post_one_by_one(to, bodies);
    }

    /// The slow path of [`post_all`](Self::post_all): for messages with more metadata than their sender, for runs with
    /// a network, and for actors with too few sequence numbers left.
    #[cold]
    #[inline(never)]
    fn post_one_by_one<const N: usize>(&self, to: AddrRange, bodies: impl MakeBodies<M, N>) {
        for index in 0..to.len() {
            let receiver = to.at(index).as_u32();
            match caught(|| bodies.make(index)) {
                Ok(bodies) => self.post_all(receiver, bodies),
                Err(panic) => {
                    let shard = self.shard();
                    shard.skip(N);
                    let (from, sent) = (shard.turn.me, shard.turn.now);
                    shard.note_unmade(from, sent, receiver, &*panic);
                }
            }
        }
    }

    /// Sends a message with the latency of the network, or with its `own` latency.
    ///
    /// The network, the copy of a message and its destructor are user code: no reference to the shard is held
    /// while they run.
    #[cold]
    #[inline(never)]
    fn post_by_network(
        &self,
        kind: Kind,
        to: u32,
        delay: u64,
        answers: u64,
        body: M,
        own: Option<u64>,
    ) -> SpanId {
        let Some(network) = self.shard().settings.network.clone() else {
            return SpanId(self.shard().post(kind, to, delay, answers, body));
        };
        let (route, mut random) = self.shard().route(to);
        let delivery = if route.from == route.to {
            Delivery::Arrives
        } else {
            network.delivery(&route, &mut random)
        };
        // The part of an own transit time that exceeds the network's longest latency counts as a delay.
        let longest = self.shard().max_latency();
        let delay = own.map_or(delay, |own| own.saturating_sub(longest));
        let mut transit = || own.unwrap_or_else(|| nanos(network.latency(&route, &mut random)));
        let first = transit();
        match delivery {
            Delivery::Lost => {
                drop(body);
                SpanId(self.shard().lose())
            }
            Delivery::Arrives => {
                let shard = self.shard();
                SpanId(shard.post_in_transit(first, kind, to, delay, answers, body))
            }
            Delivery::Twice => {
                let second = transit();
                let copy = body.duplicate();
                let shard = self.shard();
                let span = shard.post_in_transit(first, kind, to, delay, answers, body);
                if let Some(copy) = copy {
                    shard.post_again(second, kind, to, delay, answers, copy);
                }
                SpanId(span)
            }
        }
    }
}
