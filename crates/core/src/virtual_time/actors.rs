//! The actors of one form on one shard.
//!
//! The engine passes a series of events to a population. The loop over them is compiled for the type of the
//! population's actors, so a handler is inlined into the loop, and an event costs no indirect call
//! ([`current_actor`]).
//!
//! Actors of a large spawn have their own pages and are adjacent in memory ([`own_pages`]); the actors of small spawns
//! share pages ([`shared_pages`]).

mod current_actor;
mod own_pages;
mod shared_pages;

pub(super) use current_actor::count_message;

use super::form::Form;
use super::header::{HeaderCell, State};
use super::population::{ActorView, Population};
use super::region::Prefault;
use super::shard::{Shard, ShardCell};
use super::slot::{Origin, SlotPtr};
use super::stored_event::EventPtr;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use crate::contract::Message;
#[cfg(feature = "serde")]
use crate::contract::Reason;
use current_actor::CurrentActor;
use std::any::{Any, type_name};
use std::sync::Arc;

/// The number of events by which slots are prefetched into the cache.
const AHEAD: usize = 10;

/// Actors of one form, wherever they are stored. The shard outlives them.
trait Actors<M: Message> {
    /// The form of the actors.
    type Form: Form<M>;

    /// Returns the shard of the actors. No reference to it is held while a method is called, except for reading with
    /// the methods that only read.
    fn shard(&self) -> ShardCell<M>;

    /// True if the actor belongs to this population, and is on this shard.
    fn has(&self, actor: u32) -> bool;

    /// Returns the slot of an actor, if the actor belongs to this population. Only reads.
    ///
    /// # Safety
    /// The actor is on this shard, unless only the address of the slot is used.
    unsafe fn slot(&self, actor: u32) -> Option<SlotPtr<M, Self::Form>>;

    /// Returns the index of an actor among those that were spawned with it. Only reads.
    fn index(&self, actor: u32) -> u32;

    /// Returns the form that makes an actor that has not begun, and the actor's start time. Only reads.
    ///
    /// # Safety
    /// The slot belongs to an actor of this population whose state is [`State::Fresh`], and it does not change while the
    /// reference is used.
    unsafe fn origin(&self, slot: SlotPtr<M, Self::Form>) -> (&Arc<Self::Form>, u64);

    /// Takes the parameters out of a slot, if they are stored there.
    ///
    /// # Safety
    /// The slot belongs to an actor of this population that has not begun. This is called once for the slot, and the
    /// state is changed before anything else is called for it.
    unsafe fn take_origin(slot: SlotPtr<M, Self::Form>) -> Option<Origin<Self::Form>>;

    /// Pre-faults memory; see [`Population::populate_ahead`].
    fn populate(&self) -> Prefault {
        Prefault::Done
    }

    /// Drops the actors that were spawned together with this actor. See [`Population::clear`].
    ///
    /// # Safety
    /// See [`Population::clear`].
    unsafe fn clear_all(&self, actor: u32);

    /// Prefetches an actor's slot into the cache, if the actor belongs to this population.
    #[inline(always)]
    fn prefetch(&self, actor: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: only the address of the slot is used; a prefetch reads nothing.
            unsafe {
                if let Some(slot) = self.slot(actor) {
                    let line = slot.as_ptr().cast::<i8>();
                    // Prefetches the complete slot of an actor of ordinary size.
                    let size = size_of::<super::slot::Slot<M, Self::Form>>();
                    for at in (0..size).step_by(64).take(4) {
                        _mm_prefetch(line.wrapping_add(at), _MM_HINT_T0);
                    }
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = actor;
    }
}

impl<M: Message, R: Actors<M>> Population<M> for R {
    unsafe fn run(&self, order: &[EventPtr<M>], mut at: usize) -> usize {
        let shard = self.shard();
        while let Some(&first) = order.get(at) {
            let actor = first.label().to;
            // SAFETY: the receivers of the events belong to this shard, so the slot of an actor of this population exists.
            let current =
                match unsafe { self.slot(actor).map(|slot| CurrentActor::new(self, slot)) } {
                    Some(current) => current,
                    None => break,
                };
            shard.with(|shard| {
                shard.turn.me = actor;
                shard.turn.header = current.slot().header();
            });
            // Delivers all consecutive events of this actor.
            loop {
                // In the order of addresses, the processor prefetches by itself.
                if shard.with(|shard| shard.window.scattered)
                    && let Some(ahead) = order.get(at + AHEAD)
                    && ahead.label().to != actor
                {
                    self.prefetch(ahead.label().to);
                }
                // SAFETY: the event at `at` is for this actor, and the events from it on have not been moved out.
                at = unsafe { current.deliver(order, at) };
                let next = match order.get(at) {
                    Some(next) if next.label().to == actor => Some(*next),
                    _ => None,
                };
                let due = shard.with(|shard| shard.turn.timers.next());
                if due != u64::MAX {
                    let base = shard.with(|shard| shard.window.base);
                    let until = next.map(|next| base + next.label().offset() as u64);
                    let until = until.unwrap_or(u64::MAX);
                    if due < until {
                        current.run_window_timers(until);
                    }
                }
                if next.is_none() {
                    break;
                }
            }
        }
        at
    }

    unsafe fn run_one(&self, header: Option<HeaderCell>, event: EventPtr<M>) {
        // SAFETY: the receiver of the event belongs to this population and this shard. A slot begins with its header.
        // The event has not been moved out.
        unsafe {
            let slot = match header {
                Some(header) => SlotPtr::new(header.as_ptr().cast()),
                None => {
                    let slot = self.slot(event.label().to);
                    slot.expect("the population has the actor")
                }
            };
            CurrentActor::new(self, slot).run_one(event);
        }
    }

    fn populate_ahead(&self) -> Prefault {
        self.populate()
    }

    fn discard(&self, actor: u32) {
        if let Some(current) = CurrentActor::find(self, actor) {
            current.end_by_panic();
        }
    }

    fn header(&self, actor: u32) -> Option<HeaderCell> {
        CurrentActor::find(self, actor).map(|current| current.slot().header())
    }

    fn ask(&self, actor: u32) {
        if let Some(current) = CurrentActor::find(self, actor) {
            current.act_if_live(actor, |actor, shard| {
                shard.with(|shard| shard.turn.arrival = None);
                R::Form::ask(actor, shard);
            });
        }
    }

    fn finish(&self, actor: u32) {
        if let Some(current) = CurrentActor::find(self, actor) {
            current.act_if_live(actor, R::Form::finish);
        }
    }

    unsafe fn look(&self, actor: u32) -> Option<ActorView<'_>> {
        let current = CurrentActor::find(self, actor)?;
        let slot = current.slot();
        let state = slot.state();
        // SAFETY: the actor is live, so its slot contains it. No actor runs or ends while the view exists.
        let live = (state == State::Live).then(|| unsafe { &*slot.actor() });
        Some(ActorView {
            state,
            actor: live.map(|actor| actor as &dyn Any),
            type_name: type_name::<<R::Form as Form<M>>::Actor>(),
            sent: slot.header().read(|header| header.seq),
            #[cfg(feature = "serde")]
            value: |actor| actor.downcast_ref().and_then(<R::Form as Form<M>>::state),
        })
    }

    unsafe fn clear(&self, actor: u32) {
        // SAFETY: nothing uses these actors and their headers afterwards.
        unsafe { self.clear_all(actor) }
    }

    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str> {
        <R::Form as Form<M>>::KIND
    }

    #[cfg(feature = "serde")]
    fn origin(&self, actor: u32, to: &mut Vec<u8>) -> Result<u64, CodecError> {
        let current = CurrentActor::find(self, actor).ok_or(CodecError::NoKind)?;
        let (form, birth_time) = current.origin().ok_or(CodecError::NoKind)?;
        form.parameters(to)?;
        Ok(birth_time)
    }

    #[cfg(feature = "serde")]
    fn save(&self, actor: u32, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let current = CurrentActor::find(self, actor).ok_or(CodecError::NoKind)?;
        let saved = current.read_if_live(|actor| R::Form::save(actor, to));
        saved.unwrap_or(Err(CodecError::NoKind))
    }

    #[cfg(feature = "serde")]
    fn load(&self, actor: u32, from: &mut &[u8]) -> Result<(), CodecError> {
        let current = CurrentActor::find(self, actor).ok_or(CodecError::NoKind)?;
        let (form, _) = current.origin().ok_or(CodecError::NoKind)?;
        current.begin_as(form.load(from)?);
        Ok(())
    }

    #[cfg(feature = "serde")]
    fn end_unborn(&self, actor: u32, reason: Reason) {
        if let Some(current) = CurrentActor::find(self, actor) {
            current.end_unborn(reason);
        }
    }
}

/// Turns the stashed events of an ended actor, which is the one being run, into dead letters.
#[cold]
#[inline(never)]
fn drop_stashed<M: Message>(shard: ShardCell<M>) {
    while let Some(event) = shard.with(Shard::take_stashed) {
        let kind = event.message_kind();
        drop(shard.with(|shard| shard.undeliverable(event, kind)));
    }
    while let Some(event) = shard.with(Shard::take_any_own) {
        let kind = event.message_kind();
        drop(shard.with(|shard| shard.undeliverable(event, kind)));
    }
}
