//! The slot of an actor in memory.

use super::form::Form;
use super::header::{Header, HeaderCell, State};
use super::shard::{Shard, ShardCell};
use crate::contract::{Message, Reason};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

/// An actor in memory.
#[repr(C)]
pub(super) struct Slot<M, F: Form<M>> {
    header: Header,
    content: Content<M, F>,
}

/// The content after the header.
#[repr(C)]
union Content<M, F: Form<M>> {
    /// Initialised if and only if the header's state is [`State::Live`].
    actor: ManuallyDrop<F::Actor>,
    /// Initialised if and only if the state is [`State::Fresh`] and the actor shares a page.
    origin: ManuallyDrop<Origin<F>>,
    _message: ManuallyDrop<PhantomData<M>>,
}

/// The parameters of an actor that has not begun, and the time from which it exists.
pub(super) struct Origin<F> {
    pub(super) form: Arc<F>,
    pub(super) birth_time: u64,
}

/// The address of a slot.
///
/// # Invariant
/// The slot exists as long as a copy of the address is used, and only the shard's thread uses it. Its header is
/// initialised, and the header's state says what the content is. The content is accessed only by the actor's population.
pub(super) struct SlotPtr<M, F: Form<M>>(NonNull<Slot<M, F>>);

impl<M, F: Form<M>> Clone for SlotPtr<M, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M, F: Form<M>> Copy for SlotPtr<M, F> {}

impl<M, F: Form<M>> SlotPtr<M, F> {
    /// # Safety
    /// The invariant of the type holds.
    #[inline(always)]
    pub(super) unsafe fn new(slot: *mut Slot<M, F>) -> SlotPtr<M, F> {
        // SAFETY: a slot that exists has an address, which is not null.
        SlotPtr(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Returns the address.
    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut Slot<M, F> {
        self.0.as_ptr()
    }

    /// Returns the header of the actor.
    #[inline(always)]
    pub(super) fn header(self) -> HeaderCell {
        // SAFETY: by the invariant, the slot exists, its header is initialised, and one thread uses it. References to the
        // header are made only through its cell.
        unsafe { HeaderCell::new(&raw mut (*self.as_ptr()).header) }
    }

    #[inline(always)]
    pub(super) fn state(self) -> State {
        self.header().read(|header| header.state)
    }

    /// Returns a pointer to the actor, which is initialised if the state is [`State::Live`].
    #[inline(always)]
    pub(super) fn actor(self) -> *mut F::Actor {
        // SAFETY: by the invariant, the slot exists, so the address is within it. `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*self.as_ptr()).content.actor).cast() }
    }

    /// Returns a pointer to the parameters, which are initialised if the state is [`State::Fresh`] and the actor shares a
    /// page.
    #[inline(always)]
    pub(super) fn origin(self) -> *mut Origin<F> {
        // SAFETY: by the invariant, the slot exists, so the address is within it. `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*self.as_ptr()).content.origin).cast() }
    }

    /// Writes an actor into its slot.
    ///
    /// # Safety
    /// The slot has no content to drop.
    #[inline(always)]
    pub(super) unsafe fn begin(self, actor: F::Actor) {
        // SAFETY: by the invariant, the slot exists; it has no content to drop, so it can be overwritten.
        unsafe { self.actor().write(actor) };
        self.header().with(|header| header.state = State::Live);
    }

    /// Drops the actor with this address, if it has begun and not ended. A panic of the destructor counts as a panic
    /// of the actor. No code of the actor runs while it is dropped.
    pub(super) fn clear(self, shard: ShardCell<M>, actor: u32)
    where
        M: Message,
    {
        if self.state() != State::Live {
            return;
        }
        self.header().with(|header| header.end(Reason::Stopped));
        shard.with(|shard| {
            shard.leave();
            shard.turn.header = self.header();
        });
        // SAFETY: the actor was live, so the slot contains it. The state is `Ended` now, so the actor is dropped once.
        Shard::at_end(shard, actor, || unsafe { self.actor().drop_in_place() });
    }
}
