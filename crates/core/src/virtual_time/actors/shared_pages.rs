//! Actors of small spawns, which share pages.
//!
//! All actors of one type form one population. Actors that were spawned together are adjacent in a piece of memory that
//! is freed when the last of them has ended. An actor's parameters are stored in its slot until it begins.

use super::Actors;
use crate::contract::{Message, Reason};
use crate::virtual_time::form::Form;
use crate::virtual_time::header::State;
use crate::virtual_time::shard::{Shard, ShardCell};
use crate::virtual_time::slot::{Origin, Slot, SlotPtr};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// The actors of one type that share pages.
pub(super) struct SharedPages<M, F> {
    /// The number of the population on its shard.
    number: u32,
    shard: ShardCell<M>,
    _form: PhantomData<fn(M, F)>,
}

impl<M, F: Form<M>> SharedPages<M, F> {
    pub(super) fn new(number: u32, shard: ShardCell<M>) -> SharedPages<M, F> {
        SharedPages {
            number,
            shard,
            _form: PhantomData,
        }
    }
}

/// Returns the layout of `count` actors that were spawned together.
fn layout<M, F: Form<M>>(count: usize) -> Layout {
    Layout::array::<Slot<M, F>>(count).expect("half a page of actors fits into memory")
}

/// Allocates the slots of `count` actors that are spawned together.
pub(super) fn settle<M, F: Form<M>>(form: &Arc<F>, count: usize, birth_time: u64) -> NonNull<u8> {
    let layout = layout::<M, F>(count);
    // SAFETY: a slot has a header, so the layout's size is not zero. A header of zeroes means an actor that has not
    // begun, and each such slot gets its origin.
    unsafe {
        let Some(start) = NonNull::new(alloc_zeroed(layout)) else {
            handle_alloc_error(layout);
        };
        let slots = start.cast::<Slot<M, F>>().as_ptr();
        for index in 0..count {
            let form = Arc::clone(form);
            let slot = SlotPtr::new(slots.add(index));
            slot.origin().write(Origin { form, birth_time });
        }
        start
    }
}

impl<M: Message, F: Form<M>> Actors<M> for SharedPages<M, F> {
    type Form = F;

    #[inline(always)]
    fn shard(&self) -> ShardCell<M> {
        self.shard
    }

    /// The table of the shard knows only actors of the shard, and [`slot`](Self::slot) compares the population.
    fn has(&self, _: u32) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn slot(&self, actor: u32) -> Option<SlotPtr<M, F>> {
        let place = self.shard.read(|shard| shard.places.shared_slot(actor))?;
        if place.population != self.number {
            return None;
        }
        let slots = place.slots.cast::<Slot<M, F>>().as_ptr();
        // SAFETY: the population matches, so `settle` has made the slots for this form, and the index is below their
        // number.
        Some(unsafe { SlotPtr::new(slots.wrapping_add(place.index as usize)) })
    }

    fn index(&self, actor: u32) -> u32 {
        let place = self.shard.read(|shard| shard.places.shared_slot(actor));
        place.map_or(0, |place| place.index)
    }

    unsafe fn origin(&self, slot: SlotPtr<M, F>) -> (&Arc<F>, u64) {
        // SAFETY: the caller guarantees that the actor has not begun, so its slot holds an origin, which stays there
        // while the reference is used.
        let origin = unsafe { &*slot.origin() };
        (&origin.form, origin.birth_time)
    }

    unsafe fn take_origin(slot: SlotPtr<M, F>) -> Option<Origin<F>> {
        // SAFETY: the caller guarantees that the actor had not begun, so its slot holds an origin, which is moved out
        // once.
        Some(unsafe { slot.origin().read() })
    }

    unsafe fn clear_all(&self, actor: u32) {
        let place = self.shard.read(|shard| shard.places.shared_slot(actor));
        let Some(place) = place else {
            return;
        };
        let slots = place.slots.cast::<Slot<M, F>>().as_ptr();
        // SAFETY: the actors of this spawn are adjacent to this one, and nothing uses them any more. Their memory was
        // allocated with this layout. Each origin is taken once, because the state is changed before.
        unsafe {
            for index in 0..place.count {
                let slot = SlotPtr::new(slots.add(index));
                let actor = actor - place.index + index as u32;
                if slot.state() == State::Fresh {
                    slot.header().with(|header| header.end(Reason::Stopped));
                    Shard::at_end(self.shard, actor, || drop(Self::take_origin(slot)));
                } else {
                    slot.clear(self.shard, actor);
                }
            }
            dealloc(slots.cast(), layout::<M, F>(place.count));
        }
    }
}
