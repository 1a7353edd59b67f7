//! Operations on a shard from outside its run, while the run is paused.

use super::Shard;
use super::timer::key;
use crate::Addr;
use crate::contract::{Message, SpanId};
use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
use crate::virtual_time::population::SpawnRequest;
use crate::virtual_time::window_timers::WindowTimer;

impl<M: Message> Shard<M> {
    /// Defers a timer of the actor being run that is due within the window but after the pause.
    #[cold]
    pub(in super::super) fn put_off(&mut self, timer: WindowTimer) {
        let event = timer.event(self.window.base, self.turn.me);
        self.pending.push(event);
    }

    /// Injects a message without a sender, which arrives at `time`, after the pause. The message comes after all
    /// messages of actors that arrive at the same instant.
    pub(in super::super) fn inject(
        &mut self,
        time: u64,
        to: u32,
        sequence: u32,
        body: M,
    ) -> SpanId {
        let span = SpanId::new(Addr::NONE, sequence);
        let mut head = Head::new(0, Kind::Message, to, Addr::NONE.as_u32(), sequence, time);
        head.cause.trace = span.as_u64();
        let bits = self.settings.window_bits;
        if time >> bits == self.window.number {
            head.label.set_offset((time & ((1 << bits) - 1)) as u32);
            self.pending.push(ScheduledEvent::with_body(head, body));
        } else {
            self.schedule(time, ScheduledEvent::with_body(head, body));
        }
        span
    }

    /// Iterates over the spawns that can be carried out.
    pub(in super::super) fn ready_spawns(
        &self,
    ) -> impl Iterator<Item = &SpawnRequest<M, Shard<M>>> {
        let from = self.spawns_wait_from;
        self.spawns.iter().filter(move |spawn| spawn.time < from)
    }

    /// Takes the spawns that can be carried out.
    pub(in super::super) fn take_ready_spawns(&mut self) -> Vec<SpawnRequest<M, Shard<M>>> {
        if !self.has_waiting_spawns() {
            return std::mem::take(&mut self.spawns);
        }
        let from = self.spawns_wait_from;
        self.spawns
            .extract_if(.., |spawn| spawn.time < from)
            .collect()
    }

    /// Returns true if there are spawns that cannot be carried out yet.
    pub(super) fn has_waiting_spawns(&self) -> bool {
        let from = self.spawns_wait_from;
        from != u64::MAX && self.spawns.iter().any(|spawn| spawn.time >= from)
    }

    /// Iterates over the times of all events that are neither in the ring nor in a wheel.
    pub(in super::super) fn pending(&self) -> impl Iterator<Item = u64> {
        let pending = self.pending.iter();
        let pending = pending.map(|event| self.window.base + event.head.offset() as u64);
        let spawns = self.spawns.iter();
        let spawns = spawns.map(|spawn| spawn.time.saturating_add(self.settings.latency.min));
        pending.chain(spawns)
    }

    /// Returns the time of this actor's next event, as far as the shard knows it; O(pending events).
    pub(in super::super) fn next_of(&mut self, actor: u32) -> Option<u64> {
        let mut first = None;
        let mut see = |time: u64| first = Some(first.map_or(time, |first: u64| first.min(time)));
        let base = self.window.base;
        for event in &self.pending {
            if event.head.to == actor {
                see(base + event.head.offset() as u64);
            }
        }
        let waits = &self.waits;
        self.queues.timers.retain(|timer| {
            if timer.actor == actor && !waits.is_cancelled(key(actor, timer.token)) {
                see(timer.time);
            }
            true
        });
        self.queues.far.retain(|far| {
            if far.event.head.to == actor {
                see(far.time);
            }
            true
        });
        for out in self.queues.out() {
            for far in &out.far {
                if far.event.head.to == actor {
                    see(far.time);
                }
            }
        }
        first
    }
}
