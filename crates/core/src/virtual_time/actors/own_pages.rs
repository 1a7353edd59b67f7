//! A population with its own pages: its actors are adjacent in memory, and each begins at a cache line, so
//! that actors share no lines and all data of an actor can be prefetched.

use super::Actors;
use super::shared_pages::SharedPages;
use crate::contract::Message;
use crate::virtual_time::addresses::{PAGE, PAGE_BITS};
use crate::virtual_time::form::{Form, Origin, Slot};
use crate::virtual_time::population::{Blueprint, Pages, Population};
use crate::virtual_time::region::{Prefault, Region};
use crate::virtual_time::shard::Shard;
use crate::virtual_time::shard::ShardCell;
#[cfg(feature = "serde")]
use crate::virtual_time::travel::CodecError;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::any::TypeId;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

impl<M: Message, F: Form<M>> Blueprint<M, Shard<M>> for F {
    fn build(self: Arc<Self>, pages: &Pages) -> Box<dyn Population<M, Shard<M>>> {
        let stride = OwnPages::<M, F>::STRIDE;
        let align = align_of::<Slot<M, F>>().max(64);
        let layout = Layout::from_size_align(stride, align).expect("a slot fits into memory");
        let slots = pages.own.iter().map(|&(_, slots)| slots as usize).sum();
        let region = Region::new(layout, slots);
        let mut starts = vec![std::ptr::null_mut(); pages.count.div_ceil(PAGE) as usize];
        let mut place = region.start();
        for &(page, slots) in &pages.own {
            starts[page as usize] = place;
            place = place.wrapping_add(slots as usize * stride);
        }
        Box::new(OwnPages {
            form: self,
            first: pages.first,
            count: pages.count,
            birth_time: pages.birth_time,
            starts,
            region,
            _message: PhantomData,
        })
    }

    fn kind(&self) -> TypeId {
        TypeId::of::<F>()
    }

    fn shared_population(&self, number: u32) -> Box<dyn Population<M, Shard<M>>> {
        Box::new(SharedPages::<M, F>::new(number))
    }

    fn settle(self: Arc<Self>, count: usize, birth_time: u64) -> NonNull<u8> {
        let layout = SharedPages::<M, F>::layout(count);
        // SAFETY: a slot has a header, so the layout's size is not zero. A header of zeroes means an actor that has not
        // begun, and each such slot gets its origin.
        unsafe {
            let Some(start) = NonNull::new(alloc_zeroed(layout)) else {
                handle_alloc_error(layout);
            };
            let slots = start.cast::<Slot<M, F>>().as_ptr();
            for index in 0..count {
                let form = Arc::clone(&self);
                Slot::origin(slots.add(index)).write(Origin { form, birth_time });
            }
            start
        }
    }

    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str> {
        F::KIND
    }

    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        Form::parameters(self, to)
    }
}

/// The population of a spawn with its own pages.
struct OwnPages<M, F> {
    form: Arc<F>,
    first: u32,
    count: u32,
    birth_time: u64,
    /// The first slot of each page; null if the page belongs to another shard.
    starts: Vec<*mut u8>,
    /// The memory of the slots.
    region: Region,
    _message: PhantomData<M>,
}

impl<M, F: Form<M>> OwnPages<M, F> {
    /// The bytes from one slot to the next.
    const STRIDE: usize = size_of::<Slot<M, F>>().next_multiple_of(64);
}

impl<M: Message, F: Form<M>> Actors<M> for OwnPages<M, F> {
    type Form = F;

    #[inline(always)]
    unsafe fn slot(&self, _: *mut Shard<M>, actor: u32) -> Option<*mut Slot<M, F>> {
        let index = actor.wrapping_sub(self.first);
        if index >= self.count {
            return None;
        }
        // SAFETY: the index is below `count`, so the actor has a page. The caller guarantees that this shard owns the
        // page, so `start` points to slots for all actors of the page.
        unsafe {
            let start = *self.starts.get_unchecked((index >> PAGE_BITS) as usize);
            Some(start.add((index % PAGE) as usize * Self::STRIDE).cast())
        }
    }

    unsafe fn birth_time(&self, _: *mut Slot<M, F>) -> u64 {
        self.birth_time
    }

    #[inline]
    unsafe fn make(&self, shard: *mut Shard<M>, slot: *mut Slot<M, F>, actor: u32) {
        // SAFETY: the caller's shard is valid and not borrowed. The slot belongs to this population and has no actor
        // yet.
        unsafe {
            let made = self.form.make(ShardCell::new(shard), actor - self.first);
            Slot::begin(slot, made);
        }
    }

    unsafe fn populate(&self) -> Prefault {
        // SAFETY: a slot begins with its header, which begins with a state that is zero until the actor begins. Only
        // this thread writes it, and no actor runs.
        unsafe { self.region.populate_ahead() }
    }

    unsafe fn unmake(&self, _: *mut Slot<M, F>) {}

    #[cfg(feature = "serde")]
    unsafe fn form(&self, _: *mut Slot<M, F>) -> Arc<F> {
        Arc::clone(&self.form)
    }

    unsafe fn clear_all(&self, shard: *mut Shard<M>, _: u32) {
        if !std::mem::needs_drop::<F::Actor>() {
            return;
        }
        for (page, start) in (0..).zip(&self.starts) {
            if start.is_null() {
                continue;
            }
            for index in page * PAGE..self.count.min((page + 1) * PAGE) {
                // SAFETY: this shard owns the page, so `start` points to slots for all of its actors. Nothing else uses
                // these slots any more.
                unsafe {
                    let slot = start.add((index % PAGE) as usize * Self::STRIDE);
                    Slot::clear(slot.cast::<Slot<M, F>>(), shard, self.first + index);
                }
            }
        }
    }
}
