//! The loop of a shard: meet, run a window, meet again.

use super::context::Running;
use super::exchange::{Exchange, Vote};
use super::header::{Header, State};
use super::order::Order;
use super::pages::{MAX_PAGES, PAGE, Page};
use super::parcel::{Buffer, Parcel, RING, next_pending};
use super::population::{Blueprint, Group, Population, SpawnRequest};
use super::scheduled::{Head, Kind, Scheduled};
use super::shard::{ROOT, Shard, Tally};
use crate::{
    ActorTotals, Addr, Config, Message, PanicReport, Report, Spawn, Time, Waiting, WaitingActor,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Why the loop ended; the same on all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The root has ended.
    Root,
    /// Nothing is left to happen.
    Quiet,
    /// The next event would be after the end that was set.
    Past,
    /// A panic, a cut, too many actors.
    Halted,
}

/// What a shard has to say when the loop has ended.
pub(super) struct Outcome {
    pub(super) end: End,
    pub(super) tally: Tally,
    pub(super) spawned: u64,
    pub(super) windows: u64,
    /// When the first event that did not happen would have been, or the begin of its window.
    pub(super) next: u64,
    pub(super) waiting: Vec<WaitingActor>,
    pub(super) totals: Vec<ActorTotals>,
    /// For the names in reports.
    pub(super) groups: Vec<Group>,
}

/// A shard and what only its loop needs.
struct Engine<M: Message> {
    shard: *mut Shard<M>,
    populations: Vec<Option<Box<dyn Population<M>>>>,
    /// Events from other shards by window mod 64, with the shard each buffer is from.
    inbound: Vec<Vec<(usize, Buffer<M>)>>,
    inbound_pending: u64,
    out: Vec<Parcel<M>>,
    inbox: Vec<Parcel<M>>,
    /// The events of the window being run.
    events: Buffer<M>,
    order: Order,
    spawned: u64,
    windows: u64,
    /// When the first event that did not happen would have been, or the begin of its window.
    next: u64,
}

/// Runs one shard of a run from its beginning to its end.
pub(super) fn run_shard<M: Message, X: Exchange<Parcel<M>>>(
    config: &Config,
    index: usize,
    exchange: X,
    root: Arc<dyn Blueprint<M>>,
) -> Outcome {
    let shard = Box::into_raw(Shard::new(config, index));
    // SAFETY: the shard is freed below, after `running` and the engine are gone, and no other
    // thread has it.
    let running = unsafe { Running::new(shard) };
    let mut engine = Engine::new(shard, config.workers.get());
    engine.begin(root);
    let end = engine.run(config, exchange);
    let outcome = engine.finish(config, end);
    drop(engine);
    drop(running);
    // SAFETY: made above; nobody has it any more.
    drop(unsafe { Box::from_raw(shard) });
    outcome
}

impl<M: Message> Engine<M> {
    fn new(shard: *mut Shard<M>, shards: usize) -> Engine<M> {
        Engine {
            shard,
            populations: Vec::new(),
            inbound: (0..RING).map(|_| Vec::new()).collect(),
            inbound_pending: 0,
            out: (0..shards).map(|_| Parcel::default()).collect(),
            inbox: (0..shards).map(|_| Parcel::default()).collect(),
            events: Vec::new(),
            order: Order::default(),
            spawned: 0,
            windows: 0,
            next: u64::MAX,
        }
    }

    /// The shard, while no actor runs.
    fn shard(&mut self) -> &mut Shard<M> {
        // SAFETY: the shard is valid as long as the engine, on this thread only. The reference
        // borrows the engine, so it ends before the engine runs actors.
        unsafe { &mut *self.shard }
    }

    /// Spawns the root, and runs its start at time 0.
    fn begin(&mut self, root: Arc<dyn Blueprint<M>>) {
        let spawn = Spawn::one("root");
        let first = self.add_group(Addr::NONE.as_u32(), spawn, root);
        if first == Some(ROOT) && self.shard().owns(ROOT) {
            self.events
                .push(Scheduled::bare(Head::new(0, Kind::Start, ROOT, ROOT, 0, 0)));
            self.run_events();
        }
    }

    /// Windows one after the other until all shards agree to stop.
    fn run<X: Exchange<Parcel<M>>>(&mut self, config: &Config, mut exchange: X) -> End {
        loop {
            let vote = self.vote(config);
            self.hand_over();
            let agreed = exchange.exchange(vote, &mut self.out, &mut self.inbox);
            if agreed.halt {
                return End::Halted;
            }
            let shard = self.shard();
            let limit = shard.limit.min(agreed.end);
            shard.limit = limit;
            if agreed.next == u64::MAX {
                return if agreed.end == u64::MAX {
                    End::Quiet
                } else {
                    End::Root
                };
            }
            // The window that was run last reaches to the limit, or the next one begins after it.
            let bits = shard.window_bits;
            let last = shard.base | ((1 << bits) - 1);
            if last >= limit || agreed.next << bits > limit {
                self.next = shard.tally.beyond.min(agreed.next << bits);
                return if limit == agreed.end {
                    End::Root
                } else {
                    End::Past
                };
            }
            if shard.owns(ROOT) {
                config.progress.reached(agreed.next << bits);
            }
            self.absorb();
            self.windows += 1;
            self.run_window(agreed.next);
        }
    }

    /// What this shard has to say before the next window.
    fn vote(&mut self, config: &Config) -> Vote {
        let inbound = self.inbound_pending;
        let shard = self.shard();
        let beyond = match shard.tally.beyond {
            u64::MAX => u64::MAX,
            time => time >> shard.window_bits,
        };
        let next = shard
            .next_window()
            .min(next_pending(inbound, shard.window))
            .min(beyond);
        let failed = shard.tally.failure.is_some() || shard.tally.too_many;
        Vote {
            next,
            end: shard.tally.root_end,
            halt: failed || config.cut.is_cut(),
        }
    }

    /// Fills the parcels for the other shards.
    fn hand_over(&mut self) {
        // SAFETY: as in `shard`; the parcels are not part of the shard.
        let shard = unsafe { &mut *self.shard };
        let window = shard.window;
        for (to, parcel) in self.out.iter_mut().enumerate() {
            if to == shard.index {
                continue;
            }
            let out = &mut shard.out[to];
            while out.pending != 0 {
                let next = next_pending(out.pending, window);
                let place = next % RING;
                out.pending &= !(1 << place);
                parcel
                    .windows
                    .push((next, std::mem::take(&mut out.ring[place as usize])));
            }
            parcel.far.append(&mut out.far);
            parcel.spawns.extend(shard.spawns.iter().cloned());
        }
    }

    /// Takes what the others have handed over, and does the spawns that anybody asked for.
    fn absorb(&mut self) {
        // SAFETY: as in `shard`; the inbox is not part of the shard.
        let shard = unsafe { &mut *self.shard };
        let mut spawns = std::mem::take(&mut shard.spawns);
        for (from, parcel) in self.inbox.iter_mut().enumerate() {
            for (window, buffer) in parcel.windows.drain(..) {
                self.inbound_pending |= 1 << (window % RING);
                self.inbound[(window % RING) as usize].push((from, buffer));
            }
            parcel.far.drain(..).for_each(|far| shard.far.push(far));
            shard.spare.append(&mut parcel.spent);
            spawns.append(&mut parcel.spawns);
        }
        if !spawns.is_empty() {
            self.spawn_all(spawns);
        }
    }

    /// Every shard does the same spawns in the same order, and so gives the same addresses.
    fn spawn_all(&mut self, mut spawns: Vec<SpawnRequest<M>>) {
        spawns.sort_by_key(|spawn| (spawn.time, spawn.parent, spawn.request));
        for SpawnRequest {
            time,
            parent,
            request,
            spawn,
            blueprint,
        } in spawns
        {
            let count = spawn.count();
            let on_demand = spawn.on_demand;
            let Some(first) = self.add_group(parent, spawn, blueprint) else {
                return;
            };
            let shard = self.shard();
            let at = time.saturating_add(shard.min_latency());
            if shard.owns(parent) {
                let addresses = (first as u64) << 32 | count as u64;
                shard.announce(at, Kind::Spawned, parent, parent, request, addresses);
            }
            if !on_demand {
                for actor in first..first + count {
                    if shard.owns(actor) {
                        shard.announce(at, Kind::Start, actor, parent, request, 0);
                    }
                }
            }
        }
    }

    /// Gives addresses and memory to actors spawned together. Returns the first address.
    fn add_group(
        &mut self,
        parent: u32,
        spawn: Spawn,
        blueprint: Arc<dyn Blueprint<M>>,
    ) -> Option<u32> {
        let count = spawn.count();
        let pages = count.div_ceil(PAGE);
        let shard = self.shard();
        let page = shard.next_page();
        if pages > MAX_PAGES - page {
            shard.tally.too_many = true;
            return None;
        }
        let first = page * PAGE;
        let group = shard.groups.len() as u32;
        let slots_of = |number: u32| (count - (number - page) * PAGE).min(PAGE) as usize;
        let mine = |number: &u32| shard.owner_of_page(*number) == shard.index;
        let slots = (page..page + pages).filter(mine).map(slots_of).sum();
        let population = (slots > 0).then(|| blueprint.build(first, count, slots));
        let (mut place, slot) = population
            .as_ref()
            .map_or((std::ptr::null_mut(), 0), |p| p.slots());
        for number in page..page + pages {
            let mut page = Page {
                slots: std::ptr::null_mut(),
                group,
            };
            if shard.owner_of_page(number) == shard.index {
                page.slots = place;
                place = place.wrapping_add(slots_of(number) * slot);
            }
            shard.add_page(page);
        }
        shard.groups.push(Group {
            first,
            parent,
            spawn,
        });
        self.spawned += count as u64;
        self.populations.push(population);
        Some(first)
    }

    /// Runs the events of one window.
    fn run_window(&mut self, window: u64) {
        let inbound = &mut self.inbound[(window % RING) as usize];
        self.inbound_pending &= !(1 << (window % RING));
        // SAFETY: as in `shard`; buffers and parcels are not part of the shard.
        let shard = unsafe { &mut *self.shard };
        shard.window = window;
        shard.base = window << shard.window_bits;
        shard.timers.advance(window);
        shard.far.advance(window);

        let own = &mut shard.out[shard.index];
        if own.pending >> (window % RING) & 1 == 1 {
            own.pending &= !(1 << (window % RING));
            std::mem::swap(&mut self.events, &mut own.ring[(window % RING) as usize]);
            // The place's next buffer is a spare one.
            shard
                .spare
                .push(std::mem::take(&mut own.ring[(window % RING) as usize]));
        }
        for (from, mut buffer) in inbound.drain(..) {
            if buffer.len() > self.events.len() {
                std::mem::swap(&mut buffer, &mut self.events);
            }
            self.events.append(&mut buffer);
            self.out[from].spent.push(buffer);
        }
        shard.far.drain(|far| self.events.push(far.event));
        let (base, mut order) = (shard.base, 0);
        shard.timers.drain(|timer| {
            self.events.push(timer.event(base, order));
            order += 1;
        });
        let end = shard.base.saturating_add((1 << shard.window_bits) - 1);
        if end > shard.limit {
            self.hold_back();
        }
        self.run_events();
    }

    /// Takes the events after the limit out of the window.
    #[cold]
    fn hold_back(&mut self) {
        let (base, limit) = (self.shard().base, self.shard().limit);
        let time = |event: &Scheduled<M>| base + event.head.offset() as u64;
        let first = self
            .events
            .iter()
            .map(time)
            .filter(|&time| time > limit)
            .min();
        if let Some(first) = first {
            let tally = &mut self.shard().tally;
            tally.beyond = tally.beyond.min(first);
            self.events.retain(|event| time(event) <= limit);
        }
    }

    /// Orders the events gathered and hands them to their populations.
    fn run_events(&mut self) {
        let order = self.order.of(&self.events);
        let events = self.events.as_mut_ptr();
        // SAFETY: the events stay where they are, and from here on each is moved out once, below.
        // If that is cut short they are leaked, never used twice.
        unsafe { self.events.set_len(0) };
        let mut at = 0;
        while at < order.len() {
            // SAFETY: `order` names the events gathered; those from `at` on are still there. No
            // reference to the shard is held while populations run.
            unsafe {
                let receiver = (*events.add(order[at] as usize)).head.to;
                let group = (*self.shard).group_index(receiver);
                let population = group.and_then(|group| self.populations[group].as_deref());
                let Some(population) = population else {
                    let event = events.add(order[at] as usize).read();
                    (*self.shard).now = (*self.shard).base + event.head.offset() as u64;
                    let kind = event.message_kind();
                    drop((*self.shard).undeliverable(event, kind));
                    at += 1;
                    continue;
                };
                let run = AssertUnwindSafe(|| population.run(self.shard, events, order, at));
                at = match catch_unwind(run) {
                    Ok(next) => next,
                    Err(panic) => {
                        let cursor = (*self.shard).cursor;
                        let event = events.add(order[cursor] as usize);
                        note_panic(self.shard, population, event, &*panic);
                        cursor + 1
                    }
                };
            }
        }
        self.shard().leave();
    }

    /// After the last window: who still waits, totals, and all bodies dropped.
    fn finish(&mut self, config: &Config, end: End) -> Outcome {
        let mut totals = Vec::new();
        let mut waiting = Vec::new();
        let shard = self.shard;
        for population in self.populations.iter().flatten() {
            // SAFETY: no reference to the shard is held while populations are visited or asked.
            unsafe {
                let wanted = ((*shard).tally.live() as usize).min(Report::MOST_WAITING);
                let mut asked = Vec::new();
                let listed = waiting.len();
                population.visit(shard, &mut |actor, header: *mut Header| {
                    if listed + asked.len() < wanted && (*header).state == State::Live {
                        asked.push((actor, (*header).kept));
                    }
                    if config.per_actor {
                        totals.push((*shard).totals_of(actor, &*header));
                    }
                    config.per_actor || listed + asked.len() < wanted
                });
                for (actor, kept) in asked {
                    let kept = (*shard).kept.len(kept);
                    let ask = AssertUnwindSafe(|| population.ask(shard, actor));
                    if catch_unwind(ask).is_err() {
                        (*shard).waiting = Waiting::Other;
                    }
                    let why = (*shard).waiting;
                    let whose = match why {
                        Waiting::Answer(whose) => Some((*shard).name_of(whose.as_u32())),
                        _ => None,
                    };
                    let name = (*shard).name_of(actor);
                    waiting.push(WaitingActor {
                        who: Addr(actor),
                        name,
                        waiting: why,
                        whose,
                        kept,
                    });
                }
                (*shard).leave();
            }
        }
        for population in self.populations.iter_mut().flatten() {
            // SAFETY: nothing else is done with the populations, and the shard is still there.
            unsafe { population.drop_all(shard) };
        }
        self.populations.clear();
        let tally = std::mem::replace(&mut self.shard().tally, Tally::new(0));
        let groups = std::mem::take(&mut self.shard().groups);
        let (spawned, windows, next) = (self.spawned, self.windows, self.next);
        Outcome {
            end,
            tally,
            spawned,
            windows,
            next,
            waiting,
            totals,
            groups,
        }
    }
}

/// An actor has panicked: notes it, if it is the first in virtual time, and drops the body.
///
/// # Safety
/// The shard is valid and nobody holds a reference to it; `population` has the actor being run;
/// `event` is the one at the cursor.
#[cold]
unsafe fn note_panic<M: Message>(
    shard: *mut Shard<M>,
    population: &dyn Population<M>,
    event: *mut Scheduled<M>,
    panic: &(dyn std::any::Any + Send),
) {
    // SAFETY: the contract. The event at the cursor has not been moved out if it is `arrived`; the
    // head of the event being handled can be read even if it was.
    unsafe {
        let (who, now) = ((*shard).me, (*shard).now);
        let report = PanicReport {
            who: Addr(who),
            name: (*shard).name_of(who),
            time: Time(now),
            event: (*shard).describe_current(),
            message: crate::report::panic_text(panic),
        };
        let failure = &mut (*shard).tally.failure;
        if failure
            .as_ref()
            .is_none_or(|first| (report.time, report.who) < (first.time, first.who))
        {
            *failure = Some(report);
        }
        if (*shard).arrived == event {
            drop((*shard).take_arrived());
        }
        (*shard).arrived = std::ptr::null_mut();
        // A second panic, of a destructor, is the same actor's and adds nothing.
        let discard = AssertUnwindSafe(|| population.discard(shard, who));
        let _ = catch_unwind(discard);
    }
}

/// An actor's name, when its shard is gone.
pub(super) fn name_of(groups: &[Group], addr: u32) -> String {
    // Groups are in the order of their addresses.
    let after = groups.partition_point(|group| group.first <= addr);
    match after.checked_sub(1).map(|index| &groups[index]) {
        Some(group) if addr - group.first < group.spawn.count() => {
            group.spawn.name(addr - group.first)
        }
        _ => Addr(addr).to_string(),
    }
}
