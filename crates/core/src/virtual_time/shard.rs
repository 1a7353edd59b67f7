//! A shard: what its actors touch while they run. Sending, timers, random numbers.
//!
//! A shard is owned by one thread and shared with nobody. It is reached through a raw pointer by
//! the engine and by the contexts of its actors, in turn: **no reference to it is held while code
//! of an actor runs**.

mod aside;
mod queues;
mod tally;
mod timer;
mod turn;

pub(super) use tally::{Failure, Tally};
pub(super) use timer::Timer;

use super::header::Header;
use super::kept::Kept;
use super::parcel::{Far, RING};
use super::places::Places;
use super::population::SpawnRequest;
use super::scheduled::{Head, Kind, MAX_WINDOW_BITS, Scheduled};
use crate::contract::{Addr, Config, DeadLetters, Message, SpanId, Token};
use queues::Queues;
use std::sync::atomic::{AtomicU32, Ordering};
use turn::{Rules, Turn, Window};

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
    requests: u32,
    own_tokens: u32,
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
                seed: config.seed,
                latency: config.latency,
                window_bits,
                to_root: config.dead_letters == DeadLetters::ToRoot,
                per_actor: config.per_actor,
            },
            window: Window {
                number: 0,
                base: 0,
                limit: config
                    .end
                    .map_or(u64::MAX - 1, |end| end.as_nanos().min(u64::MAX - 1)),
                cursor: 0,
            },
            turn: Turn::new(),
            places: Places::new(index, shards),
            queues: Queues::new(shards, window_bits),
            spawns: Vec::new(),
            kept: Kept::new(),
            tally: Tally::new(M::KINDS.len()),
            requests: 0,
            own_tokens: 0,
        })
    }

    /// No actor runs any more: whatever code still runs acts for nobody.
    pub(super) fn leave(&mut self) {
        self.turn.header = self.turn.aside.header();
        self.turn.current = self.turn.aside.head();
        self.turn.arrived = std::ptr::null_mut();
    }

    pub(super) fn min_latency(&self) -> u64 {
        self.rules.latency.min
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
        // aside; only this shard's thread uses it, and nobody holds another reference to it.
        unsafe { &mut *self.turn.header }
    }

    /// The head of the event being handled.
    #[inline(always)]
    pub(super) fn current(&self) -> &Head {
        // SAFETY: `current` points to the event being handled, whose head stays in place until the
        // next one, or aside.
        unsafe { &*self.turn.current }
    }

    /// Sends a message of the actor being run. Returns its span.
    #[inline(always)]
    pub(super) fn post(&mut self, kind: Kind, to: u32, delay: u64, answers: u64, body: M) -> u64 {
        let header = self.header();
        header.seq = header.seq.wrapping_add(1);
        let seq = header.seq;
        let mut head = Head::new(0, kind, to, self.turn.me, seq, self.turn.now);
        let span = head.span();
        let cause = self.current();
        (head.trace, head.parent) = if cause.trace == 0 {
            (span, 0)
        } else {
            (cause.trace, cause.span())
        };
        if kind == Kind::Reply {
            head.parent = answers;
        }
        let latency = self
            .rules
            .latency
            .of(self.rules.seed, Addr(self.turn.me), Addr(to));
        let time = self.turn.now.saturating_add(latency).saturating_add(delay);
        self.schedule(time, Scheduled::with_body(head, body));
        span
    }

    /// Sends an event of the engine's own from the actor being run. It comes after what the actor
    /// has sent before.
    pub(super) fn notify(&mut self, kind: Kind, to: u32, parent: u64) {
        // The number of what it sent last: events that are otherwise equal stay in the order in
        // which they were scheduled.
        let (seq, from) = (self.header().seq, self.turn.me);
        let latency = self.rules.latency.of(self.rules.seed, Addr(from), Addr(to));
        let time = self.turn.now.saturating_add(latency);
        self.announce(time, kind, to, from, seq, parent);
    }

    /// Schedules an event of the engine's own for `time`.
    pub(super) fn announce(
        &mut self,
        time: u64,
        kind: Kind,
        to: u32,
        from: u32,
        seq: u32,
        parent: u64,
    ) {
        let mut head = Head::new(0, kind, to, from, seq, self.turn.now);
        head.parent = parent;
        self.schedule(time, Scheduled::bare(head));
    }

    /// Puts an event where its receiver's shard will find it. `time` is in a later window.
    #[inline(always)]
    fn schedule(&mut self, time: u64, mut event: Scheduled<M>) {
        let window = time >> self.rules.window_bits;
        event
            .head
            .set_offset(time as u32 & ((1 << self.rules.window_bits) - 1));
        debug_assert!(window > self.window.number);
        let to = self.places.owner(event.head.to);
        if window - self.window.number >= RING {
            let own = to == self.index;
            return self.queues.push_far(to, own, Far { time, event });
        }
        self.queues.push_near(to, window, event);
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
        // Later ones first, so that the next one is at the end; equal ones in reverse order.
        let place = self.turn.near.partition_point(|near| near.time > time);
        self.turn.near.insert(place, timer);
    }

    /// The next random number of the actor being run.
    #[inline(always)]
    pub(super) fn random(&mut self) -> u64 {
        let header = self.header();
        let drawn = header.drawn;
        header.drawn = drawn.wrapping_add(1);
        crate::contract::random::nth(self.rules.seed, self.turn.me, drawn)
    }

    pub(super) fn request(&mut self) -> u32 {
        self.requests = self.requests.wrapping_add(1);
        self.requests
    }

    pub(super) fn own_token(&mut self) -> Token {
        self.own_tokens = (self.own_tokens + 1) % Token::OWN;
        Token(Token::OWN | self.own_tokens)
    }

    /// From here on, what is sent begins a new trace.
    pub(super) fn new_trace(&mut self) {
        let mut head = *self.current();
        head.trace = 0;
        self.resume(head);
    }

    /// From here on, what is sent is on account of this span of this trace.
    #[inline]
    pub(super) fn continue_trace(&mut self, trace: SpanId, parent: SpanId) {
        let mut head = *self.current();
        head.trace = trace.as_u64();
        // A span is the number of its sender and how-manieth sending it was.
        (head.from, head.seq) = (parent.sender().0, parent.as_u64() as u32);
        self.resume(head);
    }

    /// From here on, what is sent is on account of this event, which had been kept.
    pub(super) fn resume(&mut self, head: Head) {
        self.turn.current = self.turn.aside.set_head(head);
    }

    /// The event that has arrived, if it was not taken yet.
    #[inline(always)]
    pub(super) fn take_arrived(&mut self) -> Option<Scheduled<M>> {
        if self.turn.arrived.is_null() {
            return None;
        }
        let event = std::mem::replace(&mut self.turn.arrived, std::ptr::null_mut());
        // SAFETY: a non-null `arrived` points to an event that nobody has moved out yet, and is
        // null from here on.
        Some(unsafe { event.read() })
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

    /// How many events the actor being run keeps.
    pub(super) fn kept_count(&mut self) -> usize {
        let list = self.header().kept;
        self.kept.len(list)
    }

    /// The first window after the current one in which something is to happen, as far as this
    /// shard knows: at its own actors, or at others to which it has sent.
    pub(super) fn next_window(&self) -> u64 {
        let bits = self.rules.window_bits;
        let spawned = |request: &SpawnRequest<M, Shard<M>>| {
            request.time.saturating_add(self.rules.latency.min) >> bits
        };
        let near = self.queues.next_window(self.window.number, bits);
        self.spawns.iter().map(spawned).fold(near, u64::min)
    }
}
