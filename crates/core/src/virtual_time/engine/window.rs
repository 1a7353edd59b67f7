//! Runs one window: gathers its events, orders them, and passes them to their populations.

use super::actor_cache::ActorCache;
use super::outcome::note_panic;
use super::{AnyPopulation, Engine};
use crate::contract::Message;
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::event::Kind;
use crate::virtual_time::outbox::RING;
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::{Shard, ShardCell};
use crate::virtual_time::slab::Slab;
use crate::virtual_time::stored_event::{EventPtr, UnreadEvent};
use crate::virtual_time::turn_cell::caught;

impl<M: Message> Engine<M> {
    /// Gathers the events of one window.
    pub(super) fn gather_window(&mut self, window: u64) {
        let place = (window % RING) as usize;
        self.inbound_pending &= !(1 << place);
        self.events.append(&mut self.inbound[place]);
        let limit = self.shard.with(|shard| {
            shard.go_to(window);
            let index = shard.index;
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
            shard.window.limit
        });
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
        let shard = self.shard();
        let (base, limit) = (shard.window.base, shard.window.limit);
        let mut deferred = Vec::new();
        self.order.retain(|event| {
            let time = base + event.label().offset() as u64;
            if time > limit {
                // SAFETY: the event has not been moved out, and is moved out once, because `order` does not retain it.
                deferred.push((time, unsafe { event.read(time) }));
            }
            time <= limit
        });
        let shard = self.shard();
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
            // SAFETY: the chunks of the buffers go to `spent`, where they stay until the events have been handled. The
            // order is cleared before it is used again.
            unsafe { self.order.add(buffer) };
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
        self.shard.with(|shard| shard.window.scattered = scattered);
        // SAFETY: the events in `order` were gathered above for this shard and have not been moved out. No reference to
        // the shard is held.
        unsafe { run_order(self.shard, &self.populations, order) };
        self.shard.with(Shard::leave);
        self.forget_ended();
        self.shard.with(|shard| {
            while let Some((from, spent)) = self.spent.pop() {
                if from == shard.index {
                    shard.queues.pool().put(spent);
                } else {
                    self.out[from].spent.push(spent);
                }
            }
        });
    }
}

/// Passes the only event of a window to its population.
///
/// # Safety
/// As for [`run_order`]; the cache has been filled for this shard since it removed actors.
#[inline(always)]
pub(super) unsafe fn run_event<M: Message>(
    shard: ShardCell<M>,
    cache: &mut ActorCache<M>,
    populations: &Slab<AnyPopulation<M>>,
    event: EventPtr<M>,
) {
    let to = event.label().to;
    let found = cache.get(to);
    // SAFETY: a cached population still exists, because the shard has not removed actors. The event has not been moved
    // out, and its receiver is on this shard.
    unsafe {
        let Some((population, header)) = found.or_else(|| cache.find(shard, populations, to))
        else {
            return run_order(shard, populations, &[event]);
        };
        let population = population.as_ref();
        let run = || population.run_one(header, event);
        if let Err(panic) = caught(run) {
            note_panic(shard, population, &*panic);
        }
    }
}

/// Passes events to their populations, in this order.
///
/// # Safety
/// `populations` are those of the shard, and the receivers of the events are on it. No reference to the shard is held.
/// The events have not been moved out, and their memory exists during the call; they are moved out.
#[inline(always)]
pub(super) unsafe fn run_order<M: Message>(
    shard: ShardCell<M>,
    populations: &Slab<AnyPopulation<M>>,
    order: &[EventPtr<M>],
) {
    let mut at = 0;
    while let Some(&event) = order.get(at) {
        let number = shard.read(|shard| shard.places.population(event.label().to));
        let population = number.and_then(|number| populations.get(number));
        // SAFETY: the events from `at` on have not been moved out, and each is moved out once. No reference to the shard
        // is held while populations run.
        let run = || unsafe {
            match population {
                Some(population) => population.run(order, at),
                None => {
                    discard(shard, UnreadEvent::new(event));
                    at + 1
                }
            }
        };
        at = match caught(run) {
            Ok(next) => next,
            Err(panic) => match population {
                Some(population) => {
                    note_panic(shard, &**population, &*panic);
                    shard.with(|shard| shard.window.cursor) + 1
                }
                None => {
                    shard.with(|shard| {
                        let (event, peer) = shard.describe_current();
                        shard.note_panic(event, peer, &*panic);
                    });
                    at + 1
                }
            },
        };
    }
}

/// Handles an event for an address without an actor.
#[cold]
fn discard<M: Message>(cell: ShardCell<M>, event: UnreadEvent<M>) {
    let base = cell.with(|shard| shard.window.base);
    let now = base + event.event().label().offset() as u64;
    let event = event.read(now);
    let is_cancelled = cell.with(|shard| {
        shard.leave();
        shard.turn.me = event.head.to;
        shard.turn.now = now;
        let token = event.head.cause.parent as u32;
        event.head.kind() == Kind::Timer && shard.is_cancelled(token)
    });
    if is_cancelled {
        // A cancelled timer has no effect, whether it was already removed or not.
        return;
    }
    cell.with(|shard| shard.resume(event.head));
    let kind = event.message_kind();
    let dropped = cell.with(|shard| {
        shard.resume_stashed(event.head, kind);
        shard.undeliverable(event, kind)
    });
    drop(dropped);
}
