//! The main loop of a shard, which alternates between barriers and windows.

mod actor_cache;
mod borrowed_shards;
mod control;
mod density;
mod multicasts;
mod outcome;
#[cfg(feature = "serde")]
mod restoring;
#[cfg(feature = "serde")]
mod saving;
mod single_threaded;
mod sparse;
mod spawning;
mod window;

use borrowed_shards::BorrowedShard;
pub(super) use control::PausableShard;
use density::Density;
pub(super) use outcome::Outcome;
pub(super) use single_threaded::run_together;
use sparse::{FEW, run_sparse};

use super::buffer::{Buffer, FreeChunks};
use super::event::{Head, Kind, Label, ScheduledEvent};
use super::exchange::{Exchange, Reduction};
use super::header::{Header, State};
use super::order::Order;
use super::outbox::{RING, ShardBatch, next_pending};
use super::pause::{Never, Pause};
use super::population::{Blueprint, Population};
use super::region::Prefault;
use super::shard::ShardCell;
use super::shard::{ROOT, Shard};
use super::slab::Slab;
use super::stored_event::EventSpaces;
use crate::contract::{Addr, Config, Message, Spawn};
use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

/// The reason why the loop ended; it is the same on all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum End {
    /// The root has ended.
    Root,
    /// No event is left.
    Quiet,
    /// The next event would be after the configured end.
    Past,
    /// The run was halted by a panic, a cancellation, or too many actors.
    Halted,
    /// All events before the requested pause have happened.
    Paused,
}

/// The population of actors of any type.
type AnyPopulation<M> = Box<dyn Population<M>>;

/// A shard, with the state that only its loop uses.
pub(super) struct Engine<M: Message> {
    /// The shard, which outlives the engine. Only the thread that uses the engine uses it.
    shard: ShardCell<M>,
    populations: Slab<AnyPopulation<M>>,
    /// The populations of actors that share pages, by their type.
    shared_populations: HashMap<TypeId, u32>,
    /// Populations to pre-fault while the shard waits at the barrier.
    growing: Vec<u32>,
    /// Events from other shards, by window modulo 64, each buffer with its shard of origin.
    inbound: Vec<Vec<(usize, Buffer<M>)>>,
    inbound_pending: u64,
    out: Vec<ShardBatch<M, Shard<M>>>,
    inbox: Vec<ShardBatch<M, Shard<M>>>,
    /// The events of the current window, each buffer with its shard of origin.
    events: Vec<(usize, Buffer<M>)>,
    /// The memory of the events of the current window.
    spent: Vec<(usize, FreeChunks<M>)>,
    order: Order<M>,
    /// Memory for the timers of a window with few events.
    event_spaces: EventSpaces<M, FEW>,
    spawned: u64,
    windows: u64,
    /// True if the last window had events that were not reported yet.
    busy: bool,
    /// True if the last window counts as one with events.
    counted: bool,
    /// True if the current window extends beyond the limit, so that later events are deferred.
    defer_late: bool,
    density: Density,
    /// The end of the run, if it ended while another thread ran this shard.
    lent_end: Option<End>,
    /// The time of the first event that was not handled.
    next: u64,
    /// The time that would be reported as the end of the run if the run were over now.
    over: u64,
}

/// Pre-faults memory that actors need soon.
fn populate_ahead<M: Message>(
    growing: &mut Vec<u32>,
    populations: &Slab<AnyPopulation<M>>,
) -> bool {
    let mut some = false;
    growing.retain(|&number| {
        let population = (!some).then(|| populations.get(number)).flatten();
        let ahead = population.map(|population| population.populate_ahead());
        some |= ahead == Some(Prefault::Populated);
        some || ahead == Some(Prefault::Early)
    });
    some
}

impl<M: Message> Engine<M> {
    fn new(shard: ShardCell<M>, shards: usize) -> Engine<M> {
        Engine {
            shard,
            populations: Slab::new(),
            shared_populations: HashMap::new(),
            growing: Vec::new(),
            inbound: (0..RING).map(|_| Vec::new()).collect(),
            inbound_pending: 0,
            out: (0..shards).map(|_| ShardBatch::default()).collect(),
            inbox: (0..shards).map(|_| ShardBatch::default()).collect(),
            events: Vec::new(),
            spent: Vec::new(),
            order: Order::new(),
            event_spaces: EventSpaces::new(),
            spawned: 0,
            windows: 0,
            busy: false,
            counted: true,
            defer_late: false,
            density: Density::default(),
            lent_end: None,
            next: u64::MAX,
            over: 0,
        }
    }

    /// Returns the shard; no actor runs while it is borrowed.
    fn shard(&mut self) -> &mut Shard<M> {
        // SAFETY: the shard outlives the engine, and only this thread uses it. The reference borrows the engine, so it
        // ends before the engine uses the cell or runs actors.
        unsafe { &mut *self.shard.as_ptr() }
    }

    /// Spawns the root, and runs its start at time 0.
    fn begin(&mut self, root: Arc<dyn Blueprint<M, Shard<M>>>) {
        let spawn = Spawn::one("root");
        let first = self.place(Addr::NONE.as_u32(), spawn, root, 0);
        if first == Some(ROOT) && self.shard().places.owns(ROOT) {
            let start = ScheduledEvent::bare(Head::new(0, Kind::Start, ROOT, ROOT, 0, 0));
            let mut events = Buffer::new();
            let shard = self.shard();
            events.push(shard.queues.pool(), start);
            let index = shard.index;
            self.events.push((index, events));
            self.run_events(&Never);
        }
    }

    /// Runs windows one after the other, until all shards agree to stop or to pause.
    fn run<X: Exchange<ShardBatch<M, Shard<M>>>, P: Pause>(
        &mut self,
        config: &Config,
        exchange: &mut X,
        pause: &P,
    ) -> End {
        self.shard().window.pause = pause.before();
        loop {
            let contribution = self.prepare_contribution(config);
            let Engine {
                out,
                inbox,
                populations,
                growing,
                ..
            } = self;
            let idle = || populate_ahead(growing, populations);
            let agreed = exchange.exchange(contribution, out, inbox, idle);
            self.density.count(&agreed);
            if let Some(end) = self.carry_out(config, agreed, pause) {
                return end;
            }
            if self.out.len() == 1 && exchange.can_lend() {
                self.run_alone(config, pause);
            }
            if self.density.is_sparse()
                && self.out.len() > 1
                && exchange.can_lend()
                && let Some(end) = self.run_borrowed(config, exchange, pause)
            {
                return end;
            }
        }
    }

    /// Runs windows of a single shard, until a decision is needed.
    fn run_alone<P: Pause>(&mut self, config: &Config, pause: &P) {
        let mut borrowed = [BorrowedShard::new(self)];
        let mut density = Density::default();
        run_sparse::<M, P, true>(&mut borrowed, &mut density, config, pause);
    }

    /// Prepares this shard's contribution to the reduction, and its batches, before the next window.
    fn prepare_contribution(&mut self, config: &Config) -> Reduction {
        let contribution = self.contribution(config);
        self.hand_over(contribution.next);
        contribution
    }

    /// Runs the window that all shards have agreed on, unless they have agreed to stop or to pause.
    fn carry_out<P: Pause>(
        &mut self,
        config: &Config,
        agreed: Reduction,
        pause: &P,
    ) -> Option<End> {
        self.windows += u64::from(agreed.busy);
        self.counted |= agreed.busy;
        self.over = match agreed.end {
            u64::MAX => agreed.last,
            end => end - self.shard().min_latency(),
        };
        if agreed.halt {
            return Some(End::Halted);
        }
        let shard = self.shard();
        let limit = shard.window.limit.min(agreed.end);
        shard.window.limit = limit;
        if agreed.next == u64::MAX {
            return Some(if agreed.end == u64::MAX && pause.is_asked() {
                self.absorb();
                End::Paused
            } else if agreed.end == u64::MAX {
                End::Quiet
            } else {
                End::Root
            });
        }
        // Ends the run if the last window reaches the limit, or the next window begins after it.
        let bits = shard.settings.window_bits;
        let last = shard.window.base | ((1 << bits) - 1);
        let again = shard.window.number == agreed.next;
        if !again && (last >= limit || agreed.next << bits > limit) {
            if limit == agreed.end {
                return Some(End::Root);
            }
            self.absorb();
            if pause.is_asked() {
                return Some(End::Paused);
            }
            self.next = self.earliest();
            return Some(End::Past);
        }
        if shard.places.owns(ROOT) {
            config.progress.reached(agreed.next << bits);
        }
        self.absorb();
        let begin = agreed.next << bits;
        if agreed.pause
            || begin > pause.before()
            || begin == pause.before() && pause.also().is_none()
        {
            return Some(End::Paused);
        }
        self.run_window(agreed.next, pause);
        // The rest of the window waits for the next call.
        let parted = P::EVER && begin | ((1 << bits) - 1) >= pause.before();
        if parted {
            self.send_all();
        }
        parted.then_some(End::Paused)
    }

    /// Returns the time of the first pending event of this shard's actors; O(pending).
    #[cold]
    fn earliest(&mut self) -> u64 {
        let near = self.near(|_| true);
        let shard = self.shard();
        let later = [shard.queues.timers.earliest(), shard.queues.far.earliest()];
        near.into_iter()
            .chain(later.into_iter().flatten())
            .chain(shard.pending())
            .fold(shard.beyond(), u64::min)
    }

    /// Removes cancelled timers, and timers after the limit whose actors have ended: timers within a window
    /// are removed with the actor, and the position of window boundaries must not be visible. O(timers).
    #[cold]
    fn sweep_all(&self) {
        self.shard.with(|shard| shard.sweep(true));
        Shard::retain_timers(self.shard, |actor| self.is_alive(actor));
    }

    /// True if this shard has the actor, and the actor has not ended.
    fn is_alive(&self, actor: u32) -> bool {
        let state = self.header(actor).map(|header| header.state);
        state.is_some_and(|state| state != State::Ended)
    }

    /// Returns a copy of the header of an actor, if this shard has it.
    fn header(&self, actor: u32) -> Option<Header> {
        let number = self.shard.read(|shard| shard.places.population(actor))?;
        let header = self.populations.get(number)?.header(actor)?;
        Some(header.read(|header| *header))
    }

    /// Returns the time of the first matching event in the ring.
    fn near(&self, wanted: impl Fn(&Label) -> bool) -> Option<u64> {
        self.shard.read(|shard| self.near_of(shard, wanted))
    }

    /// Returns the time of the first matching event in the ring of the shard, and in the inbound buffers.
    fn near_of(&self, shard: &Shard<M>, wanted: impl Fn(&Label) -> bool) -> Option<u64> {
        let next = shard.window.number + 1;
        let begin = |place: usize| {
            let ahead = (place as u64).wrapping_sub(next) % RING;
            (next + ahead) << shard.settings.window_bits
        };
        // Events for other shards stay in this shard's ring until their window is next.
        let rings = shard
            .queues
            .out()
            .iter()
            .flat_map(|out| out.ring.iter().enumerate());
        let inbound = self.inbound.iter().enumerate();
        let inbound = inbound
            .flat_map(|(place, buffers)| buffers.iter().map(move |(_, buffer)| (place, buffer)));
        let mut first: Option<u64> = None;
        for (place, buffer) in rings.chain(inbound) {
            buffer.for_each(|event| {
                let label = event.label();
                if wanted(label) {
                    let time = begin(place) + label.offset() as u64;
                    first = Some(first.map_or(time, |first| first.min(time)));
                }
            });
        }
        first
    }

    /// Returns this shard's contribution to the reduction.
    fn contribution(&mut self, config: &Config) -> Reduction {
        let inbound = self.inbound_pending;
        let busy = std::mem::take(&mut self.busy);
        let events = self.order.events().len() as u64;
        let shard = self.shard();
        shard.sweep(false);
        let mut next = shard.next_window();
        let bits = shard.settings.window_bits;
        let last = shard.window.base | ((1 << bits) - 1);
        let limit = shard.window.limit;
        let may_end = last >= limit || next != u64::MAX && next << bits > limit;
        // If the root has ended before the limit, the run ends with it, whatever events follow.
        if may_end && limit == config.last_nanos() {
            // The run may end here. Timers for which no actor waits must not affect its outcome.
            self.sweep_all();
            next = self.shard().next_window();
        }
        let shard = self.shard();
        let beyond = shard.window_beyond();
        let next = next
            .min(next_pending(inbound, shard.window.number))
            .min(beyond);
        let failed = shard.counters.failure.is_some() || shard.counters.too_many;
        Reduction {
            next,
            end: shard.counters.root_end,
            halt: failed || config.cancel.is_cancelled(),
            pause: false,
            busy,
            events,
            last: shard.counters.last,
        }
    }

    /// Fills the batches for the other shards with events up to the window `next`, which this shard contributes to the
    /// reduction. Later events stay in their buffers, to which further events are added, so the number of buffers does
    /// not grow with the number of shards.
    fn hand_over(&mut self, next: u64) {
        let out = &mut self.out;
        self.shard.with(|shard| fill_batches(shard, out, next));
    }

    /// Takes the batches of the other shards, carries out the requested spawns, and makes multicast messages.
    fn absorb(&mut self) {
        let (spawns, multicasts) = self.shard.with(|shard| {
            let mut spawns = Vec::new();
            if !shard.spawns.is_empty() {
                spawns = shard.take_ready_spawns();
            }
            let mut multicasts = std::mem::take(&mut shard.multicasts);
            for (from, batch) in self.inbox.iter_mut().enumerate() {
                if batch.is_empty() && batch.spent.is_empty() {
                    continue;
                }
                for (window, buffer) in batch.windows.drain(..) {
                    self.inbound_pending |= 1 << (window % RING);
                    self.inbound[(window % RING) as usize].push((from, buffer));
                }
                batch
                    .far
                    .drain(..)
                    .for_each(|far| shard.queues.far.push(far));
                let pool = shard.queues.pool();
                let spent = batch.spent.drain(..);
                spent.for_each(|spent| pool.put(spent));
                spawns.append(&mut batch.spawns);
                multicasts.append(&mut batch.multicasts);
            }
            (spawns, multicasts)
        });
        if !spawns.is_empty() {
            self.spawn_all(spawns);
        }
        if !multicasts.is_empty() {
            self.send_own(multicasts);
        }
    }

    /// Runs the events of one window, or of its part before a pause.
    fn run_window<P: Pause>(&mut self, window: u64, pause: &P) {
        if P::EVER && window == self.shard().window.number {
            let mut events = Buffer::new();
            let shard = self.shard();
            for event in shard.pending.drain(..) {
                events.push(shard.queues.pool(), event);
            }
            let index = shard.index;
            self.events.push((index, events));
        } else {
            self.counted = false;
            self.gather_window(window);
        }
        self.run_gathered(pause);
    }

    /// Runs the events that have been gathered.
    fn run_gathered<P: Pause>(&mut self, pause: &P) {
        let before = self.counts();
        self.run_events(pause);
        self.busy = !self.counted && self.counts() != before;
        if P::EVER {
            self.set_spawns_wait(pause);
        }
    }

    /// Sets the time from which spawns wait before a pause.
    fn set_spawns_wait<P: Pause>(&mut self, pause: &P) {
        self.shard().spawns_wait_from = pause.also().map_or(u64::MAX, |_| pause.before());
    }
}

/// Fills the batches for the other shards with events of a shard up to the window `next`; see [`Engine::hand_over`].
fn fill_batches<M: Message>(shard: &mut Shard<M>, out: &mut [ShardBatch<M, Shard<M>>], next: u64) {
    let place = next % RING;
    for (to, batch) in out.iter_mut().enumerate() {
        if to == shard.index {
            continue;
        }
        let out = &mut shard.queues.out_mut()[to];
        // The contribution names the first pending window of all shards in this loop, or for an earlier one.
        let due = next_pending(out.pending, shard.window.number) == next;
        if due && next != u64::MAX {
            out.pending &= !(1 << place);
            let buffer = std::mem::replace(&mut out.ring[place as usize], Buffer::new());
            batch.windows.push((next, buffer));
        }
        if !out.far.is_empty() {
            batch.far.append(&mut out.far);
        }
        if !shard.spawns.is_empty() {
            batch.spawns.extend(shard.ready_spawns().cloned());
        }
        if !shard.multicasts.is_empty() {
            batch.multicasts.extend_from_slice(&shard.multicasts);
        }
    }
}
