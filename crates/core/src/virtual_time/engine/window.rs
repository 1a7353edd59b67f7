//! Runs one window: gathers its events, orders them, and passes them to their populations.

use super::actor_cache::ActorCache;
use super::outcome::note_panic;
use super::{AnyPopulation, Engine};
use crate::contract::Message;
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::event::Kind;
use crate::virtual_time::outbox::RING;
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::slab::Slab;
use crate::virtual_time::stored_event::StoredEvent;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl<M: Message> Engine<M> {
    /// Gathers the events of one window.
    pub(super) fn gather_window(&mut self, window: u64) {
        let inbound = &mut self.inbound[(window % RING) as usize];
        self.inbound_pending &= !(1 << (window % RING));
        // SAFETY: the shard is valid as long as the engine, and only this thread uses it. Buffers and batches are not
        // part of it.
        let shard = unsafe { &mut *self.shard };
        shard.go_to(window);

        self.events.append(inbound);
        let (index, place) = (shard.index, (window % RING) as usize);
        let own = &mut shard.queues.out_mut()[index];
        if own.pending >> place & 1 == 1 {
            own.pending &= !(1 << place);
            let buffer = std::mem::replace(&mut own.ring[place], Buffer::new());
            self.events.push((index, buffer));
        }
        if shard.queues.timers.is_due() || shard.queues.far.is_due() {
            let mut due = Buffer::new();
            let base = shard.window.base;
            let (timers, far, pool) = shard.queues.waiting();
            far.drain(|far| due.push(pool, far.event));
            timers.drain(|timer| timer.push(base, &mut due, pool));
            self.events.push((index, due));
        }
        let limit = shard.window.limit;
        self.defer_late = self.window_end() > limit;
    }

    /// Returns the last instant of the window.
    #[inline]
    fn window_end(&mut self) -> u64 {
        let shard = self.shard();
        let width = 1 << shard.settings.window_bits;
        shard.window.base.saturating_add(width - 1)
    }

    /// Defers the events after the limit, which are not handled.
    #[cold]
    fn defer_late(&mut self) {
        // SAFETY: the shard is valid as long as the engine, and only this thread uses it. The events are not part of
        // it.
        let shard = unsafe { &mut *self.shard };
        let (base, limit) = (shard.window.base, shard.window.limit);
        let mut deferred = Vec::new();
        self.order.retain(|event| {
            // SAFETY: the event has not been moved out.
            let time = base + unsafe { (*event).label.offset() } as u64;
            if time > limit {
                // SAFETY: the event is moved out once, because `order` does not retain it.
                deferred.push((time, unsafe { StoredEvent::read(event, time) }));
            }
            time <= limit
        });
        for (time, event) in deferred {
            shard.defer(time, &event.head);
            shard.never_happens(event);
        }
    }

    /// Returns counters that change with every event.
    pub(super) fn counts(&mut self) -> (u64, u64) {
        let counters = &self.shard().counters;
        (counters.digest, counters.fired + counters.others)
    }

    /// Sorts the gathered events and passes them to their populations.
    pub(super) fn run_events<P: Pause>(&mut self, pause: &P) {
        self.order.clear();
        if self.events.is_empty() {
            self.defer_late = false;
            return;
        }
        for (_, buffer) in &self.events {
            self.order.add(buffer);
        }
        if std::mem::take(&mut self.defer_late) {
            self.defer_late();
        }
        if P::EVER && self.window_end() >= pause.before() {
            self.set_aside(pause);
        }
        // From here on, the events are moved out one by one. Events that are not reached, because of a panic, are
        // leaked.
        while let Some((from, buffer)) = self.events.pop() {
            self.spent.push((from, buffer.into_free_chunks()));
        }
        let (order, scattered) = self.order.arrange();
        // SAFETY: the shard is valid as long as the engine, and only this thread uses it.
        unsafe { (*self.shard).window.scattered = scattered };
        // SAFETY: the events in `order` were gathered above and have not been moved out. No reference to the shard is
        // held.
        unsafe { run_order(self.shard, &self.populations, order) };
        self.shard().leave();
        self.forget_ended();
        // SAFETY: the shard is valid as long as the engine, and only this thread uses it. The batches are not part of
        // it.
        let shard = unsafe { &mut *self.shard };
        while let Some((from, spent)) = self.spent.pop() {
            if from == shard.index {
                shard.queues.pool().put(spent);
            } else {
                self.out[from].spent.push(spent);
            }
        }
    }
}

/// Passes the only event of a window to its population.
///
/// # Safety
/// As for [`run_order`].
#[inline(always)]
pub(super) unsafe fn run_event<M: Message>(
    shard: *mut Shard<M>,
    cache: &mut ActorCache<M>,
    populations: &Slab<AnyPopulation<M>>,
    event: *mut StoredEvent<M>,
) {
    // SAFETY: shard and event are valid, and no reference to the shard is held. A cached population still exists.
    unsafe {
        let to = (*event).label.to;
        let found = cache.get(to);
        let Some((population, slot)) = found.or_else(|| cache.find(shard, populations, to)) else {
            return run_order(shard, populations, &[event]);
        };
        let run = || population.as_ref().run_one(shard, slot, event);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            note_panic(shard, population.as_ref(), &*panic);
        }
    }
}

/// Passes events to their populations, in this order.
///
/// # Safety
/// The shard is valid, `populations` are its populations, and no reference to the shard is held. The events are valid,
/// and are moved out.
#[inline(always)]
pub(super) unsafe fn run_order<M: Message>(
    shard: *mut Shard<M>,
    populations: &Slab<AnyPopulation<M>>,
    order: &[*mut StoredEvent<M>],
) {
    let mut at = 0;
    while at < order.len() {
        // SAFETY: the events from `at` on have not been moved out, and each is moved out once. No reference to the
        // shard is held while populations run.
        unsafe {
            let receiver = (*order[at]).label.to;
            let number = (*shard).places.population(receiver);
            let population = number.and_then(|number| populations.get(number));
            let run = || match population {
                Some(population) => population.run(shard, order, at),
                None => {
                    discard(shard, order[at]);
                    at + 1
                }
            };
            at = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(next) => next,
                Err(panic) => match population {
                    Some(population) => {
                        note_panic(shard, &**population, &*panic);
                        (*shard).window.cursor + 1
                    }
                    None => {
                        let (event, peer) = (*shard).describe_current();
                        (*shard).note_panic(event, peer, &*panic);
                        at + 1
                    }
                },
            };
        }
    }
}

/// Handles an event for an address without an actor.
///
/// # Safety
/// The shard is valid and no reference to it is held; the event is valid, and is moved out.
#[cold]
unsafe fn discard<M: Message>(shard: *mut Shard<M>, event: *mut StoredEvent<M>) {
    // SAFETY: shard and event are valid. No reference to the shard is held while code of the message type runs.
    unsafe {
        let now = (*shard).window.base + (*event).label.offset() as u64;
        let event = StoredEvent::read(event, now);
        (*shard).leave();
        (*shard).turn.me = event.head.to;
        (*shard).turn.now = now;
        let token = event.head.cause.parent as u32;
        if event.head.kind() == Kind::Timer && (*shard).is_cancelled(token) {
            // A cancelled timer has no effect, whether it was already removed or not.
            return;
        }
        (*shard).resume(event.head);
        let kind = event.message_kind();
        (*shard).resume_stashed(event.head, kind);
        drop((*shard).undeliverable(event, kind));
    }
}
