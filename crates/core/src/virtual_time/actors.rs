//! The actors of one form on one shard, and the delivery of events to them.
//!
//! The engine passes a series of events to a population. The loop over them is compiled for the type of the
//! population's actors, so a handler is inlined into the loop, and an event costs no indirect call.
//!
//! Actors of a large spawn have their own pages and are adjacent in memory ([`own_pages`]); the actors of small spawns
//! share pages ([`shared_pages`]).

mod own_pages;
mod shared_pages;

use super::actor_table::Lineage;
use super::delivery::{MessageDelivery, TimerDelivery, Upcoming};
use super::event::{Kind, ScheduledEvent};
use super::form::{Form, Slot};
use super::header::{Header, State};
use super::population::{ActorView, Population};
use super::region::Prefault;
use super::shard::ShardCell;
use super::shard::{ROOT, Shard, is_handle};
use super::stored_event::StoredEvent;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use crate::contract::{Flow, Message, Reason, Token};
use std::any::{TypeId, type_name};
#[cfg(feature = "serde")]
use std::sync::Arc;

/// Whether an actor can receive the event being delivered.
enum Ready {
    Yes,
    No,
    Ends(Reason),
}

/// Counts a message that is being delivered; the time of the event has already been counted.
///
/// # Safety
/// The shard is valid and no reference to it is held; the event has a body.
#[inline(always)]
pub(super) unsafe fn count_message<M: Message>(shard: *mut Shard<M>, event: *mut StoredEvent<M>) {
    // SAFETY: the event has a body. Foreign code (`kind` and `fingerprint`) returns before the shard is borrowed.
    unsafe {
        let body = &*StoredEvent::body(event);
        let (kind, fingerprint) = (body.kind(), body.fingerprint());
        let (parties, seq) = (StoredEvent::parties(event), (*event).label.seq);
        (*shard).count_message(parties, seq, kind, fingerprint);
    }
}

/// The number of events by which slots are prefetched into the cache.
const AHEAD: usize = 10;

/// Actors of one form, wherever they are stored, and the delivery of events to them.
trait Actors<M: Message> {
    /// The form of the actors.
    type Form: Form<M>;

    /// Returns the slot of an actor, if the actor belongs to this population.
    ///
    /// # Safety
    /// The caller is on the shard's thread, the shard owns the address, and no reference to the shard is held.
    unsafe fn slot(&self, shard: *mut Shard<M>, actor: u32) -> Option<*mut Slot<M, Self::Form>>;

    /// Returns the start time of an actor that has not begun.
    ///
    /// # Safety
    /// The slot belongs to an actor of this population whose state is [`State::Fresh`].
    unsafe fn birth_time(&self, slot: *mut Slot<M, Self::Form>) -> u64;

    /// Creates the actor, whose state is [`State::Live`] afterwards. If that panics, the actor has not begun.
    ///
    /// # Safety
    /// As for [`Actors::birth_time`] and [`Actors::slot`].
    unsafe fn make(&self, shard: *mut Shard<M>, slot: *mut Slot<M, Self::Form>, actor: u32);

    /// Pre-faults memory; see [`Population::populate_ahead`].
    ///
    /// # Safety
    /// The requirements of [`Population::populate_ahead`].
    unsafe fn populate(&self) -> Prefault {
        Prefault::Done
    }

    /// Drops the actors that were spawned together with this actor. See [`Population::clear`].
    ///
    /// # Safety
    /// See [`Population::clear`].
    unsafe fn clear_all(&self, shard: *mut Shard<M>, actor: u32);

    /// Drops the parameters of an actor that has not begun.
    ///
    /// # Safety
    /// As for [`Actors::birth_time`]; the actor must just have been set to [`State::Ended`].
    unsafe fn unmake(&self, slot: *mut Slot<M, Self::Form>);

    /// Returns the form that makes an actor that has not begun.
    ///
    /// # Safety
    /// As for [`Actors::birth_time`].
    #[cfg(feature = "serde")]
    unsafe fn form(&self, slot: *mut Slot<M, Self::Form>) -> Arc<Self::Form>;

    /// Delivers one event to these actors. See [`Population::run_one`].
    ///
    /// # Safety
    /// The requirements of [`Population::run_one`].
    #[inline(always)]
    unsafe fn run_single(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        event: *mut StoredEvent<M>,
    ) {
        // SAFETY: shard, slot and event are valid, and references to them end before code of an actor or of a message
        // type is called.
        unsafe {
            (*shard).turn.me = (*event).label.to;
            (*shard).turn.header = &raw mut (*slot).header;
            (*shard).turn.now = (*shard).window.base + (*event).label.offset() as u64;
            (*shard).turn.current = event;
            let live = (*slot).header.state == State::Live;
            if (*event).label.is_message() && (live || self.is_to_begin(shard, slot)) {
                (*shard).counters.note_time((*shard).turn.now);
                if self.deliver_message(shard, slot, event, live) == Flow::Stop {
                    return self.end(shard, slot, Reason::Returned);
                }
            } else if !live || !self.deliver_timer(shard, slot, event) {
                self.deliver_other(shard, slot, event);
            }
            if (*shard).turn.timers.next() != u64::MAX {
                self.run_window_timers(shard, slot, u64::MAX);
            }
        }
    }

    /// Prefetches an actor's slot into the cache, if the actor belongs to this population.
    ///
    /// # Safety
    /// As for [`Actors::slot`].
    #[inline(always)]
    unsafe fn prefetch(&self, shard: *mut Shard<M>, actor: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the shard is valid and no reference to it is held; a prefetch reads nothing.
            unsafe {
                if let Some(slot) = self.slot(shard, actor) {
                    let line = slot.cast::<i8>();
                    // Prefetches the complete slot of an actor of ordinary size.
                    for at in (0..size_of::<Slot<M, Self::Form>>()).step_by(64).take(4) {
                        _mm_prefetch(line.wrapping_add(at), _MM_HINT_T0);
                    }
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (shard, actor);
    }

    /// Lets the actor of a slot handle the event `order[at]`, and the messages after it that are due at the
    /// same instant. Returns the index of the first event that it has not handled.
    ///
    /// # Safety
    /// As for [`Population::run`]; the actor being run is the slot's. The events from `at` on have not been
    /// moved out; handled events are moved out afterwards.
    #[inline(always)]
    unsafe fn deliver(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        order: &[*mut StoredEvent<M>],
        mut at: usize,
    ) -> usize {
        // SAFETY: the caller guarantees that shard, slot and events are valid. References to them end before code of an
        // actor or of a message type is called.
        unsafe {
            let mut event = *order.get_unchecked(at);
            (*shard).window.cursor = at;
            (*shard).turn.now = (*shard).window.base + (*event).label.offset() as u64;
            (*shard).turn.current = event;
            let mut live = (*slot).header.state == State::Live;
            if !(*event).label.is_message() || !live && !self.is_to_begin(shard, slot) {
                self.deliver_other(shard, slot, event);
                return at + 1;
            }
            (*shard).counters.note_time((*shard).turn.now);
            // The actor cannot cause an event that is due before these messages: at one instant, timers come after
            // messages.
            loop {
                let label = (*event).label;
                if Self::Form::TAKES_ROWS {
                    let behind = order.get(at + 1..).unwrap_or_default();
                    (*shard).turn.upcoming = Upcoming::new(behind);
                }
                let flow = self.deliver_message(shard, slot, event, live);
                live = true;
                if Self::Form::TAKES_ROWS {
                    (*shard).turn.upcoming = Upcoming::NONE;
                    at = (*shard).window.cursor;
                }
                at += 1;
                if flow == Flow::Stop {
                    self.end(shard, slot, Reason::Returned);
                    return at;
                }
                event = match order.get(at) {
                    Some(&next) if label.is_alike(&(*next).label) => next,
                    _ => return at,
                };
                (*shard).window.cursor = at;
                (*shard).turn.current = event;
            }
        }
    }

    /// Lets the actor of a slot handle a message. If the actor is not `live`, it begins with this message.
    ///
    /// # Safety
    /// As for [`Actors::deliver`]; time and event of the shard's turn are set.
    #[inline(always)]
    unsafe fn deliver_message(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        event: *mut StoredEvent<M>,
        live: bool,
    ) -> Flow {
        // SAFETY: shard, slot and event are valid, and references to them end before code of an actor or of a message type
        // is called.
        unsafe {
            count_message(shard, event);
            if !live {
                // The event stays here until the actor has begun, so that a panic finds it.
                (*shard).turn.arrival = event;
                self.begin(shard, slot);
                (*shard).turn.arrival = std::ptr::null_mut();
            }
            let message = MessageDelivery::new(event);
            Self::Form::receive(&mut *Slot::actor(slot), ShardCell::new(shard), message)
        }
    }

    /// Delivers a timer of the actor, or a message to itself that takes no time. Returns false for any other event.
    ///
    /// # Safety
    /// As for [`Actors::deliver_message`]; the actor is live.
    #[inline(always)]
    unsafe fn deliver_timer(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        event: *mut StoredEvent<M>,
    ) -> bool {
        // SAFETY: shard, slot and event are valid, and references to them end before code of an actor is called; a timer has
        // a token.
        unsafe {
            if !(*event).label.is_timer() {
                return false;
            }
            let token = StoredEvent::token(event);
            if token >= Token::OWN {
                if let Some(message) = (*shard).take_own(token) {
                    self.deliver_own(shard, slot, message);
                    return true;
                }
                if !is_handle(token) {
                    return false;
                }
                let Some(token) = (*shard).handle_due(token) else {
                    // The timer was cancelled.
                    return true;
                };
                StoredEvent::set_token(event, token);
            }
            (*shard).counters.others += 1;
            (*shard).count_timer(StoredEvent::token(event).into());
            let timer = TimerDelivery::new(event);
            let actor = &mut *Slot::actor(slot);
            if Self::Form::due(actor, ShardCell::new(shard), timer) == Flow::Stop {
                self.end(shard, slot, Reason::Returned);
            }
            true
        }
    }

    /// Delivers a message of the actor to itself.
    ///
    /// # Safety
    /// As for [`Actors::deliver_message`]; the actor is live.
    #[inline(always)]
    unsafe fn deliver_own(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        message: ScheduledEvent<M>,
    ) {
        // SAFETY: shard and slot are valid, and references to them end before code of an actor is called. The event has
        // a body and is stored outside the shard's other fields.
        unsafe {
            let event = (*shard).arrive(message);
            (*shard).counters.note_time((*shard).turn.now);
            if self.deliver_message(shard, slot, event, true) == Flow::Stop {
                self.end(shard, slot, Reason::Returned);
            }
        }
    }

    /// Delivers an event other than a message to an actor that is alive or begins with it.
    ///
    /// # Safety
    /// As for [`Actors::deliver`]; time and event of the shard's turn are set.
    #[inline(never)]
    unsafe fn deliver_other(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        event: *mut StoredEvent<M>,
    ) {
        // SAFETY: shard, slot and event are valid, and references to them end before code of an actor or of a message type
        // is called.
        unsafe {
            if (*slot).header.state == State::Live && self.deliver_timer(shard, slot, event) {
                return;
            }
            match self.prepare(shard, slot, event) {
                Ready::Yes => {}
                Ready::No => return,
                Ready::Ends(reason) => return self.end(shard, slot, reason),
            }
            let actor = &mut *Slot::actor(slot);
            if Self::Form::handle(actor, ShardCell::new(shard)) == Flow::Stop {
                self.end(shard, slot, Reason::Returned);
            }
        }
    }

    /// Prepares the delivery of an event other than a message.
    ///
    /// # Safety
    /// As for [`Actors::deliver_other`].
    #[inline(always)]
    unsafe fn prepare(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        event: *mut StoredEvent<M>,
    ) -> Ready {
        // SAFETY: shard, slot and event are valid. No reference outlives its expression, and every path moves the event
        // out once.
        unsafe {
            let state = (*slot).header.state;
            let kind = (*event).label.kind();
            if kind == Kind::Timer && (*shard).is_cancelled(StoredEvent::token(event)) {
                return Ready::No;
            }
            if state != State::Live && !self.is_to_begin(shard, slot) {
                let event = StoredEvent::read(event, (*shard).turn.now);
                let kind = event.message_kind();
                drop((*shard).undeliverable(event, kind));
                return Ready::No;
            }
            (*shard).counters.others += 1;
            if (*shard).settings.attentive {
                (*shard).attend_other();
            }
            if kind == Kind::Stop {
                return Ready::Ends(Reason::Stopped);
            }
            (*shard).turn.arrival = if kind == Kind::Start {
                std::ptr::null_mut()
            } else {
                event
            };
            if kind == Kind::Timer {
                (*shard).count_timer(StoredEvent::token(event).into());
            } else if kind.is_message() {
                (*shard).counters.note_time((*shard).turn.now);
                count_message(shard, event);
            }
            if state == State::Fresh {
                self.begin(shard, slot);
            }
        }
        Ready::Yes
    }

    /// True if the actor being run exists, has not begun, and begins with the current event.
    ///
    /// # Safety
    /// As for [`Actors::deliver`].
    #[inline(always)]
    unsafe fn is_to_begin(&self, shard: *mut Shard<M>, slot: *mut Slot<M, Self::Form>) -> bool {
        // SAFETY: shard and slot are valid, and `birth_time` is called only for a slot that is `Fresh`.
        unsafe {
            (*slot).header.state == State::Fresh && (*shard).turn.now >= self.birth_time(slot)
        }
    }

    /// Creates the actor being run, and starts it.
    ///
    /// # Safety
    /// As for [`Actors::deliver`]; the actor has not begun, and `arrived` is its first event.
    #[inline(always)]
    unsafe fn begin(&self, shard: *mut Shard<M>, slot: *mut Slot<M, Self::Form>) {
        // SAFETY: shard and slot are valid and the actor has not begun. No reference to the shard is held while the
        // actor is created and begins.
        unsafe {
            self.make(shard, slot, (*shard).turn.me);
            (*shard).counters.begun += 1;
            Self::Form::begin(&mut *Slot::actor(slot), ShardCell::new(shard));
        }
    }

    /// Ends the actor being run.
    ///
    /// # Safety
    /// As for [`Actors::deliver`].
    #[cold]
    #[inline(never)]
    unsafe fn end(&self, shard: *mut Shard<M>, slot: *mut Slot<M, Self::Form>, reason: Reason) {
        // SAFETY: shard and slot are valid, and no reference to the shard is held while foreign code runs. The state is
        // `Ended` before
        // the body is dropped, so that it is dropped once, even if its drop panics.
        unsafe {
            if (*slot).header.state == State::Ended {
                // The actor panicked while its body was being dropped.
                return drop_stashed(shard);
            }
            let begun = (*slot).header.state == State::Live;
            (*slot).header.end(reason);
            (*shard).notable = true;
            let counters = &mut (*shard).counters;
            counters.ended += 1;
            counters.never += u64::from(!begun);
            let (me, now) = ((*shard).turn.me, (*shard).turn.now);
            if me == ROOT {
                let end = now.saturating_add((*shard).min_latency());
                (*shard).counters.root_end = end.min(u64::MAX - 1);
                (*shard).counters.root_ended = Some(now);
            }
            if !(*shard).turn.timers.is_empty() {
                (*shard).turn.timers.clear();
            }
            let lineage = (*shard).places.ended(me);
            // Panics are reported to parents even without `watched`.
            let is_notified = |lineage: &Lineage| lineage.watched || reason == Reason::Panicked;
            if let Some(lineage) = lineage.filter(is_notified) {
                (*shard).notify(
                    Kind::Down,
                    lineage.parent,
                    Header::reason_number(reason) as u64,
                );
            }
            drop((*shard).forget());
            if begun {
                Slot::actor(slot).drop_in_place();
            } else {
                self.unmake(slot);
            }
            if (*shard).has_stashed() {
                drop_stashed(shard);
            }
        }
    }

    /// Runs the timers that the actor has set within the window and that are due before its next event at
    /// this time.
    ///
    /// # Safety
    /// As for [`Population::run`]; the actor being run is the one in `slot`.
    #[inline(never)]
    unsafe fn run_window_timers(
        &self,
        shard: *mut Shard<M>,
        slot: *mut Slot<M, Self::Form>,
        until: u64,
    ) {
        // SAFETY: shard and slot are valid, and references to them end before code of an actor runs. The event is
        // stored in the shard, so it remains valid even if the actor panics.
        unsafe {
            let timers = &raw mut (*shard).turn.timers;
            while let Some(timer) = (*timers).pop_before(until) {
                if timer.time > (*shard).window.limit {
                    let event = (*shard).timer_event(&timer);
                    let head = StoredEvent::head(event, timer.time);
                    (*shard).defer(timer.time, &head);
                    continue;
                }
                if timer.time >= (*shard).window.pause {
                    (*shard).put_off(timer);
                    continue;
                }
                let caused = (*timers).count((*shard).turn.me, &timer);
                if caused > 0 && !(*shard).may_continue(caused) {
                    (*timers).clear();
                    return;
                }
                (*shard).turn.now = timer.time;
                if let Some(message) = (*shard).take_own(timer.token) {
                    self.deliver_own(shard, slot, message);
                    continue;
                }
                let event = (*shard).timer_event(&timer);
                (*shard).turn.current = event;
                self.deliver_other(shard, slot, event);
            }
        }
    }
}

impl<M: Message, R: Actors<M>> Population<M, Shard<M>> for R {
    unsafe fn run(
        &self,
        shard: *mut Shard<M>,
        order: &[*mut StoredEvent<M>],
        mut at: usize,
    ) -> usize {
        while let Some(&first) = order.get(at) {
            // SAFETY: the events of `order` are valid, and their receivers belong to this shard. The caller guarantees
            // that the shard is valid and not borrowed.
            unsafe {
                let actor = (*first).label.to;
                let Some(slot) = self.slot(shard, actor) else {
                    break;
                };
                (*shard).turn.me = actor;
                (*shard).turn.header = &raw mut (*slot).header;
                // Delivers all consecutive events of this actor.
                loop {
                    // In the order of addresses, the processor prefetches by itself.
                    if (*shard).window.scattered
                        && let Some(&ahead) = order.get(at + AHEAD)
                        && (*ahead).label.to != actor
                    {
                        self.prefetch(shard, (*ahead).label.to);
                    }
                    at = self.deliver(shard, slot, order, at);
                    let next = order.get(at).copied();
                    let next = next.filter(|&next| (*next).label.to == actor);
                    let due = (*shard).turn.timers.next();
                    if due != u64::MAX {
                        let offset = |next: *mut StoredEvent<M>| (*next).label.offset() as u64;
                        let until = next.map(|next| (*shard).window.base + offset(next));
                        let until = until.unwrap_or(u64::MAX);
                        if due < until {
                            self.run_window_timers(shard, slot, until);
                        }
                    }
                    if next.is_none() {
                        break;
                    }
                }
            }
        }
        at
    }

    unsafe fn run_one(&self, shard: *mut Shard<M>, slot: *mut Header, event: *mut StoredEvent<M>) {
        // SAFETY: the event is for an actor of this population, and a non-null slot belongs to that actor. A slot
        // begins with its header.
        unsafe {
            let slot = match slot.is_null() {
                false => slot.cast(),
                true => self
                    .slot(shard, (*event).label.to)
                    .expect("the population has the actor"),
            };
            self.run_single(shard, slot, event);
        }
    }

    unsafe fn populate_ahead(&self) -> Prefault {
        // SAFETY: the caller is on the shard's thread, and no actor runs.
        unsafe { self.populate() }
    }

    unsafe fn discard(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the shard is valid, and no reference to it is held while the actor is dropped.
        unsafe {
            if let Some(slot) = self.slot(shard, actor) {
                self.end(shard, slot, Reason::Panicked);
            }
        }
    }

    unsafe fn header(&self, shard: *mut Shard<M>, actor: u32) -> *mut Header {
        // SAFETY: the shard is valid and no reference to it is held.
        let slot = unsafe { self.slot(shard, actor) };
        // SAFETY: the slot is valid, and its header is always initialised.
        slot.map_or(std::ptr::null_mut(), |slot| unsafe {
            &raw mut (*slot).header
        })
    }

    unsafe fn ask(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the shard is valid, the actor is live, and no reference to the shard is held while the actor is
        // polled.
        unsafe {
            let Some(slot) = self.slot(shard, actor) else {
                return;
            };
            (*shard).turn.me = actor;
            (*shard).turn.header = &raw mut (*slot).header;
            (*shard).turn.arrival = std::ptr::null_mut();
            R::Form::ask(&mut *Slot::actor(slot), ShardCell::new(shard));
        }
    }

    unsafe fn finish(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the shard is valid and no reference to it is held while the actor finishes.
        unsafe {
            let Some(slot) = self.slot(shard, actor) else {
                return;
            };
            if (*slot).header.state == State::Live {
                (*shard).turn.me = actor;
                (*shard).turn.header = &raw mut (*slot).header;
                R::Form::finish(&mut *Slot::actor(slot), ShardCell::new(shard));
            }
        }
    }

    unsafe fn look(&self, shard: *mut Shard<M>, actor: u32) -> Option<ActorView> {
        // SAFETY: the shard is valid and no reference to it is held; the header of a slot is always initialised.
        unsafe {
            let slot = self.slot(shard, actor)?;
            Some(ActorView {
                state: (*slot).header.state,
                kind: TypeId::of::<<R::Form as Form<M>>::Actor>(),
                type_name: type_name::<<R::Form as Form<M>>::Actor>(),
                place: Slot::actor(slot).cast(),
                sent: (*slot).header.seq,
                #[cfg(feature = "serde")]
                value: <R::Form as Form<M>>::state,
            })
        }
    }

    unsafe fn clear(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the shard is valid and no reference to it is held while actors are dropped.
        unsafe { self.clear_all(shard, actor) }
    }

    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str> {
        <R::Form as Form<M>>::KIND
    }

    #[cfg(feature = "serde")]
    unsafe fn origin(
        &self,
        shard: *mut Shard<M>,
        actor: u32,
        to: &mut Vec<u8>,
    ) -> Result<u64, CodecError> {
        // SAFETY: the shard is valid, and the actor has not begun, so its slot has a form and a time of birth.
        unsafe {
            let slot = self.slot(shard, actor).ok_or(CodecError::NoKind)?;
            self.form(slot).parameters(to)?;
            Ok(self.birth_time(slot))
        }
    }

    #[cfg(feature = "serde")]
    unsafe fn save(
        &self,
        shard: *mut Shard<M>,
        actor: u32,
        to: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        // SAFETY: the shard is valid, and the actor is live, so its slot contains its state.
        unsafe {
            let slot = self.slot(shard, actor).ok_or(CodecError::NoKind)?;
            R::Form::save(&*Slot::actor(slot), to)
        }
    }

    #[cfg(feature = "serde")]
    unsafe fn load(
        &self,
        shard: *mut Shard<M>,
        actor: u32,
        from: &mut &[u8],
    ) -> Result<(), CodecError> {
        // SAFETY: the shard is valid, and the actor has not begun. Its origin is dropped before the state replaces it.
        unsafe {
            let slot = self.slot(shard, actor).ok_or(CodecError::NoKind)?;
            let read = self.form(slot).load(from)?;
            self.unmake(slot);
            Slot::begin(slot, read);
        }
        Ok(())
    }

    #[cfg(feature = "serde")]
    unsafe fn end_unborn(&self, shard: *mut Shard<M>, actor: u32, reason: Reason) {
        // SAFETY: the shard is valid, and the actor has not begun. Its origin is dropped only once, because the state
        // is `Ended` afterwards.
        unsafe {
            if let Some(slot) = self.slot(shard, actor) {
                (*slot).header.end(reason);
                self.unmake(slot);
            }
        }
    }
}

/// Turns the stashed events of an ended actor into dead letters.
///
/// # Safety
/// The shard is valid and no reference to it is held; the actor being run has ended.
#[cold]
#[inline(never)]
unsafe fn drop_stashed<M: Message>(shard: *mut Shard<M>) {
    // SAFETY: the shard is valid, and references to it end before an event is dropped.
    unsafe {
        while let Some(event) = (*shard).take_stashed() {
            let kind = event.message_kind();
            drop((*shard).undeliverable(event, kind));
        }
        while let Some(event) = (*shard).take_any_own() {
            let kind = event.message_kind();
            drop((*shard).undeliverable(event, kind));
        }
    }
}
