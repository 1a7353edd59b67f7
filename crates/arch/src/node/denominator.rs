//! The name service, and where the load comes from: a request or a value once in a while.

use super::role::Role;
use super::{Job, Node, Pending, Routes, TO_CHAT, Want};
use crate::message::{Answer, Key, Msg};
use corsair::{Addr, Context, SpanId};
use corsair_observe::Metric;
use hdrhistogram::Histogram;
use std::time::Duration;

/// The load that one entry point makes, and how it was answered.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) routes: Routes,
    /// It talks once in so many nanoseconds; 0: not at all.
    period: u64,
    /// Values put so far, and one more.
    put: u32,
    pub(crate) requests: u64,
    pub(crate) puts: u64,
    pub(crate) errors: u64,
    pub(crate) missing: u64,
    /// Response times in nanoseconds.
    pub(crate) times: Histogram<u64>,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            routes: Routes::default(),
            period: 0,
            put: 1,
            requests: 0,
            puts: 0,
            errors: 0,
            missing: 0,
            times: histogram(),
        }
    }
}

/// A histogram that keeps three digits and grows with what it is given.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("a histogram may have three digits")
}

impl Node {
    /// Begins to talk, changes how often, or ends.
    pub(super) fn chat_every<C: Context<Msg>>(&mut self, every: u64, cx: &mut C) {
        let period = match &mut self.role {
            Role::Denominator(load) => &mut load.period,
            Role::Pirate(purse) => &mut purse.period,
            _ => return,
        };
        let silent = *period == 0;
        *period = every;
        if silent && every > 0 {
            cx.timer(Duration::from_nanos(every), TO_CHAT);
        }
    }

    /// It is time to talk.
    pub(super) fn chat<C: Context<Msg>>(&mut self, cx: &mut C) {
        let period = match &self.role {
            Role::Denominator(load) => load.period,
            Role::Pirate(purse) => purse.period,
            _ => 0,
        };
        if period == 0 {
            return;
        }
        cx.timer(Duration::from_nanos(period), TO_CHAT);
        if self.health.is_down() || self.health.is_paused() {
            return;
        }
        if let Role::Pirate(_) = self.role {
            self.gossip(cx);
        } else {
            self.demand(cx);
        }
    }

    /// A request for the value that all know, for one that may have been put, or a new value: one
    /// third of each.
    fn demand<C: Context<Msg>>(&mut self, cx: &mut C) {
        let (which, bits) = (cx.below(3), cx.random());
        let Role::Denominator(load) = &mut self.role else {
            return;
        };
        let Some(to) = load.routes.pick(bits) else {
            load.requests += 1;
            load.errors += 1;
            return;
        };
        let (want, key) = match which {
            0 => (Want::Get, Key::WHY),
            1 => (Want::Get, Key::numbered(cx.below(load.put))),
            _ => {
                load.put = load.put.wrapping_add(1).max(1);
                (Want::Put, Key::numbered(load.put - 1))
            }
        };
        let job = Job {
            want,
            key,
            client: Addr::NONE,
            id: 0,
            arrived: cx.now().as_nanos(),
            waited: 0,
            placed: false,
            trace: SpanId::NONE,
            span: SpanId::NONE,
            parent: SpanId::NONE,
        };
        if want == Want::Get {
            load.requests += 1;
            self.ask(job, to, key, 0, 0, cx);
        } else {
            load.puts += 1;
            self.give(&job, to, Msg::Put, key, 0, cx);
        }
    }

    /// A request of its own is answered.
    pub(super) fn ended<C: Context<Msg>>(&mut self, pending: &Pending, answer: Answer, cx: &C) {
        let lasted = cx.now().as_nanos().saturating_sub(pending.sent);
        let (recorder, measured) = (&self.model.recorder, self.measured());
        recorder.sample(measured, Metric::Response, lasted);
        if answer.is_error() {
            recorder.error(measured);
        }
        if let Role::Denominator(load) = &mut self.role {
            load.times
                .record(lasted)
                .expect("a histogram that grows takes any value");
            load.errors += u64::from(answer.is_error());
            load.missing += u64::from(answer == Answer::Missing);
        }
    }
}
