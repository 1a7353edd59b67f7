//! A population with its own pages: its actors are adjacent in memory, and each begins at a cache line, so
//! that actors share no lines and all data of an actor can be prefetched.

use super::Actors;
use super::shared_pages::{self, SharedPages};
use crate::contract::Message;
use crate::virtual_time::addresses::{PAGE, PAGE_BITS};
use crate::virtual_time::form::Form;
use crate::virtual_time::population::{Blueprint, Pages, Population};
use crate::virtual_time::region::{Prefault, Region};
use crate::virtual_time::shard::{Shard, ShardCell};
use crate::virtual_time::slot::{Origin, Slot, SlotPtr};
#[cfg(feature = "serde")]
use crate::virtual_time::travel::CodecError;
use std::alloc::Layout;
use std::any::TypeId;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

impl<M: Message, F: Form<M>> Blueprint<M, Shard<M>> for F {
    fn build(self: Arc<Self>, pages: &Pages, shard: ShardCell<M>) -> Box<dyn Population<M>> {
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
            shard,
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

    fn shared_population(&self, number: u32, shard: ShardCell<M>) -> Box<dyn Population<M>> {
        Box::new(SharedPages::<M, F>::new(number, shard))
    }

    fn settle(self: Arc<Self>, count: usize, birth_time: u64) -> NonNull<u8> {
        shared_pages::settle::<M, F>(&self, count, birth_time)
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
    shard: ShardCell<M>,
    first: u32,
    count: u32,
    birth_time: u64,
    /// The first slot of each page; null if the page belongs to another shard.
    starts: Vec<*mut u8>,
    /// The memory of the slots, which is zero at first: headers of actors that have not begun.
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
    fn shard(&self) -> ShardCell<M> {
        self.shard
    }

    fn has(&self, actor: u32) -> bool {
        let index = actor.wrapping_sub(self.first);
        index < self.count && !self.starts[(index >> PAGE_BITS) as usize].is_null()
    }

    #[inline(always)]
    unsafe fn slot(&self, actor: u32) -> Option<SlotPtr<M, F>> {
        let index = actor.wrapping_sub(self.first);
        if index >= self.count {
            return None;
        }
        // SAFETY: the index is below `count`, so the actor has a page. If this shard owns the page, as the caller
        // guarantees unless only the address is used, `start` points to slots for all actors of the page.
        unsafe {
            let start = *self.starts.get_unchecked((index >> PAGE_BITS) as usize);
            let slot = start.wrapping_add((index % PAGE) as usize * Self::STRIDE);
            Some(SlotPtr::new(slot.cast()))
        }
    }

    #[inline(always)]
    fn index(&self, actor: u32) -> u32 {
        actor - self.first
    }

    #[inline(always)]
    unsafe fn origin(&self, _: SlotPtr<M, F>) -> (&Arc<F>, u64) {
        (&self.form, self.birth_time)
    }

    #[inline(always)]
    unsafe fn take_origin(_: SlotPtr<M, F>) -> Option<Origin<F>> {
        None
    }

    fn populate(&self) -> Prefault {
        self.region.populate_ahead()
    }

    unsafe fn clear_all(&self, _: u32) {
        if !std::mem::needs_drop::<F::Actor>() {
            return;
        }
        for (page, start) in (0..).zip(&self.starts) {
            if start.is_null() {
                continue;
            }
            for index in page * PAGE..self.count.min((page + 1) * PAGE) {
                let slot = start.wrapping_add((index % PAGE) as usize * Self::STRIDE);
                // SAFETY: this shard owns the page, so `start` points to slots for all of its actors.
                let slot = unsafe { SlotPtr::new(slot.cast::<Slot<M, F>>()) };
                slot.clear(self.shard, self.first + index);
            }
        }
    }
}
