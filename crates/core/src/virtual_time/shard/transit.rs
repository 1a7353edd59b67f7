//! Messages that travel as a network says.

use super::Shard;
use crate::contract::random::mix;
use crate::contract::{Addr, Message, Random, Time};
use crate::network::Route;
use crate::virtual_time::event::Kind;

/// Pairs that are remembered, or twice as many as had something on its way when they were last
/// looked through.
const LEAST: usize = 1024;

impl<M: Message> Shard<M> {
    /// The way of the next message of the actor being run, and the random numbers that belong to it.
    pub(in super::super) fn way(&mut self, to: u32) -> (Route, Random) {
        let (from, next) = (self.turn.me, u64::from(self.header().seq) + 1);
        let pair = u64::from(from) << 32 | u64::from(to);
        let seed = mix(mix(pair ^ self.settings.network_key).wrapping_add(next));
        let way = Route {
            from: Addr(from),
            to: Addr(to),
            sent: Time::from_nanos(self.turn.now),
        };
        (way, Random::new(seed))
    }

    /// When a notice of the library's own arrives: after all that was sent before.
    #[cold]
    pub(super) fn arrival_by_network(&self) -> u64 {
        self.turn.now.saturating_add(self.max_latency())
    }

    /// Sends a message of the actor being run that travels so long.
    pub(in super::super) fn post_in_transit(
        &mut self,
        transit: u64,
        kind: Kind,
        to: u32,
        delay: u64,
        answers: u64,
        body: M,
    ) -> u64 {
        let mut transit = transit.clamp(self.min_latency(), self.max_latency());
        let network = self.settings.network.as_ref();
        if delay == 0 && network.is_some_and(|network| network.keeps_order()) {
            transit = self.wait_for_last(to, transit);
        }
        self.post_in(transit.saturating_add(delay), kind, to, answers, body)
    }

    /// How long the message being sent travels if it is not to overtake the last one to this actor.
    fn wait_for_last(&mut self, to: u32, transit: u64) -> u64 {
        let (pair, now) = ((self.turn.me, to), self.turn.now);
        if self.last.len() >= LEAST && self.last.len() == self.last.capacity() {
            self.last.retain(|_, arrives| *arrives > now);
        }
        let arrives = now.saturating_add(transit);
        let last = self.last.entry(pair).or_default();
        *last = arrives.max(*last);
        *last - now
    }

    /// The message that was sent just now comes once more.
    pub(in super::super) fn post_again(
        &mut self,
        transit: u64,
        kind: Kind,
        to: u32,
        delay: u64,
        answers: u64,
        body: M,
    ) {
        self.counters.duplicated += 1;
        // The same sending, so the same number.
        self.header().seq -= 1;
        self.post_in_transit(transit, kind, to, delay, answers, body);
    }

    /// A message is lost; its number is used up.
    pub(in super::super) fn lose(&mut self) -> u64 {
        self.counters.lost += 1;
        self.skip(1);
        let seq = self.header().seq;
        crate::contract::SpanId::new(Addr(self.turn.me), seq).as_u64()
    }
}
