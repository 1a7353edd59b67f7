//! Messages with the latency of a network model.

use super::Shard;
use crate::contract::random::mix;
use crate::contract::{Addr, Message, Random, Time};
use crate::network::Route;
use crate::virtual_time::event::Kind;

/// The number of stored pairs of actors from which on pairs without messages in flight are removed.
const LEAST: usize = 1024;

impl<M: Message> Shard<M> {
    /// Returns the route of the next message of the actor being run, and its random numbers.
    pub(in super::super) fn route(&mut self, to: u32) -> (Route, Random) {
        let (from, next) = (self.turn.me, u64::from(self.header().seq) + 1);
        let pair = u64::from(from) << 32 | u64::from(to);
        let seed = mix(mix(pair ^ self.settings.network_key).wrapping_add(next));
        let route = Route {
            from: Addr(from),
            to: Addr(to),
            sent: Time::from_nanos(self.turn.now),
        };
        (route, Random::new(seed))
    }

    /// Returns the arrival time of an internal notice: after all earlier messages.
    #[cold]
    pub(super) fn arrival_by_network(&self) -> u64 {
        self.turn.now.saturating_add(self.max_latency())
    }

    /// Sends a message of the actor being run with this travel time.
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

    /// Returns the shortest travel time with which the message does not overtake the previous message to this actor.
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

    /// Schedules a second delivery of the message sent just now.
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
        // Both deliveries belong to one sent message, so they share its number.
        self.header().seq -= 1;
        self.post_in_transit(transit, kind, to, delay, answers, body);
    }

    /// Drops a lost message, which still uses up a sequence number.
    pub(in super::super) fn lose(&mut self) -> u64 {
        self.counters.lost += 1;
        self.skip(1);
        let seq = self.header().seq;
        crate::contract::SpanId::new(Addr(self.turn.me), seq).as_u64()
    }
}
