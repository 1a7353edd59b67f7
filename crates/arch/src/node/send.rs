//! Sending: travel times and link faults.

use super::host::Host;
use super::job::{Job, NO_DEADLINE, PendingRequest};
use crate::message::{Answer, Call, Key, Msg, kind};
use crate::model::LEAST_TRAVEL;
use crate::ordered::{Transit, delay, post};
use corsair::network::LinkEffect;
use corsair::{Addr, Context, SpanId};
use corsair_observe::Exchange;
use std::sync::atomic::Ordering;

impl Host {
    /// Draws the travel time of a request for a key, or of its response, between this instance and another. `server` is
    /// the instance that answers.
    fn travel<C: Context<Msg>>(&self, server: u32, other: u32, key: Key, cx: &mut C) -> u64 {
        let service = self.model.topology.service_of(server);
        let of_endpoint = service
            .script
            .as_ref()
            .and_then(|script| script.latency(key));
        let times = match of_endpoint.or(service.costs.latency.as_ref()) {
            Some(times) => times,
            None => {
                let (from, to) = (self.model.place(self.index), self.model.place(other));
                self.model.topology.geography.between(from, to)
            }
        };
        let nanos = self.health.slowed(times.sample(|| cx.random()));
        nanos.max(LEAST_TRAVEL)
    }

    /// Sends a message that arrives after a delay in nanoseconds.
    #[inline]
    fn post<C: Context<Msg>>(&self, to: u32, after: u64, message: Msg, cx: &mut C) -> SpanId {
        post(self.address(to), after, message, cx)
    }

    /// Sends a message that is not a request. Its travel time is the median between the two places,
    /// so that such messages stay in order.
    pub(super) fn notify<C: Context<Msg>>(&mut self, to: u32, message: Msg, cx: &mut C) {
        if self.is_cut_off_from(to) {
            return self.count_dropped();
        }
        let transit = self.transit(to, cx);
        if let Some(after) = (self.ordered).once(&self.model, transit, || cx.random()) {
            self.post(to, after, message, cx);
        }
    }

    /// Describes a message to this actor that is sent now.
    fn transit<C: Context<Msg>>(&self, to: u32, cx: &C) -> Transit {
        Transit {
            sender: self.index,
            receiver: to,
            now: cx.now().as_nanos(),
            travel: self.model.usual_travel(self.index, to),
        }
    }

    /// Sends a message that is not a request, and sends it again if a link loses it.
    pub(super) fn notify_surely<C: Context<Msg>>(&mut self, to: u32, message: Msg, cx: &mut C) {
        if self.is_cut_off_from(to) {
            return self.count_dropped();
        }
        let transit = self.transit(to, cx);
        let after = (self.ordered).surely(&self.model, transit, || cx.random());
        self.post(to, after, message, cx);
    }

    /// Sends an entry for the log of nodes and edges to a registry, which forwards it. Link faults do not affect such
    /// entries, because the log must be complete.
    pub(super) fn record<C: Context<Msg>>(&mut self, registry: u32, message: Msg, cx: &mut C) {
        if self.is_cut_off_from(registry) {
            return self.count_dropped();
        }
        let travel = self.model.usual_travel(self.index, registry);
        self.post(registry, travel, message, cx);
    }

    /// Sends a request for a job. The response returns `stage`.
    pub(super) fn ask<C: Context<Msg>>(
        &mut self,
        job: Job,
        to: u32,
        key: Key,
        stage: u64,
        cx: &mut C,
    ) {
        self.ask_after(0, job, to, key, stage, cx);
    }

    /// Sends a request after a delay in nanoseconds; its answer is obsolete after the job's deadline.
    pub(super) fn ask_after<C: Context<Msg>>(
        &mut self,
        later: u64,
        job: Job,
        to: u32,
        key: Key,
        stage: u64,
        cx: &mut C,
    ) {
        let sent = cx.now();
        let seen_at = self.see_sent(to);
        let id = self.pending.reserve();
        let effect = self.effect(to, cx);
        let (mut second, mut travelled) = (None, 0);
        let span = if effect.is_lost || self.is_cut_off_from(to) {
            self.count_dropped();
            self.post(self.index, self.model.patience, lost(id), cx)
        } else {
            let travel = self.travel(to, to, key, cx).saturating_add(later);
            let travel = travel.saturating_add(delay(effect));
            travelled = travel;
            let rounds = self.rounds_after(&job);
            let call = Call::new(key, id, rounds, saturate(travel));
            let left = micros_left(job.deadline, sent.as_nanos());
            if effect.is_doubled && self.pending.has_room() {
                let id = self.pending.reserve();
                second = Some(id);
                let call = Call::new(key, id, rounds, saturate(travel));
                self.post(to, travel, Msg::GetRequest(call, left), cx);
            }
            self.post(to, travel, Msg::GetRequest(call, left), cx)
        };
        let recorder = &self.model.recorder;
        if recorder.wants_flows()
            && let Some(context) = job.child_context(span)
        {
            let operation = key.operation(kind::GET_REQUEST);
            recorder.client_send(sent, cx.me(), context, operation, Exchange::Request);
        }
        self.trace_sent(&job, span, stage, sent.as_nanos());
        let request = PendingRequest {
            job,
            sent: sent.as_nanos(),
            span,
            server: to,
            stage,
            travelled,
            is_abandoned: false,
            seen_at,
        };
        self.pending.insert(id, request);
        if let Some(second) = second {
            // The server cannot recognise a duplicated request, so it answers twice.
            let is_abandoned = true;
            let copy = PendingRequest {
                is_abandoned,
                ..request
            };
            self.pending.insert(second, copy);
        }
    }

    /// Returns the effect of link faults on a message to another instance.
    #[inline]
    fn effect<C: Context<Msg>>(&self, to: u32, cx: &mut C) -> LinkEffect {
        let now = cx.now().as_nanos();
        self.model.effect(self.index, to, now, || cx.random())
    }

    /// Sends a value to store, on behalf of a job.
    pub(super) fn put<C: Context<Msg>>(
        &mut self,
        job: &Job,
        to: u32,
        make: impl FnOnce(Call) -> Msg,
        key: Key,
        cx: &mut C,
    ) {
        self.see_sent(to);
        let effect = self.effect(to, cx);
        if effect.is_lost || self.is_cut_off_from(to) {
            self.count_dropped();
            return;
        }
        let travel = self.travel(to, to, key, cx).saturating_add(delay(effect));
        let message = make(Call::new(key, 0, self.rounds_after(job), saturate(travel)));
        let kind = key.operation(corsair::Message::kind(&message));
        if effect.is_doubled {
            self.post(to, travel, message, cx);
        }
        let span = self.post(to, travel, message, cx);
        let recorder = &self.model.recorder;
        if recorder.wants_flows()
            && let Some(context) = job.child_context(span)
        {
            recorder.client_send(cx.now(), cx.me(), context, kind, Exchange::OneWay);
        }
    }

    /// Returns the number of passes through a service that may call itself, for messages of a job.
    fn rounds_after(&self, job: &Job) -> u8 {
        let here = self.model.is_circular(self.service);
        job.rounds
            .saturating_add(here.into())
            .min(Call::MOST_ROUNDS)
    }

    /// Sends the response to a request.
    pub(super) fn respond<C: Context<Msg>>(&mut self, job: &Job, answer: Answer, cx: &mut C) {
        // Requests from outside the architecture have no client that could receive an answer.
        if job.client == Addr::NONE {
            return;
        }
        let client = self.number(job.client);
        let effect = self.effect(client, cx);
        if effect.is_lost || self.is_cut_off_from(client) {
            self.count_dropped();
            self.post(client, self.model.patience, lost(job.id), cx);
            return;
        }
        let travel = self.travel(self.index, client, job.key, cx);
        let travel = travel.saturating_add(delay(effect));
        self.totals.returned += travel;
        let response = Msg::GetResponse {
            id: job.id,
            travel: saturate(travel),
            answer,
        };
        self.post(client, travel, response, cx);
    }

    /// Returns the reason why a client's messages do not reach this instance; `None` if they do.
    pub(super) fn unreachable(&self, client: Addr) -> Option<Answer> {
        if self.is_cut_off_from(self.number(client)) {
            Some(Answer::Lost)
        } else {
            self.health.is_down().then_some(Answer::Refused)
        }
    }

    /// Drops a job that did not reach the instance, or that was lost when the instance was killed. If the client is cut
    /// off, it stops waiting after its patience; otherwise the job is refused at once, as by the operating system of a
    /// machine without the process.
    pub(super) fn reject<C: Context<Msg>>(&self, job: &Job, answer: Answer, cx: &mut C) {
        self.count_dropped();
        if !job.operation.is_answered() || job.client == Addr::NONE {
            return;
        }
        let after = if answer == Answer::Lost {
            self.model.patience
        } else {
            LEAST_TRAVEL
        };
        let response = Msg::GetResponse {
            id: job.id,
            travel: 0,
            answer,
        };
        self.post(self.number(job.client), after, response, cx);
    }

    /// True if a fault cuts this instance off from an actor in another zone.
    #[inline]
    fn is_cut_off_from(&self, other: u32) -> bool {
        self.health.is_cut_off() && self.model.place(self.index) != self.model.place(other)
    }

    /// Counts a message that was lost by a fault.
    pub(super) fn count_dropped(&self) {
        self.model.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the response to a request that was lost.
fn lost(id: u32) -> Msg {
    Msg::GetResponse {
        id,
        travel: 0,
        answer: Answer::Lost,
    }
}

/// Returns the microseconds until a deadline in the format of messages: 0 means no deadline.
fn micros_left(deadline: u64, now: u64) -> u32 {
    if deadline == NO_DEADLINE {
        return 0;
    }
    let micros = deadline.saturating_sub(now).div_ceil(1_000);
    u32::try_from(micros).unwrap_or(u32::MAX).max(1)
}

/// Converts nanoseconds to the 32 bits that a message reserves for them. Longer times become the maximum,
/// about 4.3 s.
fn saturate(nanos: u64) -> u32 {
    u32::try_from(nanos).unwrap_or(u32::MAX)
}
