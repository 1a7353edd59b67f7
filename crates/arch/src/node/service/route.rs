//! The route from an instance to a service that it calls: instances, round-robin position, connections, and
//! the outcomes of earlier calls.

use super::breaker::Breaker;
use crate::definition::Balance;
use crate::geography::Zone;
use crate::model::Model;
use crate::policy::{Bucket, Policy};
use crate::saved::RestoreState;
use corsair::Context;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The route to a called service.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Route {
    #[serde(skip)]
    pub(super) policy: Policy,
    /// True if the policy depends on the outcome of sent messages.
    #[serde(skip)]
    pub(super) minds_answers: bool,
    /// The instances that may be called, in ascending order.
    peers: Vec<Peer>,
    /// The position of round-robin.
    turn: usize,
    /// The number of requests in flight to all of these instances.
    under_way: u32,
    /// False if no instance is ejected.
    has_ejected: bool,
    /// The number of calls in flight, each with all its attempts.
    pub(super) calls: u32,
    pub(super) breaker: Option<Breaker>,
    bucket: Option<Bucket>,
    /// The number of retries that may still be made.
    budget: f64,
    /// The number of open connections, and how many of them are idle.
    open: u32,
    idle: u32,
    /// The attempts that wait for a connection: the task, and the tag of the attempt.
    pub(super) waiting: VecDeque<(u32, u32)>,
}

/// An instance that may be called.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Peer {
    node: u32,
    /// True if the instance is in the caller's zone.
    is_near: bool,
    under_way: u32,
    /// The number of consecutive failed attempts.
    failures: u32,
    /// The time in nanoseconds at which the ejection ends.
    ejected_until: u64,
}

/// The connection for an attempt, if one is available.
pub(super) enum Connection {
    /// A connection is available; the nanoseconds to open it, if needed.
    Ready(u64),
    Wait,
    Refused,
}

impl RestoreState for Route {
    fn take_over(&mut self, saved: Route) {
        let mut own = std::mem::replace(self, saved);
        own.breaker.take_over(self.breaker.take());
        own.bucket.take_over(self.bucket.take());
        (self.breaker, self.bucket) = (own.breaker, own.bucket);
        (self.policy, self.minds_answers) = (own.policy, own.minds_answers);
        if let Some(pool) = self.policy.connections {
            // Connections in use are closed after they have carried their answers.
            let surplus = self.open.saturating_sub(pool.most).min(self.idle);
            self.open -= surplus;
            self.idle -= surplus;
        }
    }
}

impl Route {
    pub(super) fn new(policy: &Policy) -> Route {
        let budget = policy.retries.and_then(|retries| retries.budget);
        Route {
            peers: Vec::new(),
            turn: 0,
            under_way: 0,
            has_ejected: false,
            calls: 0,
            breaker: policy.breaker.map(Breaker::new),
            bucket: policy.rate_limit.map(Bucket::new),
            budget: budget.map_or(0.0, |(_, burst)| burst),
            open: 0,
            idle: 0,
            waiting: VecDeque::new(),
            minds_answers: policy.minds_answers(),
            policy: policy.clone(),
        }
    }

    /// Resets everything except the instances, because the process has been restarted.
    pub(super) fn reset(&mut self) {
        let peers = std::mem::take(&mut self.peers);
        *self = Route::new(&self.policy);
        self.peers = peers;
        for peer in &mut self.peers {
            (peer.under_way, peer.failures, peer.ejected_until) = (0, 0, 0);
        }
    }

    fn place(&self, node: u32) -> Result<usize, usize> {
        self.peers.binary_search_by_key(&node, |peer| peer.node)
    }

    /// Iterates over the instances that may be called.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.peers.iter().map(|peer| peer.node)
    }

    /// Adds an instance. False if it was already known.
    pub(super) fn add(&mut self, model: &Model, here: Zone, node: u32) -> bool {
        let Err(place) = self.place(node) else {
            return false;
        };
        let peer = Peer {
            node,
            is_near: here.zone.is_some() && model.place(node) == here,
            under_way: 0,
            failures: 0,
            ejected_until: 0,
        };
        self.peers.insert(place, peer);
        true
    }

    /// Removes an instance. False if it was not known.
    pub(super) fn remove(&mut self, node: u32) -> bool {
        let place = self.place(node);
        if let Ok(place) = place {
            let peer = self.peers.remove(place);
            self.under_way -= peer.under_way;
        }
        place.is_ok()
    }

    /// True if the rate limit and the bulkhead allow a call.
    pub(super) fn admits(&mut self, now: u64) -> bool {
        let has_room = self.policy.bulkhead.is_none_or(|most| self.calls < most);
        has_room && self.bucket.as_mut().is_none_or(|bucket| bucket.take(now))
    }

    /// Adds the share of a call to the budget of retries, because a call begins.
    pub(super) fn earn(&mut self) {
        if let Some((share, burst)) = self.policy.retries.and_then(|retries| retries.budget) {
            self.budget = (self.budget + share).min(burst.max(share));
        }
    }

    /// Deducts a retry from the budget. Returns false if the budget allows no retry.
    pub(super) fn spend(&mut self) -> bool {
        let is_limited = (self.policy.retries).is_some_and(|retries| retries.budget.is_some());
        if is_limited && self.budget < 1.0 - 1e-9 {
            return false;
        }
        if is_limited {
            self.budget -= 1.0;
        }
        true
    }

    /// Returns the instance for a request with a key; different from `last`, if possible.
    pub(super) fn pick<C: Context<crate::message::Msg>>(
        &mut self,
        about: u32,
        last: Option<u32>,
        cx: &mut C,
    ) -> Option<u32> {
        let now = cx.now().as_nanos();
        if self.has_ejected {
            self.has_ejected = self.peers.iter().any(|peer| peer.ejected_until > now);
        }
        let leaves_out = self.has_ejected;
        // If all instances are ejected, ejections are ignored.
        let is_in = |peer: &Peer| !leaves_out || peer.ejected_until <= now;
        let anybody = !leaves_out || !self.peers.iter().any(is_in);
        let is_in = |peer: &Peer| anybody || is_in(peer);
        let many = self.peers.len();
        let is_new = |peer: &Peer| many == 1 || Some(peer.node) != last;
        let fits = |peer: &Peer| is_in(peer) && is_new(peer);
        let place = match self.policy.balance {
            Balance::Random => self.draw(fits, cx),
            Balance::RoundRobin => {
                if self.turn == 0 {
                    // A random first turn, so that callers that start together do not all begin with the same instance.
                    self.turn = 1 + cx.below(many.max(1) as u32) as usize;
                }
                let turns = (0..many).map(|step| (self.turn + step) % many);
                let found = turns.into_iter().find(|&place| fits(&self.peers[place]));
                if let Some(place) = found {
                    self.turn = place + 1;
                }
                found
            }
            Balance::LeastRequests => {
                let found = self.peers.iter().filter(|peer| fits(peer));
                let least = found.map(|peer| peer.under_way).min()?;
                self.draw(|peer| fits(peer) && peer.under_way == least, cx)
            }
            Balance::TwoChoices => {
                let one = self.draw(fits, cx);
                let other = self.draw(fits, cx);
                match (one, other) {
                    (Some(one), Some(other)) => {
                        let load = |place: usize| self.peers[place].under_way;
                        Some(if load(other) < load(one) { other } else { one })
                    }
                    (one, _) => one,
                }
            }
            Balance::Hash => self.hashed(about, fits),
            Balance::Zone => {
                let spill = self.policy.zone_spill;
                let near = |peer: &Peer| fits(peer) && peer.is_near && peer.under_way < spill;
                let far = |peer: &Peer| fits(peer) && !peer.is_near;
                let found = self.draw(near, cx);
                found
                    .or_else(|| self.draw(far, cx))
                    .or_else(|| self.draw(fits, cx))
            }
        };
        // If no other instance is available, the last one is used again.
        let place = place.or_else(|| self.draw(is_in, cx))?;
        let peer = &mut self.peers[place];
        peer.under_way += 1;
        self.under_way += 1;
        Some(peer.node)
    }

    /// Draws one of the suitable instances, with equal probability.
    fn draw<C: Context<crate::message::Msg>>(
        &self,
        fits: impl Fn(&Peer) -> bool,
        cx: &mut C,
    ) -> Option<usize> {
        let many = self.peers.len() as u32;
        if many == 0 {
            return None;
        }
        // The first draw nearly always fits, so the other instances need not be counted.
        let first = cx.below(many) as usize;
        if fits(&self.peers[first]) {
            return Some(first);
        }
        let count = self.peers.iter().filter(|peer| fits(peer)).count() as u32;
        if count == 0 {
            return None;
        }
        let wanted = cx.below(count) as usize;
        let mut places = (0..self.peers.len()).filter(|&place| fits(&self.peers[place]));
        places.nth(wanted)
    }

    /// Returns the instance with the highest hash for the key (rendezvous hashing) among those within their
    /// bound of requests in flight.
    fn hashed(&self, about: u32, fits: impl Fn(&Peer) -> bool) -> Option<usize> {
        let many = self.peers.len() as f64;
        let bound = self.policy.hash_bound * f64::from(self.under_way + 1) / many;
        let bound = libm::ceil(bound) as u32;
        let places = (0..self.peers.len()).filter(|&place| {
            let peer = &self.peers[place];
            fits(peer) && peer.under_way < bound
        });
        places.max_by_key(|&place| mix(u64::from(about) << 32 | u64::from(self.peers[place].node)))
    }

    /// Records that a request to an instance was answered or abandoned.
    pub(super) fn answered(&mut self, node: u32) {
        if let Ok(place) = self.place(node) {
            let peer = &mut self.peers[place];
            // An instance that was removed and added again has no requests from before.
            if peer.under_way > 0 {
                peer.under_way -= 1;
                self.under_way -= 1;
            }
        }
    }

    /// Records the outcome of an attempt.
    pub(super) fn record(&mut self, node: u32, failed: bool, now: u64) {
        if let Some(breaker) = &mut self.breaker {
            breaker.record(failed, now);
        }
        let Some(rules) = self.policy.ejection else {
            return;
        };
        let Ok(place) = self.place(node) else {
            return;
        };
        let peer = &mut self.peers[place];
        peer.failures = if failed { peer.failures + 1 } else { 0 };
        if peer.failures < rules.failures {
            return;
        }
        let out = self.peers.iter().filter(|peer| peer.ejected_until > now);
        if (out.count() + 1) as f64 <= rules.most * self.peers.len() as f64 + 1e-6 {
            let peer = &mut self.peers[place];
            peer.failures = 0;
            peer.ejected_until = now.saturating_add(rules.lasting);
            self.has_ejected = true;
        }
    }

    /// Takes a connection, if one is free or may be opened.
    pub(super) fn connect(&mut self) -> Connection {
        let Some(pool) = self.policy.connections else {
            return Connection::Ready(0);
        };
        if self.idle > 0 {
            self.idle -= 1;
            return Connection::Ready(0);
        }
        if self.open < pool.most {
            self.open += 1;
            return Connection::Ready(pool.connect);
        }
        if self.waiting.len() < pool.waiting {
            Connection::Wait
        } else {
            Connection::Refused
        }
    }

    /// Releases a connection. `closed` is true if the attempt was abandoned, so that its connection cannot be reused.
    pub(super) fn disconnect(&mut self, closed: bool) {
        let Some(pool) = self.policy.connections else {
            return;
        };
        if closed || self.open > pool.most {
            self.open -= 1;
        } else {
            self.idle += 1;
        }
    }
}

/// Mixes the bits of a number, so that each bit of the result depends on all bits (the finalizer of MurmurHash 3).
fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}
