//! A shard: what its actors touch while they run. Sending, timers, random numbers.
//!
//! A shard is owned by one thread and shared with nobody. It is reached through a raw pointer by
//! the engine and by the contexts of its actors, in turn: **no reference to it is held while code
//! of an actor runs**.

mod aside;
mod tally;

pub(super) use tally::Tally;

use super::header::Header;
use super::kept::Kept;
use super::pages::{PAGE_BITS, Page};
use super::parcel::{Far, Outbox, RING, next_pending};
use super::population::{Group, SpawnRequest};
use super::scheduled::{Head, Kind, MAX_WINDOW_BITS, Scheduled, TIMER_FROM};
use super::wheel::{Due, Wheel};
use crate::{Addr, Config, DeadLetters, Latency, Message, SpanId, Token, Waiting};
use aside::Aside;
use std::sync::atomic::{AtomicU32, Ordering};

/// The root is the first actor of a run.
pub(super) const ROOT: u32 = 0;

/// Of a timer: when, whose, which.
#[derive(Clone, Copy)]
pub(super) struct Timer {
    pub(super) time: u64,
    pub(super) actor: u32,
    pub(super) token: u32,
}

impl Timer {
    /// Its event in the window that begins at `base`, as the `seq`-th timer there.
    #[inline]
    pub(super) fn event<M>(self, base: u64, seq: u32) -> Scheduled<M> {
        let offset = (self.time - base) as u32;
        let mut head = Head::new(offset, Kind::Timer, self.actor, TIMER_FROM, seq, self.time);
        head.parent = self.token as u64;
        Scheduled::bare(head)
    }
}

impl Due for Timer {
    #[inline]
    fn time(&self) -> u64 {
        self.time
    }
}

pub(super) struct Shard<M> {
    /// Unique within the process, so that a context knows its shard.
    pub(super) id: u32,
    pub(super) index: usize,

    // What the run was told.
    seed: u64,
    latency: Latency,
    pub(super) window_bits: u32,
    to_root: bool,
    per_actor: bool,
    /// Nothing happens after this time.
    pub(super) limit: u64,

    // The window being run.
    pub(super) window: u64,
    /// Its begin.
    pub(super) base: u64,
    /// The place in its order of the event being handled.
    pub(super) cursor: usize,

    // The event being handled.
    pub(super) me: u32,
    pub(super) now: u64,
    pub(super) header: *mut Header,
    pub(super) current: *const Head,
    /// The event, as long as nobody has taken it.
    pub(super) arrived: *mut Scheduled<M>,
    /// The kind of the message last delivered.
    kind: usize,
    /// Timers of the actor being run that are due within the window, the first one last.
    pub(super) near: Vec<Timer>,
    aside: Aside,

    // Where actors are.
    /// The shard of each page.
    owners: Vec<u16>,
    pub(super) pages: Vec<Page>,
    pub(super) groups: Vec<Group>,
    shards: usize,

    // What is to happen.
    pub(super) out: Vec<Outbox<M>>,
    pub(super) timers: Wheel<Timer>,
    pub(super) far: Wheel<Far<M>>,
    pub(super) spawns: Vec<SpawnRequest<M>>,
    pub(super) spare: Vec<Vec<Scheduled<M>>>,
    pub(super) kept: Kept<M>,

    // What has happened.
    pub(super) tally: Tally,
    /// What the actor being asked says it waits for.
    pub(super) waiting: Waiting,
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
        let aside = Aside::new();
        let shards = config.workers.get();
        Box::new(Shard {
            id: unique(),
            index,
            seed: config.seed,
            latency: config.latency,
            window_bits,
            to_root: config.dead_letters == DeadLetters::ToRoot,
            per_actor: config.per_actor,
            limit: config
                .end
                .map_or(u64::MAX - 1, |end| end.as_nanos().min(u64::MAX - 1)),
            window: 0,
            base: 0,
            cursor: 0,
            me: ROOT,
            now: 0,
            header: aside.header(),
            current: aside.head(),
            arrived: std::ptr::null_mut(),
            near: Vec::new(),
            aside,
            owners: Vec::new(),
            pages: Vec::new(),
            groups: Vec::new(),
            shards,
            out: (0..shards).map(|_| Outbox::new()).collect(),
            timers: Wheel::new(window_bits),
            far: Wheel::new(window_bits),
            spawns: Vec::new(),
            spare: Vec::new(),
            kept: Kept::new(),
            tally: Tally::new(M::KINDS.len()),
            kind: 0,
            waiting: Waiting::Other,
            requests: 0,
            own_tokens: 0,
        })
    }

    /// No actor runs any more: whatever code still runs acts for nobody.
    pub(super) fn leave(&mut self) {
        self.header = self.aside.header();
        self.current = self.aside.head();
        self.arrived = std::ptr::null_mut();
    }

    pub(super) fn min_latency(&self) -> u64 {
        self.latency.min
    }

    pub(super) fn max_latency(&self) -> u64 {
        self.latency.min.saturating_add(self.latency.spread)
    }

    /// The shard that has an address; nobody's and unknown ones are the first shard's.
    #[inline(always)]
    fn owner(&self, to: u32) -> usize {
        if self.shards == 1 {
            return 0;
        }
        self.owners
            .get((to >> PAGE_BITS) as usize)
            .map_or(0, |&shard| shard as usize)
    }

    /// Whether this shard has the actor.
    pub(super) fn owns(&self, actor: u32) -> bool {
        self.owner(actor) == self.index
    }

    /// The next page's number.
    pub(super) fn next_page(&self) -> u32 {
        self.pages.len() as u32
    }

    /// The shard to which a page falls.
    pub(super) fn owner_of_page(&self, page: u32) -> usize {
        page as usize % self.shards
    }

    pub(super) fn add_page(&mut self, page: Page) {
        self.owners
            .push(self.owner_of_page(self.next_page()) as u16);
        self.pages.push(page);
        if self.per_actor {
            self.tally.received.push(Vec::new());
        }
    }

    /// The index of the group that an address belongs to, if it is one of an actor.
    #[inline]
    pub(super) fn group_index(&self, addr: u32) -> Option<usize> {
        let page = self.pages.get((addr >> PAGE_BITS) as usize)?;
        let group = &self.groups[page.group as usize];
        (addr.wrapping_sub(group.first) < group.spawn.count()).then_some(page.group as usize)
    }

    /// The group that an address belongs to, if it is one of an actor.
    pub(super) fn group_of(&self, addr: u32) -> Option<&Group> {
        self.group_index(addr).map(|index| &self.groups[index])
    }

    /// An actor's name, made now.
    pub(super) fn name_of(&self, addr: u32) -> String {
        match self.group_of(addr) {
            Some(group) => group.spawn.name(addr - group.first),
            None => Addr(addr).to_string(),
        }
    }

    /// Who spawned an actor.
    pub(super) fn parent_of(&self, addr: u32) -> u32 {
        self.group_of(addr).map_or(u32::MAX, |group| group.parent)
    }

    /// The header of the actor being run.
    #[inline(always)]
    fn header(&mut self) -> &mut Header {
        // SAFETY: `header` points to the slot of the actor being run, which stays in place, or
        // aside; only this shard's thread uses it, and nobody holds another reference to it.
        unsafe { &mut *self.header }
    }

    /// The head of the event being handled.
    #[inline(always)]
    pub(super) fn current(&self) -> &Head {
        // SAFETY: `current` points to the event being handled, whose head stays in place until the
        // next one, or aside.
        unsafe { &*self.current }
    }

    /// Sends a message of the actor being run. Returns its span.
    #[inline(always)]
    pub(super) fn post(&mut self, kind: Kind, to: u32, delay: u64, answers: u64, body: M) -> u64 {
        let header = self.header();
        header.seq = header.seq.wrapping_add(1);
        let seq = header.seq;
        let mut head = Head::new(0, kind, to, self.me, seq, self.now);
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
        let latency = self.latency.of(self.seed, Addr(self.me), Addr(to));
        let time = self.now.saturating_add(latency).saturating_add(delay);
        self.schedule(time, Scheduled::with_body(head, body));
        span
    }

    /// Sends an event of the engine's own from the actor being run. It comes after what the actor
    /// has sent before.
    pub(super) fn notify(&mut self, kind: Kind, to: u32, parent: u64) {
        // The number of what it sent last: events that are otherwise equal stay in the order in
        // which they were scheduled.
        let (seq, from) = (self.header().seq, self.me);
        let latency = self.latency.of(self.seed, Addr(from), Addr(to));
        let time = self.now.saturating_add(latency);
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
        let mut head = Head::new(0, kind, to, from, seq, self.now);
        head.parent = parent;
        self.schedule(time, Scheduled::bare(head));
    }

    /// Puts an event where its receiver's shard will find it. `time` is in a later window.
    #[inline(always)]
    fn schedule(&mut self, time: u64, mut event: Scheduled<M>) {
        let window = time >> self.window_bits;
        event
            .head
            .set_offset(time as u32 & ((1 << self.window_bits) - 1));
        debug_assert!(window > self.window);
        let to = self.owner(event.head.to);
        if window - self.window >= RING {
            return self.schedule_far(to, Far { time, event });
        }
        let out = &mut self.out[to];
        let place = window % RING;
        out.pending |= 1 << place;
        let buffer = &mut out.ring[place as usize];
        if buffer.len() == buffer.capacity() {
            Self::make_room(buffer, &mut self.spare);
        }
        buffer.push(event);
    }

    #[cold]
    #[inline(never)]
    fn make_room(buffer: &mut Vec<Scheduled<M>>, spare: &mut Vec<Vec<Scheduled<M>>>) {
        if buffer.capacity() == 0
            && let Some(spare) = spare.pop()
        {
            *buffer = spare;
        } else {
            buffer.reserve(buffer.len().max(64));
        }
    }

    #[cold]
    #[inline(never)]
    fn schedule_far(&mut self, to: usize, far: Far<M>) {
        if to == self.index {
            self.far.push(far);
        } else {
            self.out[to].far.push(far);
        }
    }

    /// Sets a timer of the actor being run.
    #[inline]
    pub(super) fn set_timer(&mut self, after: u64, token: u32) {
        let time = self.now.saturating_add(after);
        let timer = Timer {
            time,
            actor: self.me,
            token,
        };
        if time >> self.window_bits != self.window {
            if time != u64::MAX {
                self.timers.push(timer);
            }
            return;
        }
        // Later ones first, so that the next one is at the end; equal ones in reverse order.
        let place = self.near.partition_point(|near| near.time > time);
        self.near.insert(place, timer);
    }

    /// The next random number of the actor being run.
    #[inline(always)]
    pub(super) fn random(&mut self) -> u64 {
        let header = self.header();
        let drawn = header.drawn;
        header.drawn = drawn.wrapping_add(1);
        crate::random::nth(self.seed, self.me, drawn)
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
        self.current = self.aside.set_head(head);
    }

    /// The event that has arrived, if it was not taken yet.
    #[inline(always)]
    pub(super) fn take_arrived(&mut self) -> Option<Scheduled<M>> {
        if self.arrived.is_null() {
            return None;
        }
        let event = std::mem::replace(&mut self.arrived, std::ptr::null_mut());
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
        let bits = self.window_bits;
        let spawned =
            |request: &SpawnRequest<M>| request.time.saturating_add(self.latency.min) >> bits;
        let out = self.out.iter().map(|out| {
            let far = out
                .far
                .iter()
                .map(|far| far.time >> bits)
                .min()
                .unwrap_or(u64::MAX);
            next_pending(out.pending, self.window).min(far)
        });
        out.chain(self.spawns.iter().map(spawned))
            .fold(self.timers.next().min(self.far.next()), u64::min)
    }
}
