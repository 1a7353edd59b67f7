//! What an instance sends: how long it travels, and what becomes of it where the way is cut.

use super::{Job, Node, Pending};
use crate::message::{Answer, Call, Key, Msg, kind};
use crate::model::LEAST_TRAVEL;
use corsair::{Context, SpanId, Time};
use corsair_observe::{Exchange, TraceContext};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Node {
    /// How long a request to a server travels between this instance and another, or its answer,
    /// drawn now.
    fn travel<C: Context<Msg>>(&self, server: u32, other: u32, cx: &mut C) -> u64 {
        let costs = &self.model.topology.service_of(server).costs;
        let times = match &costs.latency {
            Some(times) => times,
            None => {
                let (from, to) = (self.model.place(self.index), self.model.place(other));
                self.model.topology.geography.between(from, to)
            }
        };
        let nanos = self.health.slowed(times.sample(|| cx.random()));
        nanos.max(LEAST_TRAVEL).max(self.model.base)
    }

    /// Sends a message that arrives after a delay and its travel.
    fn post<C: Context<Msg>>(&self, to: u32, after: u64, message: Msg, cx: &mut C) -> SpanId {
        let delay = Duration::from_nanos(after.saturating_sub(self.model.base));
        cx.send_after(delay, self.address(to), message)
    }

    /// Sends what is no request: it travels as long as anything usually does between the places,
    /// so that such messages stay in their order.
    pub(super) fn tell<C: Context<Msg>>(&mut self, to: u32, message: Msg, cx: &mut C) {
        if self.is_cut_off_from(to) {
            self.swallow();
            return;
        }
        let (from, there) = (self.model.place(self.index), self.model.place(to));
        let travel = self.model.topology.geography.between(from, there).typical();
        self.post(to, travel.max(LEAST_TRAVEL), message, cx);
    }

    /// Asks an instance on account of a job, in `delay` from now. `stage` comes back with the
    /// answer.
    pub(super) fn ask<C: Context<Msg>>(
        &mut self,
        job: Job,
        to: u32,
        key: Key,
        stage: u8,
        delay: u64,
        cx: &mut C,
    ) {
        let sent = cx.now().as_nanos() + delay;
        let id = self.waiting.reserve();
        let span = if self.is_cut_off_from(to) {
            self.swallow();
            let answer = Answer::Lost;
            let lost = Msg::GetResponse {
                id,
                travel: 0,
                answer,
            };
            self.post(self.index, delay + self.model.patience, lost, cx)
        } else {
            let travel = self.travel(to, to, cx);
            let request = Msg::GetRequest(Call {
                key,
                id,
                travel: short(travel),
            });
            self.post(to, delay + travel, request, cx)
        };
        let pending = Pending {
            job,
            sent,
            span,
            server: to,
            stage,
        };
        let (context, at) = (self.context_of(&job, span), Time::from_nanos(sent));
        if let Some(context) = context {
            let recorder = &self.model.recorder;
            recorder.client_send(at, cx.me(), context, kind::GET_REQUEST, Exchange::Request);
        }
        self.waiting.put(id, pending);
    }

    /// Sends a value to be kept, in `delay` from now.
    pub(super) fn give<C: Context<Msg>>(
        &mut self,
        job: &Job,
        to: u32,
        make: impl FnOnce(Call) -> Msg,
        key: Key,
        delay: u64,
        cx: &mut C,
    ) {
        if self.is_cut_off_from(to) {
            self.swallow();
            return;
        }
        let travel = self.travel(to, to, cx);
        let message = make(Call {
            key,
            id: 0,
            travel: short(travel),
        });
        let kind = corsair::Message::kind(&message);
        let span = self.post(to, delay + travel, message, cx);
        if let Some(context) = self.context_of(job, span) {
            let at = Time::from_nanos(cx.now().as_nanos() + delay);
            let recorder = &self.model.recorder;
            recorder.client_send(at, cx.me(), context, kind, Exchange::OneWay);
        }
    }

    /// Answers a request, in `delay` from now.
    pub(super) fn respond<C: Context<Msg>>(
        &mut self,
        job: &Job,
        answer: Answer,
        delay: u64,
        cx: &mut C,
    ) {
        let client = self.number(job.client);
        let id = job.id;
        if self.is_cut_off_from(client) {
            self.swallow();
            let lost = Msg::GetResponse {
                id,
                travel: 0,
                answer: Answer::Lost,
            };
            self.post(client, delay + self.model.patience, lost, cx);
            return;
        }
        let travel = self.travel(self.index, client, cx);
        let response = Msg::GetResponse {
            id,
            travel: short(travel),
            answer,
        };
        self.post(client, delay + travel, response, cx);
    }

    /// Answers for an instance that does not: it is gone, or cut off. Whether it did.
    pub(super) fn turns_away<C: Context<Msg>>(&mut self, job: &Job, cx: &mut C) -> bool {
        let cut_off = self.is_cut_off_from(self.number(job.client));
        if !cut_off && !self.health.is_down() {
            return false;
        }
        self.swallow();
        if job.want == super::Want::Get {
            // A host without the service refuses at once; what is lost is given up after a while.
            let (answer, after) = match cut_off {
                true => (Answer::Lost, self.model.patience),
                false => (Answer::Refused, LEAST_TRAVEL),
            };
            let response = Msg::GetResponse {
                id: job.id,
                travel: 0,
                answer,
            };
            self.post(self.number(job.client), after, response, cx);
        }
        true
    }

    /// Whether this instance is cut off from an actor: both are in zones, and those differ.
    pub(super) fn is_cut_off_from(&self, other: u32) -> bool {
        self.health.is_cut_off() && self.model.place(self.index) != self.model.place(other)
    }

    /// A fault has swallowed a message.
    pub(super) fn swallow(&self) {
        self.model.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Where a message sent on account of a job belongs in the flow of messages.
    fn context_of(&self, job: &Job, span: SpanId) -> Option<TraceContext> {
        TraceContext::new(job.trace_of(span), span.as_u64(), job.span.as_u64())
    }
}

impl Job {
    /// The trace of a message sent on account of this job: a job of nobody's begins one.
    pub(super) fn trace_of(&self, span: SpanId) -> u64 {
        match self.trace {
            SpanId::NONE => span.as_u64(),
            trace => trace.as_u64(),
        }
    }
}

/// Four seconds at most: what a message has room for.
fn short(nanos: u64) -> u32 {
    u32::try_from(nanos).unwrap_or(u32::MAX)
}
