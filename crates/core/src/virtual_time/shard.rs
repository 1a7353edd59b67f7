//! A shard: what its actors touch while they run. Sending, timers, random numbers, counting.
//!
//! A shard is owned by one thread and shared with nobody. It is reached through a raw pointer by
//! the engine and by the contexts of its actors, in turn: **no reference to it is held while code
//! of an actor runs**.

use super::header::Header;
use super::kept::Kept;
use super::pages::{PAGE, PAGE_BITS, Page};
use super::parcel::{Far, Outbox, RING, next_pending};
use super::population::{Group, SpawnRequest};
use super::scheduled::{Head, Kind, MAX_WINDOW_BITS, Scheduled, TIMER_FROM};
use super::wheel::{Due, Wheel};
use crate::config::fold;
use crate::{
    ActorTotals, Addr, Config, DeadLetters, Latency, Message, PanicReport, Token, Waiting,
};
use std::ptr::NonNull;
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

/// What [`Shard::header`] and [`Shard::current`] point to where no actor's memory and no event is
/// meant. In memory of its own, which nobody borrows together with the shard.
struct Aside(NonNull<(Header, Head)>);

impl Aside {
    fn new() -> Aside {
        let head = Head::new(0, Kind::Start, ROOT, ROOT, 0, 0);
        let aside = Box::into_raw(Box::new((Header::default(), head)));
        Aside(NonNull::new(aside).expect("a box is not null"))
    }

    /// The header of nobody.
    fn header(&self) -> *mut Header {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw mut (*self.0.as_ptr()).0 }
    }

    /// A copy of the head of an event that had been kept, or that begins a new trace.
    fn head(&self) -> *const Head {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw const (*self.0.as_ptr()).1 }
    }

    fn set_head(&mut self, head: Head) -> *const Head {
        // SAFETY: the memory is there as long as this; nobody holds a reference to the head.
        unsafe { (*self.0.as_ptr()).1 = head };
        self.head()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: made from a box, and given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The first message for an actor that had ended, for strict runs.
pub(super) struct FirstDead {
    /// Time, receiver, sender.
    pub(super) order: (u64, u32, u32),
    pub(super) kind: usize,
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

/// What a shard has counted.
pub(super) struct Tally {
    pub(super) messages: Vec<u64>,
    pub(super) dead: Vec<u64>,
    pub(super) first_dead: Option<FirstDead>,
    pub(super) fired: u64,
    pub(super) digest: u64,
    pub(super) begun: u64,
    pub(super) ended: u64,
    /// Ended before they began.
    pub(super) never: u64,
    pub(super) last: u64,
    /// The earliest event that was not run because of the limit.
    pub(super) beyond: u64,
    /// When the root ended, plus the smallest latency.
    pub(super) root_end: u64,
    pub(super) root_ended: Option<u64>,
    pub(super) failure: Option<PanicReport>,
    pub(super) received: Vec<Vec<u32>>,
    pub(super) too_many: bool,
}

impl Tally {
    pub(super) fn new(kinds: usize) -> Tally {
        Tally {
            messages: vec![0; kinds],
            dead: vec![0; kinds],
            first_dead: None,
            fired: 0,
            digest: 0,
            begun: 0,
            ended: 0,
            never: 0,
            last: 0,
            beyond: u64::MAX,
            root_end: u64::MAX,
            root_ended: None,
            failure: None,
            received: Vec::new(),
            too_many: false,
        }
    }

    /// Actors that have begun and not ended.
    pub(super) fn live(&self) -> u64 {
        self.begun + self.never - self.ended
    }
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

    /// Counts a message being delivered, with what its type says of it.
    #[inline(always)]
    pub(super) fn count_message(&mut self, kind: usize, fingerprint: u64) {
        self.tally.messages[kind] += 1;
        self.kind = kind;
        let head = self.current();
        let parties = (head.to as u64) << 32 | head.from as u64;
        let what = (head.seq as u64) << 32 | kind as u64;
        self.digest(parties, what, fingerprint);
        if self.per_actor {
            self.count_received();
        }
    }

    /// Counts a timer being delivered.
    #[inline(always)]
    pub(super) fn count_timer(&mut self, token: u64) {
        self.tally.fired += 1;
        let parties = (self.me as u64) << 32 | TIMER_FROM as u64;
        // The library's own tokens only need to differ; their numbers depend on the shard.
        self.digest(parties, 0, token.min(Token::OWN as u64));
    }

    /// Adds an event to the run's digest: a sum, so that it does not matter where and in which
    /// order receivers are served, of hashes that contain time, receiver, sender and sequence, so
    /// that everything else does.
    #[inline(always)]
    fn digest(&mut self, parties: u64, what: u64, contents: u64) {
        let inner = fold(
            self.now ^ 0x8BB8_4B93_962E_ACC9,
            contents ^ 0x2D35_8DCC_AA6C_78A5,
        );
        let outer = fold(
            parties ^ inner,
            what.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ inner.rotate_left(32) | 1,
        );
        self.tally.digest = self.tally.digest.wrapping_add(outer);
        self.tally.last = self.tally.last.max(self.now);
    }

    #[cold]
    fn count_received(&mut self) {
        let page = &mut self.tally.received[(self.me >> PAGE_BITS) as usize];
        page.resize(PAGE as usize, 0);
        page[(self.me % PAGE) as usize] += 1;
    }

    /// An event has reached an actor that has ended, or an address without one. `kind` is its
    /// [`Scheduled::message_kind`]. What is returned is to be dropped.
    #[cold]
    #[inline(never)]
    #[must_use = "dropping a message is foreign code: to be done by whoever holds no reference"]
    pub(super) fn undeliverable(
        &mut self,
        event: Scheduled<M>,
        kind: Option<usize>,
    ) -> Option<Scheduled<M>> {
        let head = event.head;
        let Some(kind) = kind else { return Some(event) };
        self.tally.dead[kind] += 1;
        let order = (self.now, head.to, head.from);
        if self
            .tally
            .first_dead
            .as_ref()
            .is_none_or(|first| order < first.order)
        {
            self.tally.first_dead = Some(FirstDead { order, kind });
        }
        if head.kind() == Kind::Question {
            let latency = self.latency.of(self.seed, Addr(head.to), Addr(head.from));
            let time = self.now.saturating_add(latency);
            self.announce(
                time,
                Kind::Unanswered,
                head.from,
                head.to,
                head.seq,
                head.span(),
            );
        }
        if !self.to_root || head.to == ROOT {
            return Some(event);
        }
        let time = self.now.saturating_add(self.latency.min);
        self.schedule(time, event.returned_to(ROOT, self.now));
        None
    }

    /// The event being handled, in the words of a report.
    pub(super) fn describe_current(&self) -> String {
        let head = self.current();
        let from = Addr(head.from);
        let own = head.parent as u32 >= Token::OWN;
        match head.kind() {
            Kind::Message | Kind::Question | Kind::Reply => {
                format!("{} from {}", M::KINDS[self.kind], self.name_of(head.from))
            }
            Kind::DeadLetter => format!("a dead letter for {}", self.name_of(head.from)),
            Kind::Timer if own => "the end of a wait".to_owned(),
            Kind::Timer => format!("timer {}", head.parent),
            Kind::Start => "its start".to_owned(),
            Kind::Stop => "its end".to_owned(),
            Kind::Spawned => "the end of its spawn".to_owned(),
            Kind::Down | Kind::Unanswered => format!("the end of {from}"),
        }
    }

    /// What an actor has done.
    pub(super) fn totals_of(&self, actor: u32, header: &Header) -> ActorTotals {
        let page = self.tally.received.get((actor >> PAGE_BITS) as usize);
        let received = page.and_then(|page| page.get((actor % PAGE) as usize));
        ActorTotals {
            who: Addr(actor),
            sent: header.seq as u64,
            received: received.copied().unwrap_or(0) as u64,
            ended: header.ended(),
        }
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
