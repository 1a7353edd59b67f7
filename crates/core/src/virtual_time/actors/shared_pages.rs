//! Actors of small spawns, which share pages.
//!
//! All actors of one type form one population. Actors that were spawned together are adjacent in a piece of memory that
//! is freed when the last of them has ended. An actor's parameters are stored in its slot until it begins.

use super::Actors;
use crate::contract::{Message, Reason};
use crate::virtual_time::form::{Form, Slot};
use crate::virtual_time::header::State;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::shard::ShardCell;
use std::alloc::{Layout, dealloc};
use std::marker::PhantomData;
#[cfg(feature = "serde")]
use std::sync::Arc;

/// The actors of one type that share pages.
pub(super) struct SharedPages<M, F> {
    /// The number of the population on this shard.
    number: u32,
    _form: PhantomData<fn(M, F)>,
}

impl<M, F: Form<M>> SharedPages<M, F> {
    pub(super) fn new(number: u32) -> SharedPages<M, F> {
        SharedPages {
            number,
            _form: PhantomData,
        }
    }

    /// Returns the layout of `count` actors that were spawned together.
    pub(super) fn layout(count: usize) -> Layout {
        Layout::array::<Slot<M, F>>(count).expect("half a page of actors fits into memory")
    }
}

impl<M: Message, F: Form<M>> Actors<M> for SharedPages<M, F> {
    type Form = F;

    #[inline(always)]
    unsafe fn slot(&self, shard: *mut Shard<M>, actor: u32) -> Option<*mut Slot<M, F>> {
        // SAFETY: the caller guarantees that the shard is not borrowed. If the population matches, the slots have this
        // type, and the index is below their number.
        unsafe {
            let place = (*shard).places.shared_slot(actor)?;
            let mine = place.population == self.number;
            let slots = place.slots.cast::<Slot<M, F>>().as_ptr();
            mine.then(|| slots.add(place.index as usize))
        }
    }

    unsafe fn birth_time(&self, slot: *mut Slot<M, F>) -> u64 {
        // SAFETY: the caller guarantees that the actor has not begun, so its slot holds an origin.
        unsafe { (*Slot::origin(slot)).birth_time }
    }

    unsafe fn make(&self, shard: *mut Shard<M>, slot: *mut Slot<M, F>, actor: u32) {
        // SAFETY: the actor is `Fresh`, so its slot holds an origin. The origin stays in place while the actor is
        // created, and is moved out before the actor's state replaces it.
        unsafe {
            let place = (*shard).places.shared_slot(actor);
            let index = place.map_or(0, |place| place.index);
            let origin = Slot::origin(slot);
            let made = (*origin).form.make(ShardCell::new(shard), index);
            let origin = origin.read();
            Slot::begin(slot, made);
            drop(origin);
        }
    }

    #[cfg(feature = "serde")]
    unsafe fn form(&self, slot: *mut Slot<M, F>) -> Arc<F> {
        // SAFETY: the actor is `Fresh`, so its slot holds an origin.
        unsafe { Arc::clone(&(*Slot::origin(slot)).form) }
    }

    unsafe fn unmake(&self, slot: *mut Slot<M, F>) {
        // SAFETY: the slot still holds its origin, which is dropped only once, because the state is now `Ended`.
        unsafe { Slot::origin(slot).drop_in_place() }
    }

    unsafe fn clear_all(&self, shard: *mut Shard<M>, actor: u32) {
        // SAFETY: the actors of this spawn are adjacent to this one, and nothing uses them any more. Their memory was
        // allocated with this layout.
        unsafe {
            let Some(place) = (*shard).places.shared_slot(actor) else {
                return;
            };
            let slots = place.slots.cast::<Slot<M, F>>().as_ptr();
            for index in 0..place.count {
                let slot = slots.add(index);
                let actor = actor - place.index + index as u32;
                if (*slot).header.state == State::Fresh {
                    (*slot).header.end(Reason::Stopped);
                    Shard::at_end(ShardCell::new(shard), actor, || self.unmake(slot));
                } else {
                    Slot::clear(slot, shard, actor);
                }
            }
            dealloc(slots.cast(), Self::layout(place.count));
        }
    }
}
