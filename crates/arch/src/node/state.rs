//! The state of an instance as seen from outside, between two events.

use super::Node;
use crate::live::seen::{Details, InstanceState, MessageSeen, RequestSeen};
use crate::live::seen::{InstanceHistory, MESSAGES};
use crate::message::Msg;
use crate::node::role::Role;
use corsair::{Addr, Message, Time};
use std::cmp::Reverse;
use std::time::Duration;

/// The maximum number of listed requests.
const MOST_LISTED: usize = 50;

impl Node {
    /// Returns the numeric state of the instance at a time.
    pub(crate) fn state(&self, now: Time) -> InstanceState {
        let host = &self.host;
        let health = &host.health;
        let (slots, at) = host.slot_time;
        let since = now.as_nanos().saturating_sub(at);
        InstanceState {
            is_down: health.is_down(),
            is_paused: health.is_paused(),
            is_cut_off: health.is_cut_off(),
            is_away: !health.is_down() && !health.is_listed(),
            slow_percent: (health.factor() * 100.0) as u32,
            queue: host.queue.len() as u32,
            busy: host.busy,
            in_progress: host.in_progress.len(),
            under_way: host.pending.iter().count() as u32,
            slot_nanos: slots.saturating_add(u64::from(host.busy) * since),
            worked_nanos: host.totals.worked,
            refused: host.totals.refused,
            unrouted: match &self.role {
                Role::EntryPoint(entry) => entry.unrouted(),
                _ => 0,
            },
        }
    }

    /// Returns the history that was recorded while the instance was watched.
    pub(crate) fn seen(&self) -> Option<&InstanceHistory> {
        self.host.seen.as_deref()
    }

    /// Returns the history if it has the spans and messages of the current period.
    pub(crate) fn seen_now(&self) -> Option<&InstanceHistory> {
        let model = &self.host.model;
        let is_watched = model.interval() > 0;
        (self.seen()).filter(|seen| is_watched && seen.period == model.period())
    }

    /// Returns all details at a time.
    pub(crate) fn details(&self, now: Time) -> Details {
        let host = &self.host;
        let topology = &host.model.topology;
        let service = topology.service_of(host.index);
        let at = host.model.instance(host.index).at;
        let requests = host.pending.iter().take(MOST_LISTED);
        let actor = |addr: Addr| host.model.name_of(addr);
        let mut messages: Vec<(u64, Addr, Msg)> = Vec::new();
        if let Some(seen) = self.seen_now() {
            let responses = seen.spans.iter().map(|span| {
                let (id, travel, answer) = (0, 0, span.answer);
                let response = Msg::GetResponse { id, travel, answer };
                (span.received, host.address(span.server), response)
            });
            messages.extend(seen.messages.iter().copied().chain(responses));
            messages.sort_by_key(|&(at, ..)| Reverse(at));
            messages.truncate(MESSAGES);
        }
        let messages = messages.iter().map(|&(at, from, message)| MessageSeen {
            at,
            from: actor(from),
            kind: Msg::KINDS[message.kind()],
            what: message.payload(topology),
            travelled: message.call().map(|call| call.travel.into()),
        });
        Details {
            name: topology.short_name(host.index),
            service: service.name.clone(),
            package: service.package.name(),
            region: at.region_name(&topology.places).to_owned(),
            zone: at.zone_name(&topology.places).to_owned(),
            state: self.state(now),
            concurrency: service.costs.concurrency,
            processors: service.costs.processors,
            queue: host.queue.len(),
            knows: (self.role.known().into_iter())
                .map(|node| topology.label(node))
                .collect(),
            registries: (host.registries.iter())
                .map(|&registry| topology.short_registry_name(registry - topology.len()))
                .collect(),
            requests: requests
                .map(|request| RequestSeen {
                    server: topology.label(request.server),
                    sent: request.sent,
                    age: Duration::from_nanos(now.as_nanos().saturating_sub(request.sent)),
                    trace: match request.job.trace.as_u64() {
                        0 => request.span.as_u64(),
                        trace => trace,
                    },
                })
                .collect(),
            fields: self.role.fields().into_iter().collect(),
            totals: host.totals,
            messages: messages.collect(),
        }
    }
}
