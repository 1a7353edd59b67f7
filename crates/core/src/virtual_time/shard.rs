//! A shard: the state that its actors use while they run, for sending, timers and random numbers.
//!
//! A shard belongs to one thread and is not shared. The engine and the contexts of its actors access the shard in turn,
//! through a raw pointer: **no reference to the shard exists while code of an actor runs**.

#[cfg(feature = "serde")]
mod actor_records;
mod counters;
mod current;
mod ending;
mod handles;
mod injection;
mod multicasts;
mod own_messages;
mod queues;
mod scratch;
mod sending;
mod timer;
mod transit;
mod turn;
mod waits;

#[cfg(feature = "serde")]
pub(super) use actor_records::ActorRecords;
pub(super) use counters::{Counters, Failure, FailureCause, compare_panics};
pub(crate) use counters::{LoggedEvent, LoggedKind};
pub(super) use multicasts::{ByClosure, MakeBodies};
#[cfg(feature = "serde")]
pub(super) use multicasts::{ByKind, read_bodies};
pub(super) use timer::Timer;
pub(super) use waits::is_handle;

use super::actor_table::ActorTable;
use super::event::{Head, Kind, MAX_WINDOW_BITS, ScheduledEvent};
use super::header::Header;
use super::multicast::{Multicast, Sharing};
use super::population::SpawnRequest;
use super::stash::Stash;
use super::turn_cell::TurnCell;
use crate::contract::random::Streams;
use crate::contract::{Config, DeadLetters, Latency, Message, Panics, TimerHandle, Token};
use handles::TimerOutcome;
use own_messages::OwnMessages;
use queues::Queues;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;
use turn::{Settings, Turn, Window};
use waits::Waits;

/// The address of the root, which is the first actor of a run.
pub(super) const ROOT: u32 = 0;

/// The domain separator of the network's random numbers: a constant that is mixed into their key.
pub(super) const NETWORK: u64 = 0x4E45_5457_4F52_4B21;

/// The cell of a shard of this message type.
pub(super) type ShardCell<M> = TurnCell<Shard<M>>;

pub(super) struct Shard<M> {
    /// A number that is unique within the process, so that a context can recognise its shard.
    pub(super) id: u32,
    pub(super) index: usize,
    pub(super) settings: Settings,
    pub(super) window: Window,
    pub(super) turn: Turn<M>,
    pub(super) places: ActorTable,
    pub(super) queues: Queues<M>,
    pub(super) spawns: Vec<SpawnRequest<M, Shard<M>>>,
    /// The multicasts that the shard's actors have requested since the last barrier.
    pub(super) multicasts: Vec<Multicast<Shard<M>>>,
    pub(super) stash: Stash<M>,
    pub(super) counters: Counters,
    pub(super) waits: Waits,
    /// Events of the current window that are due after a pause, and timers that were set in this window.
    pub(super) pending: Vec<ScheduledEvent<M>>,
    /// True if the run is over. Failures after that are reported only if there was no earlier failure.
    pub(super) over: bool,
    /// True if an event other than a message or timer occurred in the window: an actor has ended or failed, or
    /// requested a spawn or a multicast.
    pub(super) notable: bool,
    /// Spawns requested at this time or later must wait: another actor may still request a spawn at this instant, and
    /// all spawns need a common order.
    pub(super) spawns_wait_from: u64,
    /// All events so far, if events are recorded for a comparison with another run.
    pub(super) trail: Option<Vec<LoggedEvent>>,
    /// The events of the current window that are due after the limit. Each entry has the time of an event, and the key
    /// of its timer (`u64::MAX` if the event is not a timer).
    deferred: Vec<(u64, u64)>,
    /// Events that would arrive after the end of time. They are dropped with the shard.
    never: Vec<ScheduledEvent<M>>,
    /// The number of spawns that each actor has requested.
    requests: HashMap<u32, u32>,
    /// The arrival of the last message of each pair, if the network keeps the order of messages.
    last: HashMap<(u32, u32), u64>,
    /// Messages of actors to themselves without delay.
    own: OwnMessages<M>,
}

/// Returns a new number for a shard. Numbers are not reused within the process, so a context that outlives its run
/// cannot access a shard of another run.
fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(id != u32::MAX, "four billion shards in one process");
    id
}

impl<M: Message> Shard<M> {
    pub(super) fn new(config: &Config, index: usize) -> Box<Shard<M>> {
        let window_bits = config.lookahead_nanos().ilog2().min(MAX_WINDOW_BITS);
        let shards = config.workers.get();
        Box::new(Shard {
            id: unique(),
            index,
            settings: Settings {
                streams: Streams::new(config.seed),
                latency: config.latency,
                latency_key: Latency::key(config.seed),
                network: config.network.clone(),
                network_key: crate::contract::random::key(config.seed, NETWORK),
                most_at_once: config.most_at_once.get(),
                cancel: config.cancel.clone(),
                window_bits,
                offset_mask: (1 << window_bits) - 1,
                plain: !config.traces && config.network.is_none(),
                sharing: match shards > 1 && !config.traces && config.network.is_none() {
                    true => Sharing::All,
                    false => Sharing::None,
                },
                to_root: config.dead_letters == DeadLetters::ToRoot,
                warm_up: config.warm_up.as_nanos(),
                per_actor: config.per_actor,
                traces: config.traces,
                attentive: config.per_actor,
                survives_panics: config.panics == Panics::EndActor,
            },
            window: Window::new(window_bits, config.last_nanos()),
            turn: Turn::new(),
            places: ActorTable::new(index, shards),
            queues: Queues::new(index, shards, window_bits),
            spawns: Vec::new(),
            multicasts: Vec::new(),
            stash: Stash::new(),
            counters: Counters::new(M::KINDS.len()),
            waits: Waits::default(),
            pending: Vec::new(),
            over: false,
            notable: false,
            spawns_wait_from: u64::MAX,
            trail: None,
            deferred: Vec::new(),
            never: Vec::new(),
            requests: HashMap::new(),
            last: HashMap::new(),
            own: OwnMessages::default(),
        })
    }

    /// Advances to the window with this number. No event of this shard may be due before it.
    ///
    /// The timer wheels advance even if the shard has no events. They place entries relative to their window, so with
    /// an old window the shard would request a window that is over.
    #[inline]
    pub(super) fn go_to(&mut self, window: u64) {
        self.window.go_to(window, self.settings.window_bits);
        self.queues.timers.advance(window);
        self.queues.far.advance(window);
    }

    /// Records that no actor is running, so that code that runs from now on does not act for an actor.
    pub(super) fn leave(&mut self) {
        self.turn.header = self.turn.scratch.header();
        self.resume(Turn::<M>::nothing());
        self.turn.arrival = None;
    }

    pub(super) fn min_latency(&self) -> u64 {
        self.settings.latency.min
    }

    pub(super) fn max_latency(&self) -> u64 {
        self.settings
            .latency
            .min
            .saturating_add(self.settings.latency.spread)
    }

    /// Returns the time until all messages sent now have arrived: the longest latency, plus a window.
    pub(super) fn time_to_settle(&self) -> u64 {
        self.max_latency().saturating_add(self.min_latency())
    }

    /// Returns the header of the actor being run.
    #[inline(always)]
    fn header(&mut self) -> &mut Header {
        // SAFETY: the header is the one of the actor being run, which stays in place, or the shard's own. Only this
        // shard's thread uses it. The reference borrows the shard, so it ends before other code uses the cell.
        unsafe { &mut *self.turn.header.as_ptr() }
    }

    /// Returns the head of the event being handled.
    #[inline(always)]
    pub(super) fn current(&self) -> Head {
        match self.turn.current {
            Some(event) => event.head(self.turn.now),
            None => self.turn.resumed,
        }
    }

    /// Sets a timer of the actor being run.
    #[inline]
    pub(super) fn set_timer(&mut self, after: u64, token: u32) {
        let time = self.turn.now.saturating_add(after);
        if time < self.window.end {
            return self.turn.timers.push(self.turn.now, time, token);
        }
        if time != u64::MAX {
            let actor = self.turn.me;
            self.queues.timers.push(Timer { time, actor, token });
        }
    }

    /// Sets a cancellable timer of the actor being run.
    #[inline]
    pub(super) fn set_handle(&mut self, after: u64, token: Token, period: u64) -> TimerHandle {
        let own = self.waits.add_handle(self.turn.me, token, period);
        self.set_timer(after, own.0);
        TimerHandle(own)
    }

    /// Cancels a timer of the actor being run; returns false if it has fired or was already cancelled.
    #[inline]
    pub(super) fn cancel_handle(&mut self, timer: TimerHandle) -> bool {
        self.waits.cancel_handle(self.turn.me, timer.0)
    }

    /// Handles a due cancellable timer: returns the actor's token, unless the timer was cancelled. A periodic timer is
    /// set again.
    #[inline(always)]
    pub(super) fn handle_due(&mut self, own: u32) -> Option<u32> {
        let TimerOutcome::Fires { token, period } = self.waits.handle_due(self.turn.me, own) else {
            return None;
        };
        if period > 0 {
            self.set_timer(period, own);
        }
        Some(token.0)
    }

    /// True if the timer being run was cancelled.
    pub(super) fn is_cancelled(&mut self, token: u32) -> bool {
        token >= Token::OWN && self.waits.take_cancelled(self.turn.me, token)
    }

    /// Removes cancelled timers from the wheel, if there are many of them or if `at_once` is true.
    pub(super) fn sweep(&mut self, at_once: bool) {
        if self.waits.are_many() || at_once {
            self.note_tokens_in_use();
            let elsewhere = !self.deferred.is_empty() || !self.pending.is_empty();
            self.waits.sweep(&mut self.queues.timers, elsewhere);
        }
    }

    /// True if enough timers were cancelled that removing them from the wheel pays off.
    #[inline]
    pub(super) fn waits_are_many(&self) -> bool {
        self.waits.are_many()
    }

    /// Returns true if no event was deferred: neither by the limit nor by a pause.
    pub(super) fn has_deferred_nothing(&self) -> bool {
        self.deferred.is_empty() && self.pending.is_empty()
    }

    /// Defers an event that is due after the limit.
    pub(super) fn defer(&mut self, time: u64, event: &Head) {
        let key = match event.kind() {
            Kind::Timer => timer::key(event.to, event.cause.parent as u32),
            _ => u64::MAX,
        };
        self.deferred.push((time, key));
    }

    /// Defers a spawn whose actors would exist only after the limit.
    pub(super) fn defer_spawn(&mut self, birth_time: u64) {
        self.deferred.push((birth_time, u64::MAX));
    }

    /// Removes the timers after the limit of actors that are not `alive`, which may read the shard; O(timers).
    pub(super) fn retain_timers(cell: ShardCell<M>, alive: impl Fn(u32) -> bool) {
        let (limit, mut timers, mut deferred) = cell.with(|shard| {
            let deferred = std::mem::take(&mut shard.deferred);
            (shard.window.limit, shard.queues.take_timers(), deferred)
        });
        timers.retain(|timer| timer.time <= limit || alive(timer.actor));
        deferred.retain(|(_, key)| *key == u64::MAX || alive(timer::actor(*key)));
        cell.with(|shard| (shard.queues.timers, shard.deferred) = (timers, deferred));
    }

    /// Returns the time of the first deferred event.
    pub(super) fn beyond(&self) -> u64 {
        let due = self.deferred.iter();
        let due = due.filter(|(_, key)| !self.waits.is_cancelled(*key));
        due.map(|(time, _)| *time).min().unwrap_or(u64::MAX)
    }

    /// Returns a window after the current one in which a deferred event is due. The current window is then over.
    #[inline]
    pub(super) fn window_beyond(&self) -> u64 {
        if self.deferred.is_empty() {
            return u64::MAX;
        }
        match self.beyond() {
            u64::MAX => u64::MAX,
            time => (time >> self.settings.window_bits).max(self.window.number + 1),
        }
    }

    /// Counts events that the actor being run has caused itself at this instant; returns false if there are too many of
    /// them, or if the run was cancelled.
    #[inline(always)]
    pub(super) fn may_continue(&mut self, events: u32) -> bool {
        events < self.settings.most_at_once && !events.is_multiple_of(1024)
            || self.check_livelock(events)
    }

    #[cold]
    #[inline(never)]
    fn check_livelock(&mut self, events: u32) -> bool {
        if events >= self.settings.most_at_once {
            self.fail(FailureCause::Livelock(events));
            return false;
        }
        !(events.is_multiple_of(1024) && self.settings.cancel.is_cancelled())
    }

    /// Returns the next random number of the actor being run.
    #[inline(always)]
    pub(super) fn random(&mut self) -> u64 {
        let drawn = self.header().draw();
        self.settings.streams.nth(self.turn.me, drawn)
    }

    /// Returns the number of a spawn request of the actor being run.
    pub(super) fn request(&mut self) -> u32 {
        self.header().set_spawns();
        let requests = self.requests.entry(self.turn.me).or_default();
        *requests = requests.wrapping_add(1);
        *requests
    }

    /// Removes the shard's data about the actor being run, which has ended. The caller drops the returned
    /// waker.
    #[inline]
    #[must_use = "dropping a waker runs foreign code; drop it where no reference is held"]
    pub(super) fn forget(&mut self) -> Option<Waker> {
        if self.header().has_spawns() {
            self.forget_requests();
        }
        self.waits.forget_handles(self.turn.me);
        self.waits.take_relay(self.turn.me)
    }

    #[cold]
    #[inline(never)]
    fn forget_requests(&mut self) {
        self.requests.remove(&self.turn.me);
    }

    /// Returns the first window after the current one that has an event, or the current one if a pause has interrupted
    /// it. Only the events known to this shard count: those for its own actors, and those that it has sent to other
    /// shards.
    #[inline]
    pub(super) fn next_window(&self) -> u64 {
        if !self.pending.is_empty() || self.has_waiting_spawns() {
            return self.window.number;
        }
        let bits = self.settings.window_bits;
        let spawned = |request: &SpawnRequest<M, Shard<M>>| {
            request.time.saturating_add(self.settings.latency.min) >> bits
        };
        let near = self.queues.next_window(self.window.number, bits);
        let sent = |multicast: &Multicast<Shard<M>>| {
            let sent = multicast.label.sent;
            sent.saturating_add(self.settings.latency.min) >> bits
        };
        let near = self.spawns.iter().map(spawned).fold(near, u64::min);
        self.multicasts.iter().map(sent).fold(near, u64::min)
    }
}
