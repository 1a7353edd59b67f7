//! The shared state of a run: its actors, the delivery of messages, dead letters, and the end of the run.

mod ending;

use super::cell::Cell;
use super::clock::Clock;
use super::counters::{Counters, Scan};
use super::mailbox::MailboxRefusal;
use super::mailbox_entry::{Asks, MailboxEntry};
use super::pool::Handle;
use super::records::Records;
use super::remains::ActorRemains;
use super::runtime::Runtime;
use super::start_queue::StartQueue;
use super::table::Table;
use crate::contract::spawn::{Names, Spawn};
use crate::contract::{
    Addr, AddrRange, Config, DeadLetters, Event, Message, Overflow, PanicReport, Probes, Time,
};
use crate::sync::lock;
use std::collections::HashMap;
use std::io;
use std::iter;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

/// The shared state of a run; see the [module](self).
pub(crate) struct System<M: Message> {
    pub(super) config: Config,
    pub(super) runtime: Runtime,
    pub(super) clock: Clock<M>,
    pub(super) counters: Counters,
    pub(super) cells: Table<Arc<Cell<M>>>,
    /// The groups by first address. The addresses are stored beside the groups, so that a search does not
    /// access the groups.
    groups: Mutex<Vec<(u32, Arc<Group<M>>)>>,
    pub(super) start_queue: StartQueue,
    /// True if an actor is using the epochs of the counters.
    pub(super) settling: AtomicBool,
    ending: AtomicBool,
    pub(super) end: Mutex<Option<End>>,
    /// The sums that the clock thread read last.
    last: Mutex<Scan>,
    live: AtomicU64,
    pub(super) most_live: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) dead: Box<[AtomicU64]>,
    pub(super) first_dead: Mutex<Option<String>>,
    pub(super) panics: Mutex<Vec<PanicReport>>,
    /// The remains of ended actors whose contexts have not been counted yet.
    pub(super) remains: Mutex<HashMap<Addr, ActorRemains<M>>>,
    pub(super) records: Mutex<Records>,
    pub(super) probes: Mutex<Probes>,
    /// A panic after the end of the run, which makes the run fail.
    pub(super) late_panic: Mutex<Option<Box<PanicReport>>>,
}

/// The way in which a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Completed,
    Cancelled,
    Deadlock,
    Panicked(Box<PanicReport>),
    Late { end: Time, next: Time },
    Overflow { who: Addr },
    TooManySends { who: Addr, time: Time },
    TooManyThreads { asked: u64, limit: u64 },
    TooManyActors,
    Thread(io::Error),
}

/// Actors that were spawned together.
struct Group<M: Message> {
    first: u32,
    count: u32,
    names: Names,
    parent: Addr,
    on_demand: bool,
    watched: bool,
    start: Start<M>,
}

impl<M: Message> Group<M> {
    #[inline]
    fn has(&self, who: Addr) -> bool {
        who.0.wrapping_sub(self.first) < self.count
    }

    /// Returns the address after the last actor of the group.
    fn end(&self) -> u32 {
        self.first + self.count
    }
}

/// The number of simultaneous starts above which other workers share the work.
const MANY: usize = 8;

/// Starts the lives of actors of a group.
pub(super) type Start<M> = Box<
    dyn Fn(&Arc<System<M>>, &mut dyn Iterator<Item = StartingActor<'_, M>>) -> io::Result<()>
        + Send
        + Sync,
>;

/// An actor that is about to start: its cell, its address, and its index in its group.
pub(super) type StartingActor<'a, M> = (&'a Arc<Cell<M>>, Addr, u32);

/// The root's address.
pub(crate) const ROOT: Addr = Addr(0);

impl<M: Message> System<M> {
    pub(super) fn new(config: &Config, runtime: Runtime) -> System<M> {
        System {
            config: config.clone(),
            runtime,
            clock: Clock::new(),
            counters: Counters::new(M::KINDS.len()),
            cells: Table::new(),
            groups: Mutex::default(),
            start_queue: StartQueue::new(),
            settling: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            end: Mutex::default(),
            last: Mutex::default(),
            live: AtomicU64::new(0),
            most_live: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            dead: M::KINDS.iter().map(|_| AtomicU64::new(0)).collect(),
            first_dead: Mutex::default(),
            panics: Mutex::default(),
            remains: Mutex::default(),
            records: Mutex::default(),
            probes: Mutex::default(),
            late_panic: Mutex::default(),
        }
    }

    // Spawning and starting.

    /// Adds actors that `start` starts; `None` if the run is over, or if there are too many actors, which
    /// also ends the run.
    pub(super) fn add(
        self: &Arc<Self>,
        how: &Spawn,
        parent: Addr,
        start: Start<M>,
    ) -> Option<AddrRange> {
        if self.is_ending() {
            return None;
        }
        let count = how.count;
        let mut groups = lock(&self.groups);
        let first = groups.last().map_or(0, |(_, group)| group.end());
        if first.checked_add(count).is_none_or(|end| end == u32::MAX) {
            drop(groups);
            self.finish(End::TooManyActors);
            return None;
        }
        if let Some(limit) = self.runtime.limit() {
            let asked = u64::from(first) + u64::from(count) - self.ended.load(Acquire);
            if asked > limit {
                drop(groups);
                self.finish(End::TooManyThreads { asked, limit });
                return None;
            }
        }
        let (names, on_demand, watched) = (how.names.clone(), how.on_demand, how.watched);
        let group = Arc::new(Group {
            first,
            count,
            names,
            parent,
            on_demand,
            watched,
            start,
        });
        groups.push((first, group.clone()));
        drop(groups);
        if !on_demand {
            self.count_live(count.into());
            let cell = |who| self.cells.get_or_make(who, Cell::shared).0;
            self.start(
                &group,
                (first..first + count).map(|who| (cell(who), Addr(who))),
            );
        }
        Some(AddrRange { first, count })
    }

    fn count_live(&self, more: u64) {
        let live = self.live.fetch_add(more, SeqCst) + more;
        self.most_live.fetch_max(live, Relaxed);
    }

    /// Starts the lives of actors of one group, unless the run is over.
    fn start<'a>(
        self: &Arc<Self>,
        group: &Group<M>,
        row: impl Iterator<Item = (&'a Arc<Cell<M>>, Addr)>,
    ) {
        let mut row = row
            .take_while(|_| !self.is_ending())
            .map(|(cell, who)| (cell, who, who.0 - group.first));
        if let Err(error) = (group.start)(self, &mut row) {
            self.finish(End::Thread(error));
        }
    }

    /// Starts actors that have received their first message. Idle workers share the work of many starts.
    pub(super) fn begin(self: &Arc<Self>, queued: Vec<Addr>) {
        self.count_live(queued.len() as u64);
        if queued.len() < MANY {
            return self.start_queued(&queued);
        }
        let system = self.clone();
        let start_task = Box::pin(async move { system.start_queued(&queued) });
        let name = || "starter".to_owned();
        let started = (self.runtime.starter()).start(&Handle::default(), name, start_task);
        if let Err(error) = started {
            self.finish(End::Thread(error));
        }
    }

    fn start_queued(self: &Arc<Self>, queued: &[Addr]) {
        let mut left = queued;
        while let Some(group) = left.first().and_then(|&first| self.group(first)) {
            let others = left.iter().position(|&who| !group.has(who));
            let (row, behind) = left.split_at(others.unwrap_or(left.len()));
            let cell = |&who: &Addr| Some((self.cells.get(who.0)?, who));
            self.start(&group, row.iter().filter_map(cell));
            left = behind;
        }
    }

    fn group(&self, who: Addr) -> Option<Arc<Group<M>>> {
        self.in_group(who, Arc::clone)
    }

    #[inline]
    fn in_group<T>(&self, who: Addr, look: impl FnOnce(&Arc<Group<M>>) -> T) -> Option<T> {
        let groups = lock(&self.groups);
        let behind = groups.partition_point(|&(first, _)| first <= who.0);
        let (_, group) = &groups[behind.checked_sub(1)?];
        group.has(who).then(|| look(group))
    }

    /// Returns the name of an actor.
    pub(super) fn name(&self, who: Addr) -> String {
        match self.group(who) {
            Some(group) => group.names.get(who.0 - group.first),
            None => who.to_string(),
        }
    }

    /// Returns the number of actors that were spawned.
    pub(super) fn spawned(&self) -> u32 {
        let groups = lock(&self.groups);
        groups.last().map_or(0, |(_, group)| group.end())
    }

    /// Returns the cell of an actor that exists, whether it has ended or not.
    #[inline]
    pub(super) fn cell(&self, who: Addr) -> &Cell<M> {
        self.cells
            .get(who.0)
            .expect("an actor that was started has a cell")
    }

    // The delivery of messages.

    /// Posts messages of one sender to their receiver, or to the receiver of dead letters. Returns the number
    /// of messages for whose release the sender must wait.
    #[inline]
    pub(super) fn post(
        self: &Arc<Self>,
        to: Addr,
        row: impl ExactSizeIterator<Item = MailboxEntry<M>>,
    ) -> usize {
        match self.cells.get(to.0) {
            Some(cell) => self.put(to, cell, row),
            None => self.post_first(to, row),
        }
    }

    #[inline]
    fn put(
        self: &Arc<Self>,
        to: Addr,
        cell: &Cell<M>,
        mut row: impl ExactSizeIterator<Item = MailboxEntry<M>>,
    ) -> usize {
        let capacity = self.config.mailbox.get();
        let wait = self.config.overflow == Overflow::Block;
        loop {
            match cell.mailbox.push(&mut row, capacity, wait) {
                Ok(over) => return over,
                Err(MailboxRefusal::Closed(entry)) => self.dead_letter(to, entry),
                Err(MailboxRefusal::Full(entry)) => self.overflow(to, cell, entry),
            }
        }
    }

    /// Handles a message for a full mailbox whose sender does not wait.
    #[cold]
    fn overflow(self: &Arc<Self>, to: Addr, cell: &Cell<M>, mut entry: MailboxEntry<M>) {
        let overflow = self.config.overflow;
        if overflow == Overflow::DropOldest {
            loop {
                if let Some(oldest) = cell.mailbox.pop_oldest() {
                    self.drop_message(to, oldest);
                }
                let capacity = self.config.mailbox.get();
                match cell.mailbox.push(&mut iter::once(entry), capacity, false) {
                    Ok(_) => return,
                    Err(MailboxRefusal::Closed(entry)) => return self.dead_letter(to, entry),
                    Err(MailboxRefusal::Full(full)) => entry = full,
                }
            }
        }
        if overflow == Overflow::Fail {
            self.finish(End::Overflow { who: to });
        }
        self.drop_message(to, entry);
    }

    /// Posts to an actor that does not have a mailbox yet.
    #[cold]
    fn post_first(
        self: &Arc<Self>,
        to: Addr,
        row: impl ExactSizeIterator<Item = MailboxEntry<M>>,
    ) -> usize {
        let Some(on_demand) = self.in_group(to, |group| group.on_demand) else {
            row.for_each(|entry| self.dead_letter(to, entry));
            return 0;
        };
        let (cell, made) = self.cells.get_or_make(to.0, Cell::shared);
        let over = self.put(to, cell, row);
        if made && on_demand {
            let now = match self.runtime.begins_many() {
                true => self.start_queue.note(to),
                false => Some(vec![to]),
            };
            now.into_iter().for_each(|queued| self.begin(queued));
        }
        over
    }

    /// Posts a delayed message. Its sender cannot wait for capacity, so with [`Overflow::Block`] the message
    /// is put above the capacity.
    pub(super) fn post_delayed(self: &Arc<Self>, to: Addr, mut entry: MailboxEntry<M>) {
        entry.epoch = self.counters.sent(1);
        // The message is counted after it was put, as with any message. Its sender does not wait for it.
        let from = entry.span.sender();
        let over = self.post(to, iter::once(entry));
        if over > 0 {
            self.cell(from).owed.add(over);
        }
    }

    /// Wakes senders whose messages above the capacity were received.
    #[inline]
    pub(super) fn release(&self, senders: Vec<Addr>) {
        for sender in senders {
            let cell = self.cell(sender);
            if cell.owed.release() {
                cell.mailbox.wake();
            }
        }
    }

    /// Sends an actor an event of the executor.
    pub(super) fn send_system_event(self: &Arc<Self>, to: Addr, mut entry: MailboxEntry<M>) {
        entry.epoch = self.counters.sent(1);
        let refused = match self.cells.get(to.0) {
            Some(cell) => cell.mailbox.push_always(entry).err(),
            None => Some(entry),
        };
        if let Some(entry) = refused {
            self.counters.done(entry.epoch);
            self.discard(to, entry);
        }
    }

    // Messages without a receiver.

    fn drop_message(&self, to: Addr, entry: MailboxEntry<M>) {
        self.dropped.fetch_add(1, Relaxed);
        self.counters.done(entry.epoch);
        self.discard(to, entry);
    }

    /// Handles a message whose receiver has ended.
    #[cold]
    pub(super) fn dead_letter(self: &Arc<Self>, to: Addr, entry: MailboxEntry<M>) {
        let epoch = entry.epoch;
        match entry.event {
            Event::Message { from, body } if !self.is_ending() => {
                self.count_dead(from, to, &body, entry.sent);
                if entry.asks != Asks::None {
                    let unanswered = Event::Unanswered {
                        who: to,
                        request: entry.span,
                    };
                    let answer = MailboxEntry {
                        answers: entry.span,
                        asks: entry.asks,
                        ..MailboxEntry::system(unanswered, self.clock.now())
                    };
                    self.send_system_event(from, answer);
                }
                if self.config.dead_letters == DeadLetters::ToRoot {
                    let event = Event::DeadLetter { to, body };
                    let asks = Asks::None;
                    self.send_system_event(
                        ROOT,
                        MailboxEntry {
                            event,
                            asks,
                            ..entry
                        },
                    );
                } else {
                    self.discard(to, body);
                }
            }
            event => self.discard(to, event),
        }
        self.counters.done(epoch);
    }

    fn count_dead(&self, from: Addr, to: Addr, body: &M, sent: Time) {
        let kind = body.kind();
        if self.dead[kind].fetch_add(1, Relaxed) == 0 {
            let first = || {
                let (kind, from, to) = (M::KINDS[kind], self.name(from), self.name(to));
                format!("{kind} from {from} to {to} at {sent}")
            };
            lock(&self.first_dead).get_or_insert_with(first);
        }
    }
}
