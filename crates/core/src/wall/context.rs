//! The context of an actor on any of the wall-clock executors.

mod ending;
mod handler;
mod waits;

use super::alarm::Alarm;
use super::cell::Cell;
use super::counters::Ledger;
use super::life;
use super::mailbox_entry::{Asks, MailboxEntry};
use super::run_handle::RunHandle;
use super::system::{End, Start, System};
use super::timers::Timers;
use crate::contract::random::Streams;
use crate::contract::{
    Actor, Addr, AddrRange, AsyncContext, Context, Envelope, Event, LibraryWait, Message,
    ReplyHandle, Sample, Scenario, SpanId, Spawn, Time, TimerHandle, Token, WaitReason,
};
use crate::sync::lock;
use ending::HandledEvent;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::iter;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use waits::{SearchScope, is_of};

/// The number of events that an actor handles without a wait before other actors may run.
const TURN: u32 = 512;

/// Spawns the root and starts it.
pub(super) fn spawn_root<M: Message>(system: &Arc<System<M>>, scenario: impl Scenario<M>) {
    let once = Mutex::new(Some(scenario));
    let make = move |cx: WallContext<M>, _| {
        let scenario = lock(&once).take().expect("there is one root");
        scenario.root(cx)
    };
    spawn(system, &Spawn::one("root"), Addr::NONE, make);
}

/// Spawns actors; `None` if there are too many, which also ends the run.
fn spawn<M, B, F>(system: &Arc<System<M>>, how: &Spawn, parent: Addr, make: F) -> Option<AddrRange>
where
    M: Message,
    B: Future<Output = ()> + Send + 'static,
    F: Fn(WallContext<M>, u32) -> B + Send + Sync + 'static,
{
    let (make, alone) = (Arc::new(Make::Own(make)), how.count() == 1);
    let start: Start<M> = Box::new(move |system, row| {
        // One handle for each row, in whose counters the actors of the row are counted.
        let run = RunHandle::new(system);
        let make = match alone {
            true => make.clone(),
            false => Arc::new(Make::Shared(make.clone())),
        };
        let starter = system.runtime.starter();
        for (cell, who, index) in row {
            let (own, make) = (run.clone(), make.clone());
            let make = move |cell| make.get()(WallContext::new(own, cell, who, parent), index);
            let life = life::live(run.clone(), cell.clone(), who, make);
            starter.start(&cell.handle, || system.name(who), Box::pin(life))?;
        }
        Ok(())
    });
    system.add(how, parent, start)
}

/// Makes the bodies of actors that were spawned together or begin together.
enum Make<F> {
    Own(F),
    Shared(Arc<Make<F>>),
}

impl<F> Make<F> {
    fn get(&self) -> &F {
        match self {
            Make::Own(make) => make,
            Make::Shared(make) => make.get(),
        }
    }
}

/// An actor's view of the run, and its own state: received events, sent messages and timers.
///
/// All events of the mailbox are moved at once to `batch`, and the due timers are added after them; the clock is read
/// once for the batch. So a flood of messages delays a timer by at most one batch.
pub(crate) struct WallContext<M: Message> {
    system: RunHandle<M>,
    /// The part of this actor that others can access.
    cell: Arc<Cell<M>>,
    me: Addr,
    parent: Addr,
    now: Time,
    envelope: Envelope,
    /// The trace that sent messages continue, and their parent in it; with `NONE` each message starts its own trace.
    trace: (SpanId, SpanId),
    handled: HandledEvent,
    /// The number of messages sent, random numbers drawn, and spawns requested.
    sendings: u32,
    draws: u64,
    requests: u32,
    /// Received events that no wait has checked.
    batch: VecDeque<MailboxEntry<M>>,
    /// Events that selective receives have checked and stashed.
    stash: VecDeque<MailboxEntry<M>>,
    /// True if a message from this actor may still be above the capacity of a mailbox.
    over: bool,
    timers: Timers,
    alarm: Alarm,
    ledger: Ledger,
    /// The number of messages received, and of events since the last wait.
    received: u64,
    turn: u32,
    waiting: Option<WaitReason>,
    /// The time at which the clock was read last.
    looked: Time,
}

impl<M: Message> WallContext<M> {
    fn new(system: RunHandle<M>, cell: Arc<Cell<M>>, me: Addr, parent: Addr) -> WallContext<M> {
        let now = system.clock.now();
        let alarm = system.runtime.alarm();
        let none = SpanId::NONE;
        WallContext {
            system,
            cell,
            me,
            parent,
            now,
            envelope: Envelope {
                from: me,
                sent: now,
                trace: none,
                parent: none,
                span: none,
                answers: none,
            },
            trace: (none, none),
            handled: HandledEvent::Start,
            sendings: 0,
            draws: 0,
            requests: 0,
            batch: VecDeque::new(),
            stash: VecDeque::new(),
            over: false,
            timers: Timers::default(),
            alarm,
            ledger: Ledger::default(),
            received: 0,
            turn: 0,
            waiting: None,
            looked: now,
        }
    }

    // Sending.

    #[inline]
    fn entry(&mut self, body: M, answers: SpanId, asks: Asks) -> MailboxEntry<M> {
        if self.sendings == u32::MAX {
            let (who, time) = (self.me, self.now);
            self.system.finish(End::TooManySends { who, time });
        }
        self.sendings = self.sendings.wrapping_add(1);
        let span = SpanId::new(self.me, self.sendings);
        MailboxEntry {
            answers,
            asks,
            ..MailboxEntry::message(span, body, self.now, self.trace)
        }
    }

    #[inline]
    fn dispatch(&mut self, to: Addr, mut entry: MailboxEntry<M>) -> SpanId {
        let span = entry.span;
        entry.epoch = self.system.counters.sent(1);
        self.post(to, iter::once(entry));
        span
    }

    #[inline]
    fn post(&mut self, to: Addr, row: impl ExactSizeIterator<Item = MailboxEntry<M>>) {
        let over = self.system.post(to, row);
        if over > 0 {
            self.cell.owed.add(over);
            self.over = true;
        }
    }

    /// Returns the due time of a timer. The method reads the clock, because the current batch may already have taken
    /// longer than the timer.
    fn due(&mut self, after: Duration) -> Time {
        self.looked = self.system.clock.now();
        self.looked.after(after)
    }

    fn spawn_group<B, F>(&mut self, how: Spawn, make: F) -> u32
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static,
    {
        let request = self.requests;
        self.requests = self.requests.wrapping_add(1);
        // If there are too many actors, the run ends, and the request has no answer.
        if let Some(range) = spawn(&self.system, &how, self.me, make) {
            let event = Event::Spawned {
                request,
                first: Addr(range.first),
                count: range.count,
            };
            let mut entry = MailboxEntry::system(event, self.now);
            entry.epoch = self.system.counters.sent(1);
            self.batch.push_back(entry);
        }
        request
    }
}

impl<M: Message> Context<M> for WallContext<M> {
    #[inline]
    fn me(&self) -> Addr {
        self.me
    }

    #[inline]
    fn parent(&self) -> Addr {
        self.parent
    }

    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn envelope(&self) -> Envelope {
        self.envelope
    }

    #[inline]
    fn random(&mut self) -> u64 {
        let bits = Streams::new(self.system.config.seed).nth(self.me.0, self.draws);
        self.draws += 1;
        bits
    }

    #[inline]
    fn send(&mut self, to: Addr, body: M) -> SpanId {
        let entry = self.entry(body, SpanId::NONE, Asks::None);
        self.dispatch(to, entry)
    }

    fn send_all<const N: usize>(&mut self, to: Addr, bodies: [M; N]) {
        let count = u32::try_from(N).ok().filter(|&count| count > 0);
        let Some(last) = count.and_then(|count| self.sendings.checked_add(count)) else {
            for body in bodies {
                self.send(to, body);
            }
            return;
        };
        let before = std::mem::replace(&mut self.sendings, last);
        let (from, sent, trace) = (self.me, self.now, self.trace);
        let epoch = self.system.counters.sent(N as u64);
        let entry = |(index, body)| MailboxEntry {
            epoch,
            ..MailboxEntry::message(
                SpanId::new(from, before + 1 + index as u32),
                body,
                sent,
                trace,
            )
        };
        self.post(to, bodies.into_iter().enumerate().map(entry));
    }

    fn send_in(&mut self, transit: Duration, to: Addr, body: M) -> SpanId {
        self.send_after(transit, to, body)
    }

    fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId {
        if delay.is_zero() {
            return self.send(to, body);
        }
        let entry = self.entry(body, SpanId::NONE, Asks::None);
        let span = entry.span;
        self.system
            .clock
            .deliver_at(self.system.clock.now().after(delay), to, entry);
        span
    }

    fn send_self(&mut self, body: M) -> SpanId {
        let mut entry = self.entry(body, SpanId::NONE, Asks::None);
        entry.epoch = self.system.counters.sent(1);
        let span = entry.span;
        self.batch.push_back(entry);
        span
    }

    fn request(&mut self, to: Addr, body: M) -> SpanId {
        let entry = self.entry(body, SpanId::NONE, Asks::Sender);
        self.dispatch(to, entry)
    }

    fn reply(&mut self, reply_handle: ReplyHandle, body: M) -> SpanId {
        let entry = MailboxEntry {
            parent: reply_handle.request,
            ..self.entry(body, reply_handle.request, Asks::None)
        };
        self.dispatch(reply_handle.to, entry)
    }

    fn timer(&mut self, after: Duration, token: Token) {
        let due = self.due(after);
        self.timers.set(due, token);
    }

    fn timer_handle(&mut self, after: Duration, token: Token) -> TimerHandle {
        let own = self.own_token();
        let due = self.due(after);
        self.timers.set_handle(due, own, token, None);
        TimerHandle(own)
    }

    fn every(&mut self, period: Duration, token: Token) -> TimerHandle {
        let (own, period) = (self.own_token(), period.max(Duration::from_nanos(1)));
        let due = self.due(period);
        self.timers.set_handle(due, own, token, Some(period));
        TimerHandle(own)
    }

    fn cancel(&mut self, timer: TimerHandle) -> bool {
        self.timers.cancel(timer.0)
    }

    fn stop(&mut self, who: Addr) {
        self.system.stop(who);
    }

    fn new_trace(&mut self) {
        self.trace = (SpanId::NONE, SpanId::NONE);
    }

    fn continue_trace(&mut self, trace: SpanId, parent: SpanId) {
        self.trace = (trace, parent);
    }

    fn record(&mut self, name: &'static str, sample: Sample) {
        if self.now < self.system.config.warm_up {
            return;
        }
        lock(&self.system.probes).record(name, self.now, self.me, sample);
    }

    fn spawn_request<A, F>(&mut self, how: Spawn, make: F) -> u32
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        self.spawn_group(how, move |cx, index| handler::handle(make(index), cx))
    }
}

impl<M: Message> AsyncContext<M> for WallContext<M> {
    fn recv(&mut self) -> impl Future<Output = Event<M>> + Send {
        let mut scope = SearchScope::StashFirst;
        poll_fn(move |task| {
            if let Some(entry) = self.next_arrived() {
                return Poll::Ready(self.hand_out(entry));
            }
            self.begin_untimed(scope);
            let any = |entry: &MailboxEntry<M>| !entry.is_own();
            let entry = self.poll_entry(WaitReason::Message, &any, &mut scope, task);
            entry.map(|entry| self.hand_out(entry))
        })
    }

    fn recv_where(
        &mut self,
        why: WaitReason,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send {
        let me = self.me;
        let wanted = move |entry: &MailboxEntry<M>| {
            !entry.is_own() && wanted(&entry.event, &entry.envelope(me))
        };
        let mut scope = SearchScope::StashFirst;
        poll_fn(move |task| {
            self.begin_untimed(scope);
            let entry = self.poll_entry(why, &wanted, &mut scope, task);
            entry.map(|entry| self.hand_out(entry))
        })
    }

    async fn yield_now(&mut self) {
        poll_fn(|task| self.poll_capacity(task)).await;
        self.ledger.flush(&self.system.counters);
        let mut yielded = false;
        poll_fn(|task| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    async fn settle(&mut self) {
        poll_fn(|task| self.poll_capacity(task)).await;
        // Only one actor settles at a time, because there are only two epochs.
        let mut pause = FIRST_PAUSE;
        while self
            .system
            .settling
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_err()
        {
            self.pause(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        let turn = Turn(self.system.clone());
        let old = turn.0.counters.turn();
        let mut pause = FIRST_PAUSE;
        loop {
            self.pause(pause).await;
            self.ledger.flush(&self.system.counters);
            if self.system.counters.is_settled(old) {
                break;
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn spawn_bodies<B, F>(&mut self, how: Spawn, make: F) -> u32
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static,
    {
        self.spawn_group(how, make)
    }

    fn own_token(&mut self) -> Token {
        self.timers.own_token()
    }

    async fn recv_within(
        &mut self,
        why: WaitReason,
        within: Duration,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> Option<Event<M>> {
        let token = self.own_token();
        self.timer(within, token);
        let (me, over) = (self.me, LibraryWait::Sleep(token, Time::MAX));
        let wanted = move |entry: &MailboxEntry<M>| {
            is_of(entry, over) || !entry.is_own() && wanted(&entry.event, &entry.envelope(me))
        };
        let mut scope = SearchScope::StashFirst;
        let this = &mut *self;
        let event = poll_fn(move |task| {
            let entry = this.poll_entry(why, &wanted, &mut scope, task);
            entry.map(|entry| this.hand_out(entry))
        })
        .await;
        self.timers.forget_own();
        match event {
            Event::Timer(due) if due == token => None,
            event => Some(event),
        }
    }

    fn ask_only(&mut self, to: Addr, body: M) -> SpanId {
        let entry = self.entry(body, SpanId::NONE, Asks::Wait);
        self.dispatch(to, entry)
    }

    fn wait_own(
        &mut self,
        why: WaitReason,
        own: LibraryWait,
    ) -> impl Future<Output = Event<M>> + Send {
        let wanted = move |entry: &MailboxEntry<M>| is_of(entry, own);
        let mut scope = SearchScope::New;
        poll_fn(move |task| {
            if own.timer().is_none() {
                self.begin_untimed(scope);
            }
            let entry = self.poll_entry(why, &wanted, &mut scope, task);
            entry.map(|entry| {
                if own.timer().is_some() {
                    self.timers.forget_own();
                }
                self.hand_out(entry)
            })
        })
    }
}

/// The first pause between two checks of an actor that settles.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The exclusive right to change the epochs of the counters. Dropping this value releases the right, however the wait
/// ends.
struct Turn<M: Message>(RunHandle<M>);

impl<M: Message> Drop for Turn<M> {
    fn drop(&mut self) {
        self.0.settling.store(false, Release);
    }
}
