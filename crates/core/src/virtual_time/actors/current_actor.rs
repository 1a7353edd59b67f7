//! The delivery of events to one actor.
//!
//! This module is the only one that uses the content of a slot. Its functions are called while no reference to the shard
//! or to the actor is held.

use super::{Actors, drop_stashed};
use crate::contract::{Flow, Message, Reason, Token};
use crate::virtual_time::actor_table::Lineage;
use crate::virtual_time::delivery::{MessageDelivery, TimerDelivery, Upcoming};
use crate::virtual_time::event::{Kind, ScheduledEvent};
use crate::virtual_time::form::Form;
use crate::virtual_time::header::{Header, State};
use crate::virtual_time::shard::{ROOT, Shard, ShardCell, is_handle};
use crate::virtual_time::slot::SlotPtr;
use crate::virtual_time::stored_event::{EventPtr, UnreadEvent};
use crate::virtual_time::window_timers::WindowTimer;
#[cfg(feature = "serde")]
use std::sync::Arc;

/// Whether an actor can receive the event being delivered.
enum Ready {
    Yes,
    No,
    Ends(Reason),
}

/// The next step after a timer of the window was taken.
enum Due<M> {
    Nothing,
    TooMany,
    Own(ScheduledEvent<M>),
    Timer(EventPtr<M>),
}

/// Counts a message that is being delivered; the time of the event has already been counted.
#[inline(always)]
pub(in super::super) fn count_message<M: Message>(
    shard: ShardCell<M>,
    message: &MessageDelivery<M>,
) {
    // Foreign code (`kind` and `fingerprint`) returns before the shard is borrowed.
    let (kind, fingerprint) = (message.body().kind(), message.body().fingerprint());
    let event = message.event();
    let (parties, seq) = (event.parties(), event.label().seq);
    shard.with(|shard| shard.count_message(parties, seq, kind, fingerprint));
}

/// An actor, its population, and its slot.
///
/// # Invariant
/// The slot belongs to an actor of the population. The methods below change its state and its content together.
pub(super) struct CurrentActor<'a, M: Message, A: Actors<M>> {
    actors: &'a A,
    /// The shard of the population; a copy, which the compiler can hold in a register.
    shard: ShardCell<M>,
    slot: SlotPtr<M, A::Form>,
}

impl<M: Message, A: Actors<M>> Clone for CurrentActor<'_, M, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Message, A: Actors<M>> Copy for CurrentActor<'_, M, A> {}

impl<'a, M: Message, A: Actors<M>> CurrentActor<'a, M, A> {
    /// Returns the actor in a slot of a population.
    ///
    /// # Safety
    /// The slot belongs to an actor of the population.
    #[inline(always)]
    pub(super) unsafe fn new(actors: &'a A, slot: SlotPtr<M, A::Form>) -> Self {
        CurrentActor::of(actors, slot)
    }

    #[inline(always)]
    fn of(actors: &'a A, slot: SlotPtr<M, A::Form>) -> Self {
        CurrentActor {
            actors,
            shard: actors.shard(),
            slot,
        }
    }

    /// Returns an actor of a population by its address. Only reads.
    pub(super) fn find(actors: &'a A, actor: u32) -> Option<Self> {
        if !actors.has(actor) {
            return None;
        }
        // SAFETY: the actor belongs to the population and is on its shard.
        let slot = unsafe { actors.slot(actor) };
        slot.map(|slot| CurrentActor::of(actors, slot))
    }

    /// Returns the actor's slot.
    #[inline(always)]
    pub(super) fn slot(self) -> SlotPtr<M, A::Form> {
        self.slot
    }

    #[inline(always)]
    fn state(self) -> State {
        self.slot.state()
    }

    /// Returns the actor, which is live, for one call of a function of its form, which may run code of the actor.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "the reference ends with the call for which it is made"
    )]
    fn actor(&self) -> &mut <A::Form as Form<M>>::Actor {
        debug_assert!(self.state() == State::Live);
        // SAFETY: the actor is live, so its slot contains it. Each reference ends with the call for which it is made, and
        // the engine calls this module only after code of an actor has returned.
        unsafe { &mut *self.slot.actor() }
    }

    /// Calls a function of the actor's form, if the actor is live, and makes it the one being run.
    pub(super) fn act_if_live(
        self,
        actor: u32,
        act: impl FnOnce(&mut <A::Form as Form<M>>::Actor, ShardCell<M>),
    ) {
        if self.state() == State::Live {
            self.shard.with(|shard| {
                shard.turn.me = actor;
                shard.turn.header = self.slot.header();
            });
            act(self.actor(), self.shard);
        }
    }

    /// Calls a function with the actor, if it is live.
    #[cfg(feature = "serde")]
    pub(super) fn read_if_live<T>(
        self,
        act: impl FnOnce(&<A::Form as Form<M>>::Actor) -> T,
    ) -> Option<T> {
        (self.state() == State::Live).then(|| act(self.actor()))
    }

    /// Returns the form and the time of birth of an actor that has not begun. Only reads.
    #[cfg(feature = "serde")]
    pub(super) fn origin(self) -> Option<(Arc<A::Form>, u64)> {
        if self.state() != State::Fresh {
            return None;
        }
        // SAFETY: the slot belongs to an actor of the population, is fresh, and does not change here.
        let (form, birth_time) = unsafe { self.actors.origin(self.slot) };
        Some((Arc::clone(form), birth_time))
    }

    /// Lets an actor that has not begun be in this state.
    #[inline(always)]
    pub(super) fn begin_as(self, actor: <A::Form as Form<M>>::Actor) {
        debug_assert!(self.state() == State::Fresh);
        // SAFETY: the actor has not begun; its parameters are moved out before its state replaces them, and dropped
        // afterwards.
        let origin = unsafe {
            let origin = A::take_origin(self.slot);
            self.slot.begin(actor);
            origin
        };
        drop(origin);
    }

    /// Ends an actor that has not begun, without notifying its parent.
    #[cfg(feature = "serde")]
    pub(super) fn end_unborn(self, reason: Reason) {
        if self.state() == State::Fresh {
            self.slot.header().with(|header| header.end(reason));
            // SAFETY: the actor had not begun. The state is `Ended` now, so its parameters are taken once.
            drop(unsafe { A::take_origin(self.slot) });
        }
    }

    /// Delivers one event.
    ///
    /// # Safety
    /// The event is for this actor and has not been moved out; nothing else moves it out, and its memory exists during
    /// the call.
    #[inline(always)]
    pub(super) unsafe fn run_one(self, event: EventPtr<M>) {
        let cell = self.shard;
        cell.with(|shard| {
            shard.turn.me = event.label().to;
            shard.turn.header = self.slot.header();
            shard.turn.now = shard.window.base + event.label().offset() as u64;
            shard.turn.current = Some(event);
        });
        let live = self.state() == State::Live;
        if event.label().is_message() && (live || self.is_to_begin()) {
            cell.with(|shard| shard.counters.note_time(shard.turn.now));
            // SAFETY: the event is a message, which has a body, and has not been moved out.
            let message = unsafe { MessageDelivery::new(event) };
            if self.deliver_message(message, live) == Flow::Stop {
                return self.end(Reason::Returned);
            }
        } else if !live || !self.deliver_timer(event) {
            // SAFETY: the event has not been moved out.
            self.deliver_other(unsafe { UnreadEvent::new(event) });
        }
        if cell.with(|shard| shard.turn.timers.next()) != u64::MAX {
            self.run_window_timers(u64::MAX);
        }
    }

    /// Lets the actor handle the event `order[at]`, and the messages after it that are due at the same instant. Returns
    /// the index of the first event that it has not handled.
    ///
    /// # Safety
    /// `order[at]` exists and is an event for this actor, which is the one being run. The events from `at` on have not
    /// been moved out; nothing else moves them out, and their memory exists during the call.
    #[inline(always)]
    pub(super) unsafe fn deliver(self, order: &[EventPtr<M>], mut at: usize) -> usize {
        let cell = self.shard;
        // SAFETY: the caller guarantees that the event exists.
        let mut event = unsafe { *order.get_unchecked(at) };
        cell.with(|shard| {
            shard.window.cursor = at;
            shard.turn.now = shard.window.base + event.label().offset() as u64;
            shard.turn.current = Some(event);
        });
        let mut live = self.state() == State::Live;
        if !event.label().is_message() || !live && !self.is_to_begin() {
            // SAFETY: the event has not been moved out.
            self.deliver_other(unsafe { UnreadEvent::new(event) });
            return at + 1;
        }
        cell.with(|shard| shard.counters.note_time(shard.turn.now));
        // The actor cannot cause an event that is due before these messages: at one instant, timers come after
        // messages.
        loop {
            let label = *event.label();
            if A::Form::TAKES_ROWS {
                let behind = order.get(at + 1..).unwrap_or_default();
                // SAFETY: the slice and the events stay in place, and none of them has been moved out. The current event
                // is a message. The list is replaced below, and events that were taken from it are skipped.
                let upcoming = unsafe { Upcoming::new(behind) };
                cell.with(|shard| shard.turn.upcoming = upcoming);
            }
            // SAFETY: the event is a message, which has a body, and has not been moved out.
            let message = unsafe { MessageDelivery::new(event) };
            let flow = self.deliver_message(message, live);
            live = true;
            if A::Form::TAKES_ROWS {
                at = cell.with(|shard| {
                    shard.turn.upcoming = Upcoming::NONE;
                    shard.window.cursor
                });
            }
            at += 1;
            if flow == Flow::Stop {
                self.end(Reason::Returned);
                return at;
            }
            event = match order.get(at) {
                Some(&next) if label.is_alike(next.label()) => next,
                _ => return at,
            };
            cell.with(|shard| {
                shard.window.cursor = at;
                shard.turn.current = Some(event);
            });
        }
    }

    /// Lets the actor handle a message, which is the current event. If the actor is not `live`, it begins with this
    /// message.
    #[inline(always)]
    fn deliver_message(self, message: MessageDelivery<M>, live: bool) -> Flow {
        let cell = self.shard;
        count_message(cell, &message);
        if !live {
            // The event stays here until the actor has begun, so that a panic finds it.
            // SAFETY: the event has not been moved out. `message` is used only after this value was forgotten.
            let arrival = unsafe { UnreadEvent::new(message.event()) };
            cell.with(|shard| shard.turn.arrival = Some(arrival));
            self.begin();
            cell.with(|shard| shard.turn.arrival = None);
        }
        A::Form::receive(self.actor(), cell, message)
    }

    /// Delivers a timer of the actor, or a message to itself that takes no time. Returns false for any other event. The
    /// actor is live.
    #[inline(always)]
    fn deliver_timer(self, event: EventPtr<M>) -> bool {
        let Some(timer) = event.timer() else {
            return false;
        };
        let cell = self.shard;
        let token = timer.token();
        if token >= Token::OWN {
            if let Some(message) = cell.with(|shard| shard.take_own(token)) {
                self.deliver_own(message);
                return true;
            }
            if !is_handle(token) {
                return false;
            }
            let Some(token) = cell.with(|shard| shard.handle_due(token)) else {
                // The timer was cancelled.
                return true;
            };
            timer.set_token(token);
        }
        cell.with(|shard| {
            shard.counters.others += 1;
            shard.count_timer(timer.token().into());
        });
        let timer = TimerDelivery::new(timer);
        if A::Form::due(self.actor(), cell, timer) == Flow::Stop {
            self.end(Reason::Returned);
        }
        true
    }

    /// Delivers a message of the actor to itself. The actor is live.
    #[inline(always)]
    fn deliver_own(self, message: ScheduledEvent<M>) {
        let message = self.shard.with(|shard| {
            shard.counters.note_time(shard.turn.now);
            shard.arrive(message)
        });
        if self.deliver_message(message, true) == Flow::Stop {
            self.end(Reason::Returned);
        }
    }

    /// Delivers an event other than a message to an actor that is alive or begins with it.
    #[inline(always)]
    fn deliver_other(self, event: UnreadEvent<M>) {
        Self::deliver_any_other(self.actors, self.slot, event);
    }

    /// See [`deliver_other`](Self::deliver_other). The parts of `self` are passed in registers.
    #[inline(never)]
    fn deliver_any_other(actors: &'a A, slot: SlotPtr<M, A::Form>, event: UnreadEvent<M>) {
        CurrentActor::of(actors, slot).deliver_other_here(event);
    }

    #[inline(always)]
    fn deliver_other_here(self, event: UnreadEvent<M>) {
        if self.state() == State::Live && self.deliver_timer(event.event()) {
            return;
        }
        match self.prepare(event) {
            Ready::Yes => {}
            Ready::No => return,
            Ready::Ends(reason) => return self.end(reason),
        }
        if A::Form::handle(self.actor(), self.shard) == Flow::Stop {
            self.end(Reason::Returned);
        }
    }

    /// Prepares the delivery of an event other than a message.
    #[inline(always)]
    fn prepare(self, unread: UnreadEvent<M>) -> Ready {
        let cell = self.shard;
        let event = unread.event();
        let (state, kind) = (self.state(), event.label().kind());
        let token = event.timer().map(|timer| timer.token());
        if token.is_some_and(|token| cell.with(|shard| shard.is_cancelled(token))) {
            return Ready::No;
        }
        if state != State::Live && !self.is_to_begin() {
            let event = unread.read(cell.with(|shard| shard.turn.now));
            let kind = event.message_kind();
            drop(cell.with(|shard| shard.undeliverable(event, kind)));
            return Ready::No;
        }
        cell.with(|shard| {
            shard.counters.others += 1;
            if shard.settings.attentive {
                shard.attend_other();
            }
        });
        if kind == Kind::Stop {
            return Ready::Ends(Reason::Stopped);
        }
        let arrival = (kind != Kind::Start).then_some(unread);
        cell.with(|shard| {
            shard.turn.arrival = arrival;
            if let Some(token) = token {
                shard.count_timer(token.into());
            } else if kind.is_message() {
                shard.counters.note_time(shard.turn.now);
            }
        });
        if kind.is_message() {
            // SAFETY: a message has a body, which has not been moved out. The delivery is dropped without taking it.
            count_message(cell, &unsafe { MessageDelivery::new(event) });
        }
        if state == State::Fresh {
            self.begin();
        }
        Ready::Yes
    }

    /// True if the actor being run exists, has not begun, and begins with the current event.
    #[inline(always)]
    fn is_to_begin(self) -> bool {
        let now = self.shard.with(|shard| shard.turn.now);
        // SAFETY: the slot belongs to an actor of the population, is fresh, and does not change here.
        self.state() == State::Fresh && now >= unsafe { self.actors.origin(self.slot) }.1
    }

    /// Creates the actor being run, and starts it. The actor has not begun, and the event that has arrived is its first.
    #[inline(always)]
    fn begin(self) {
        debug_assert!(self.state() == State::Fresh);
        let cell = self.shard;
        let index = self.actors.index(cell.with(|shard| shard.turn.me));
        // SAFETY: the slot belongs to an actor of the population, is fresh, and does not change while the actor is made.
        let (form, _) = unsafe { self.actors.origin(self.slot) };
        self.begin_as(form.make(cell, index));
        cell.with(|shard| shard.counters.begun += 1);
        A::Form::begin(self.actor(), cell);
    }

    /// Drops the body of the actor being run, which has panicked.
    pub(super) fn end_by_panic(self) {
        self.end(Reason::Panicked);
    }

    /// Ends the actor being run.
    #[inline(always)]
    fn end(self, reason: Reason) {
        Self::end_in(self.actors, self.slot, reason);
    }

    /// See [`end`](Self::end). The parts of `self` are passed in registers.
    #[cold]
    #[inline(never)]
    fn end_in(actors: &'a A, slot: SlotPtr<M, A::Form>, reason: Reason) {
        CurrentActor::of(actors, slot).end_here(reason);
    }

    #[inline(always)]
    fn end_here(self, reason: Reason) {
        let cell = self.shard;
        let state = self.state();
        if state == State::Ended {
            // The actor panicked while its body was being dropped.
            return drop_stashed(cell);
        }
        self.slot.header().with(|header| header.end(reason));
        let waker = cell.with(|shard| end_turn(shard, state, reason));
        drop(waker);
        // SAFETY: the actor was live or had not begun, so the slot contains it or its parameters. The state is `Ended`
        // before the content is dropped, so that it is dropped once, even if its drop panics.
        unsafe {
            if state == State::Live {
                self.slot.actor().drop_in_place();
            } else {
                drop(A::take_origin(self.slot));
            }
        }
        if cell.with(Shard::has_stashed) {
            drop_stashed(cell);
        }
    }

    /// Runs the timers that the actor has set within the window and that are due before its next event at
    /// this time.
    #[inline(always)]
    pub(super) fn run_window_timers(self, until: u64) {
        Self::run_timers_in(self.actors, self.slot, until);
    }

    /// See [`run_window_timers`](Self::run_window_timers). The parts of `self` are passed in registers.
    #[inline(never)]
    fn run_timers_in(actors: &'a A, slot: SlotPtr<M, A::Form>, until: u64) {
        CurrentActor::of(actors, slot).run_timers_here(until);
    }

    #[inline(always)]
    fn run_timers_here(self, until: u64) {
        let cell = self.shard;
        while let Some(timer) = cell.with(|shard| shard.turn.timers.pop_before(until)) {
            match cell.with(|shard| next_due(shard, timer)) {
                Due::Nothing => {}
                Due::TooMany => return,
                Due::Own(message) => self.deliver_own(message),
                // SAFETY: the event was just written to memory of the shard, and a timer may be read repeatedly. The
                // event is stored in the shard, so it remains valid even if the actor panics.
                Due::Timer(event) => self.deliver_other(unsafe { UnreadEvent::new(event) }),
            }
        }
    }
}

/// Removes the shard's data about the actor being run, which was in this state and has ended. The caller drops the
/// returned waker.
#[inline(always)]
fn end_turn<M: Message>(
    shard: &mut Shard<M>,
    state: State,
    reason: Reason,
) -> Option<std::task::Waker> {
    shard.notable = true;
    shard.counters.ended += 1;
    shard.counters.never += u64::from(state != State::Live);
    let (me, now) = (shard.turn.me, shard.turn.now);
    if me == ROOT {
        let end = now.saturating_add(shard.min_latency());
        shard.counters.root_end = end.min(u64::MAX - 1);
        shard.counters.root_ended = Some(now);
    }
    if !shard.turn.timers.is_empty() {
        shard.turn.timers.clear();
    }
    let lineage = shard.places.ended(me);
    // Panics are reported to parents even without `watched`.
    let is_notified = |lineage: &Lineage| lineage.watched || reason == Reason::Panicked;
    if let Some(lineage) = lineage.filter(is_notified) {
        let reason = Header::reason_number(reason) as u64;
        shard.notify(Kind::Down, lineage.parent, reason);
    }
    shard.forget()
}

/// Decides what happens with a timer of the actor being run that is due within the window.
#[inline(always)]
fn next_due<M: Message>(shard: &mut Shard<M>, timer: WindowTimer) -> Due<M> {
    if timer.time > shard.window.limit {
        let event = shard.timer_event(&timer);
        shard.defer(timer.time, &event.head(timer.time));
        return Due::Nothing;
    }
    if timer.time >= shard.window.pause {
        shard.put_off(timer);
        return Due::Nothing;
    }
    let caused = shard.turn.timers.count(shard.turn.me, &timer);
    if caused > 0 && !shard.may_continue(caused) {
        shard.turn.timers.clear();
        return Due::TooMany;
    }
    shard.turn.now = timer.time;
    if let Some(message) = shard.take_own(timer.token) {
        return Due::Own(message);
    }
    let event = shard.timer_event(&timer);
    shard.turn.current = Some(event);
    Due::Timer(event)
}
