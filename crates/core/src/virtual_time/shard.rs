//! A shard: what its actors touch while they run. Sending, timers, random numbers.
//!
//! A shard is owned by one thread and not shared. It is reached through a raw pointer by
//! the engine and by the contexts of its actors, in turn: **no reference to it is held while code
//! of an actor runs**.

mod aside;
mod outside;
mod own;
mod queues;
mod tally;
mod timer;
mod transit;
mod turn;
mod waits;

pub(crate) use tally::Noted;
pub(super) use tally::{Failure, Tally, Why};
pub(super) use timer::Timer;

use super::header::Header;
use super::kept::Kept;
use super::near::NearTimer;
use super::parcel::{Far, RING};
use super::places::Places;
use super::population::SpawnRequest;
use super::scheduled::{Head, Kind, MAX_WINDOW_BITS, Scheduled};
use super::stored::Stored;
use crate::contract::random::Streams;
use crate::contract::{
    Addr, Config, DeadLetters, Event, Latency, Message, Panics, SpanId, TimerHandle, Token,
};
use queues::Queues;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;
use turn::{Rules, Turn, Window};
use waits::Waits;

/// The root is the first actor of a run.
pub(super) const ROOT: u32 = 0;

pub(super) struct Shard<M> {
    /// Unique within the process, so that a context knows its shard.
    pub(super) id: u32,
    pub(super) index: usize,
    pub(super) rules: Rules,
    pub(super) window: Window,
    pub(super) turn: Turn<M>,
    pub(super) places: Places,
    pub(super) queues: Queues<M>,
    pub(super) spawns: Vec<SpawnRequest<M, Shard<M>>>,
    pub(super) kept: Kept<M>,
    pub(super) tally: Tally,
    pub(super) waits: Waits,
    /// Events of the window begun last that come after a pause, and timers that were set in it.
    pub(super) rest: Vec<Scheduled<M>>,
    /// Spawns asked for at this time or later are not carried out: somebody may still ask for one at
    /// this instant, and they are in one order.
    pub(super) spawns_wait_from: u64,
    /// All events so far, if they are to be compared with those of another run.
    pub(super) trail: Option<Vec<Noted>>,
    /// Events after the limit, in a window that contains it: when, and a timer's key or `u64::MAX`.
    held: Vec<(u64, u64)>,
    /// Events that would arrive after the end of time, to be dropped with the shard.
    never: Vec<Scheduled<M>>,
    /// How many spawns each actor has asked for, if any.
    requests: HashMap<u32, u32>,
    /// When the last message of a pair arrives, if the network keeps their order.
    last: HashMap<(u32, u32), u64>,
    /// Messages of actors to themselves that take no time, by actor, with the timers they wait for.
    own: HashMap<u32, Vec<(u32, Scheduled<M>)>>,
}

/// A shard's number within the process. Numbers are not used again, so that a context that was
/// carried out of its run finds no other run's shard.
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
            rules: Rules {
                streams: Streams::new(config.seed),
                latency: config.latency,
                latency_key: Latency::key(config.seed),
                network: config.network.clone(),
                network_key: crate::contract::random::key(config.seed, 0x4E45_5457_4F52_4B21),
                most_at_once: config.most_at_once.get(),
                cut: config.cut.clone(),
                window_bits,
                to_root: config.dead_letters == DeadLetters::ToRoot,
                per_actor: config.per_actor,
                traces: config.traces,
                attentive: config.per_actor,
                survives_panics: config.panics == Panics::EndActor,
            },
            window: Window {
                number: 0,
                base: 0,
                limit: config
                    .end
                    .map_or(u64::MAX - 1, |end| end.as_nanos().min(u64::MAX - 1)),
                pause: u64::MAX,
                scattered: false,
                cursor: 0,
            },
            turn: Turn::new(),
            places: Places::new(index, shards),
            queues: Queues::new(shards, window_bits),
            spawns: Vec::new(),
            kept: Kept::new(),
            tally: Tally::new(M::KINDS.len()),
            waits: Waits::default(),
            rest: Vec::new(),
            spawns_wait_from: u64::MAX,
            trail: None,
            held: Vec::new(),
            never: Vec::new(),
            requests: HashMap::new(),
            last: HashMap::new(),
            own: HashMap::new(),
        })
    }

    /// No actor runs any more: code that still runs acts for none.
    pub(super) fn leave(&mut self) {
        self.turn.header = self.turn.aside.header();
        self.resume(Turn::<M>::nothing());
        self.turn.arrived = std::ptr::null_mut();
    }

    pub(super) fn min_latency(&self) -> u64 {
        self.rules.latency.min
    }

    /// When what is sent now from one actor to another arrives.
    #[inline(always)]
    fn arrival(&self, from: u32, to: u32) -> u64 {
        if self.rules.network.is_some() {
            return self.arrival_by_network();
        }
        let key = self.rules.latency_key;
        let latency = self.rules.latency.of(key, Addr(from), Addr(to));
        self.turn.now.saturating_add(latency)
    }

    /// The same for the actor being run, which often sends several messages to one receiver.
    #[inline(always)]
    fn arrival_at(&mut self, to: u32) -> u64 {
        let pair = (self.turn.me, to);
        if self.turn.pair != pair {
            let key = self.rules.latency_key;
            self.turn.latency = self.rules.latency.of(key, Addr(pair.0), Addr(to));
            self.turn.pair = pair;
        }
        self.turn.now.saturating_add(self.turn.latency)
    }

    pub(super) fn max_latency(&self) -> u64 {
        self.rules
            .latency
            .min
            .saturating_add(self.rules.latency.spread)
    }

    /// The header of the actor being run.
    #[inline(always)]
    fn header(&mut self) -> &mut Header {
        // SAFETY: `header` points to the slot of the actor being run, which stays in place, or
        // aside; only this shard's thread uses it, and there is no other reference to it.
        unsafe { &mut *self.turn.header }
    }

    /// The head of the event being handled.
    #[inline(always)]
    pub(super) fn current(&self) -> Head {
        if self.turn.current.is_null() {
            return self.turn.resumed;
        }
        // SAFETY: a non-null `current` points to the event being handled, whose head stays in place
        // until the next one.
        unsafe { Stored::head(self.turn.current, self.turn.now) }
    }

    /// Sends a message of the actor being run. Returns its span.
    #[inline(always)]
    pub(super) fn post(&mut self, kind: Kind, to: u32, delay: u64, answers: u64, body: M) -> u64 {
        let header = self.header();
        if header.seq == u32::MAX {
            return self.refuse(kind, to, body);
        }
        header.seq += 1;
        let seq = header.seq;
        let time = self.arrival_at(to).saturating_add(delay);
        if kind == Kind::Message && !self.rules.traces {
            let head = Head::new(0, Kind::Plain, to, self.turn.me, seq, self.turn.now);
            self.schedule_plain(time, head, body);
            return head.span();
        }
        let mut head = Head::new(0, kind, to, self.turn.me, seq, self.turn.now);
        let span = head.span();
        let current = self.current();
        (head.cause.trace, head.cause.parent) = if current.cause.trace == 0 {
            (span, 0)
        } else {
            (current.cause.trace, current.span())
        };
        if kind == Kind::Reply {
            head.cause.parent = answers;
        }
        self.schedule(time, Scheduled::with_body(head, body));
        span
    }

    /// The actor being run has used up its sequence numbers: the run fails.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, kind: Kind, to: u32, body: M) -> u64 {
        self.fail(Why::Sends);
        let head = Head::new(0, kind, to, self.turn.me, u32::MAX, self.turn.now);
        self.never.push(Scheduled::with_body(head, body));
        head.span()
    }

    /// Sends an event of the engine's own from the actor being run. It comes after what the actor
    /// has sent before, because it has the number of the last of that, and a later kind.
    pub(super) fn notify(&mut self, kind: Kind, to: u32, parent: u64) {
        let (seq, from) = (self.header().seq, self.turn.me);
        let mut head = Head::new(0, kind, to, from, seq, self.turn.now);
        head.cause.parent = parent;
        let time = self.arrival(from, to);
        self.schedule(time, Scheduled::bare(head));
    }

    /// Schedules what follows from a spawn that `parent` asked for at `asked`.
    pub(super) fn announce(&mut self, kind: Kind, to: u32, spawn: (u64, u32, u32), addresses: u64) {
        let (asked, parent, request) = spawn;
        let mut head = Head::new(0, kind, to, parent, request, asked);
        head.cause.parent = addresses;
        let time = asked.saturating_add(self.min_latency());
        self.schedule(time, Scheduled::bare(head));
    }

    /// Puts an event where its receiver's shard will find it. `time` is in a later window.
    #[inline(always)]
    fn schedule(&mut self, time: u64, mut event: Scheduled<M>) {
        let window = time >> self.rules.window_bits;
        let offset = self.offset(time);
        event.head.label.set_offset(offset);
        if window - self.window.number >= RING || time == u64::MAX {
            return self.schedule_far(time, event);
        }
        let to = self.places.owner(event.head.to);
        // SAFETY: one event is written.
        unsafe {
            let write = |place| Stored::write(place, event);
            self.queues.push_near(to, window, write);
        }
    }

    /// The same for a message of which nothing is known but its sender.
    #[inline(always)]
    fn schedule_plain(&mut self, time: u64, mut head: Head, body: M) {
        let window = time >> self.rules.window_bits;
        let offset = self.offset(time);
        head.label.set_offset(offset);
        if window - self.window.number >= RING || time == u64::MAX {
            return self.schedule_far(time, Scheduled::with_body(head, body));
        }
        let to = self.places.owner(head.to);
        // SAFETY: one event is written.
        unsafe {
            let write = |place| Stored::write_plain(place, head.label, body);
            self.queues.push_near(to, window, write);
        }
    }

    /// Nanoseconds from the begin of its window to this time.
    #[inline(always)]
    fn offset(&self, time: u64) -> u32 {
        time as u32 & ((1 << self.rules.window_bits) - 1)
    }

    /// Puts an event that is due beyond the ring on its way.
    #[cold]
    #[inline(never)]
    fn schedule_far(&mut self, time: u64, event: Scheduled<M>) {
        if time == u64::MAX {
            return self.never.push(event);
        }
        let to = self.places.owner(event.head.to);
        self.queues
            .push_far(to, to == self.index, Far { time, event });
    }

    /// Sets a timer of the actor being run.
    #[inline]
    pub(super) fn set_timer(&mut self, after: u64, token: u32) {
        let time = self.turn.now.saturating_add(after);
        let timer = Timer {
            time,
            actor: self.turn.me,
            token,
        };
        if time >> self.rules.window_bits != self.window.number {
            if time != u64::MAX {
                self.queues.timers.push(timer);
            }
            return;
        }
        self.turn.near.push(self.turn.now, time, token);
    }

    /// Sets a timer of the actor being run that it can cancel.
    pub(super) fn set_handle(
        &mut self,
        after: u64,
        token: Token,
        period: Option<u64>,
    ) -> TimerHandle {
        let own = self.waits.add_handle(self.turn.me, token, period);
        self.set_timer(after, own.0);
        TimerHandle(own)
    }

    /// Cancels a timer of the actor being run; false if it has come or was cancelled.
    pub(super) fn cancel_handle(&mut self, timer: TimerHandle) -> bool {
        let known = self.waits.remove_handle(self.turn.me, timer.0);
        if known {
            self.waits.cancel(self.turn.me, timer.0);
        }
        known
    }

    /// A timer of the library's own is due: the token of the actor's that it stands for, if it does.
    /// One that comes again is set again.
    pub(super) fn handle_due(&mut self, own: u32) -> Option<u32> {
        let (token, period) = self.waits.handle_due(self.turn.me, own)?;
        if let Some(period) = period {
            self.set_timer(period, own);
        }
        Some(token.0)
    }

    /// Whether the timer being run was cancelled.
    pub(super) fn is_cancelled(&mut self, token: u32) -> bool {
        token >= Token::OWN && self.waits.take_cancelled(self.turn.me, token)
    }

    /// Removes timers that were cancelled from the wheel, if there are many of them, or at once.
    pub(super) fn sweep(&mut self, at_once: bool) {
        if self.waits.are_many() || at_once {
            let elsewhere = !self.held.is_empty() || !self.rest.is_empty();
            self.waits.sweep(&mut self.queues.timers, elsewhere);
        }
    }

    /// Holds back an event that is due after the limit.
    pub(super) fn hold(&mut self, time: u64, event: &Head) {
        let key = match event.kind() {
            Kind::Timer => timer::key(event.to, event.cause.parent as u32),
            _ => u64::MAX,
        };
        self.held.push((time, key));
    }

    /// Holds back a spawn whose actors would be there only after the limit.
    pub(super) fn hold_spawn(&mut self, born: u64) {
        self.held.push((born, u64::MAX));
    }

    /// When the first event was due that was held back.
    pub(super) fn beyond(&self) -> u64 {
        let due = self.held.iter();
        let due = due.filter(|(_, key)| !self.waits.is_cancelled(*key));
        due.map(|(time, _)| *time).min().unwrap_or(u64::MAX)
    }

    /// A window in which something is due that was held back; not the current one, which is over
    /// then.
    pub(super) fn window_beyond(&self) -> u64 {
        match self.beyond() {
            u64::MAX => u64::MAX,
            time => (time >> self.rules.window_bits).max(self.window.number + 1),
        }
    }

    /// Counts an event that the actor being run has caused itself at this instant; false if there
    /// are too many of them, or the run was cut: it is not to go on.
    #[cold]
    pub(super) fn may_go_on(&mut self, events: u32) -> bool {
        if events >= self.rules.most_at_once {
            self.fail(Why::Livelock(events));
            return false;
        }
        !(events.is_multiple_of(1024) && self.rules.cut.is_cut())
    }

    /// The next random number of the actor being run.
    #[inline(always)]
    pub(super) fn random(&mut self) -> u64 {
        let drawn = self.header().draw();
        self.rules.streams.nth(self.turn.me, drawn)
    }

    /// The number of a spawn request of the actor being run.
    pub(super) fn request(&mut self) -> u32 {
        self.header().set_spawns();
        let requests = self.requests.entry(self.turn.me).or_default();
        *requests = requests.wrapping_add(1);
        *requests
    }

    /// Forgets what is noted beside the memory of the actor being run, which has ended. What is
    /// returned is to be dropped.
    #[must_use = "dropping a waker is foreign code: done where no reference is held"]
    pub(super) fn forget(&mut self) -> Option<Waker> {
        self.waits.forget_handles(self.turn.me);
        if self.header().has_spawns() {
            self.requests.remove(&self.turn.me);
        }
        self.waits.take_relay(self.turn.me)
    }

    /// From here on, what is sent begins a new trace.
    pub(super) fn new_trace(&mut self) {
        let mut head = self.current();
        head.cause.trace = 0;
        self.resume(head);
    }

    /// From here on, what is sent is on account of this span of this trace.
    #[inline]
    pub(super) fn continue_trace(&mut self, trace: SpanId, parent: SpanId) {
        let mut head = self.current();
        head.cause.trace = trace.as_u64();
        // A span is a sender and its sequence number.
        (head.label.from, head.label.seq) = (parent.sender().0, parent.as_u64() as u32);
        self.resume(head);
    }

    /// From here on, what is sent is on account of this event, which had been kept.
    pub(super) fn resume(&mut self, head: Head) {
        self.turn.resumed = head;
        self.turn.current = std::ptr::null();
    }

    /// Makes a timer due within the window the event being handled.
    pub(super) fn near_event(&mut self, timer: NearTimer) -> *mut Stored<M> {
        let event = timer.event(self.window.base, self.turn.me);
        self.turn.aside.set_event(event)
    }

    /// The same, with the kind of its message, if it is one, for reports.
    pub(super) fn resume_kept(&mut self, head: Head, kind: Option<usize>) {
        self.turn.kind = kind.unwrap_or(self.turn.kind);
        self.resume(head);
    }

    /// The event that has arrived, if it was not taken yet.
    #[inline(always)]
    pub(super) fn take_arrived(&mut self) -> Option<Scheduled<M>> {
        if self.turn.arrived.is_null() {
            return None;
        }
        let event = std::mem::replace(&mut self.turn.arrived, std::ptr::null_mut());
        // SAFETY: a non-null `arrived` points to an event that has not been moved out yet, and is
        // null from here on.
        Some(unsafe { Stored::read(event, self.turn.now) })
    }

    /// The same, as an actor sees it that waits for anything.
    #[inline(always)]
    pub(super) fn take_event(&mut self) -> Option<Event<M>> {
        let arrived = self.turn.arrived;
        // SAFETY: a non-null `arrived` points to an event that has not been moved out yet, and is
        // null from here on. A message has a body.
        unsafe {
            if arrived.is_null() || !(*arrived).label.is_message() {
                return self.take_arrived().and_then(Scheduled::for_actor);
            }
            self.turn.arrived = std::ptr::null_mut();
            Some(Event::Message {
                from: Addr((*arrived).label.from),
                body: Stored::body(arrived).read(),
            })
        }
    }

    /// The same, unless its head is an exception.
    pub(super) fn take_arrived_unless(
        &mut self,
        except: impl Fn(&Head) -> bool,
    ) -> Option<Scheduled<M>> {
        if self.turn.arrived.is_null() {
            return None;
        }
        // SAFETY: a non-null `arrived` points to an event that has not been moved out yet.
        let head = unsafe { Stored::head(self.turn.arrived, self.turn.now) };
        if except(&head) {
            return None;
        }
        self.take_arrived()
    }

    /// Keeps an event for a later receive of the actor being run.
    pub(super) fn keep(&mut self, event: Scheduled<M>) {
        let mut list = self.header().kept;
        self.kept.push(&mut list, event);
        self.header().kept = list;
    }

    /// The first event that the actor being run has kept.
    #[inline(always)]
    pub(super) fn take_kept(&mut self) -> Option<Scheduled<M>> {
        let mut list = self.header().kept;
        if list == 0 {
            return None;
        }
        let event = self.kept.pop(&mut list);
        self.header().kept = list;
        event
    }

    /// The first entry that the actor being run has kept since the one with this number.
    pub(super) fn kept_after(&mut self, seen: u64) -> Option<u32> {
        let list = self.header().kept;
        self.kept.first_after(list, seen)
    }

    /// The entry that the actor being run has kept after this one.
    pub(super) fn kept_next(&mut self, at: u32) -> Option<u32> {
        let list = self.header().kept;
        self.kept.next(list, at)
    }

    /// Removes an entry that was lent out.
    pub(super) fn kept_remove(&mut self, at: u32) {
        let mut list = self.header().kept;
        self.kept.unlink(&mut list, at);
        self.header().kept = list;
    }

    /// The first window after the current one in which something is to happen, or the current one if
    /// a pause has left something of it, as far as this shard knows: at its own actors, or at others to which it has sent.
    pub(super) fn next_window(&self) -> u64 {
        if !self.rest.is_empty() || self.has_waiting_spawns() {
            return self.window.number;
        }
        let bits = self.rules.window_bits;
        let spawned = |request: &SpawnRequest<M, Shard<M>>| {
            request.time.saturating_add(self.rules.latency.min) >> bits
        };
        let near = self.queues.next_window(self.window.number, bits);
        self.spawns.iter().map(spawned).fold(near, u64::min)
    }
}
