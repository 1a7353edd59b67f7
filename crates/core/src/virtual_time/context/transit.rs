//! Sending where a network says what becomes of messages.

use super::{ShardAccess, VirtualContext};
use crate::contract::{Message, SpanId, time::nanos};
use crate::network::Fate;
use crate::virtual_time::scheduled::Kind;

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
        self.post_by_network(kind, to, delay, answers, body)
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

    /// The network is code of the user's, as are the copy and the end of a message: no reference to the
    /// shard is held while they run.
    #[cold]
    #[inline(never)]
    fn post_by_network(&self, kind: Kind, to: u32, delay: u64, answers: u64, body: M) -> SpanId {
        let Some(network) = self.shard().settings.network.clone() else {
            return SpanId(self.shard().post(kind, to, delay, answers, body));
        };
        let (way, mut random) = self.shard().way(to);
        let fate = if way.from == way.to {
            Fate::Arrives
        } else {
            network.fate(&way, &mut random)
        };
        let mut transit = || nanos(network.latency(&way, &mut random));
        let first = transit();
        match fate {
            Fate::Lost => {
                drop(body);
                SpanId(self.shard().lose())
            }
            Fate::Arrives => {
                let shard = self.shard();
                SpanId(shard.post_in_transit(first, kind, to, delay, answers, body))
            }
            Fate::Twice => {
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
