//! The form of an actor, and its slot in memory.

use super::delivery::{MessageDelivery, TimerDelivery};
use super::header::{Header, State};
use super::shard::Shard;
use super::shard::ShardCell;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use crate::contract::{Flow, Message, Reason};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The operations of an actor's type.
pub(super) trait Form<M>: Send + Sync + 'static {
    /// The type in the slot.
    type Actor: 'static;

    /// True if an actor may take further messages of the same instant itself while it handles one. This is faster for
    /// bodies, because resuming a body costs more than handling a message.
    const TAKES_ROWS: bool = false;

    /// Creates the actor with this index.
    fn make(&self, shard: ShardCell<M>, index: u32) -> Self::Actor;

    /// Runs the actor's work before its first event. For this function and the functions below, the actor is in its
    /// slot.
    fn begin(actor: &mut Self::Actor, shard: ShardCell<M>);

    /// Lets the actor handle the current event. If there is no event, the actor has just begun.
    fn handle(actor: &mut Self::Actor, shard: ShardCell<M>) -> Flow;

    /// Lets a started actor handle a message.
    #[inline(always)]
    fn receive(actor: &mut Self::Actor, shard: ShardCell<M>, message: MessageDelivery<M>) -> Flow
    where
        M: Message,
    {
        shard.with(|shard| shard.turn.arrival = message.into_ptr());
        Self::handle(actor, shard)
    }

    /// Lets a started actor handle one of its timers.
    #[inline(always)]
    fn due(actor: &mut Self::Actor, shard: ShardCell<M>, timer: TimerDelivery<M>) -> Flow
    where
        M: Message,
    {
        shard.with(|shard| shard.turn.arrival = timer.into_ptr());
        Self::handle(actor, shard)
    }

    /// The name of the kind of the form's actors, if there is one.
    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = None;

    /// Writes the parameters from which actors of this spawn are created later.
    #[cfg(feature = "serde")]
    fn parameters(&self, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Writes an actor.
    #[cfg(feature = "serde")]
    fn save(_: &Self::Actor, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Reads an actor that [`Form::save`] has written.
    #[cfg(feature = "serde")]
    fn load(&self, _: &mut &[u8]) -> Result<Self::Actor, CodecError> {
        Err(CodecError::NoKind)
    }

    /// Returns the actor's state as a JSON value, if it implements [`Actor::state`](crate::Actor::state).
    ///
    /// # Safety
    /// `actor` points to an actor of this form, which nothing changes during the call.
    #[cfg(feature = "serde")]
    unsafe fn state(actor: *const ()) -> Option<serde_json::Value>;

    /// Calls the actor's `finish` at the end of the run.
    fn finish(actor: &mut Self::Actor, shard: ShardCell<M>);

    /// Makes the actor record the reason of its wait in the shard's `waiting`.
    fn ask(actor: &mut Self::Actor, shard: ShardCell<M>);
}

/// An actor in memory.
#[repr(C)]
pub(super) struct Slot<M, F: Form<M>> {
    pub(super) header: Header,
    pub(super) content: Content<M, F>,
}

/// The content after the header.
#[repr(C)]
pub(super) union Content<M, F: Form<M>> {
    /// Initialised if and only if the header's state is [`State::Live`].
    pub(super) actor: ManuallyDrop<F::Actor>,
    /// Initialised if and only if the state is [`State::Fresh`] and the actor shares a page.
    pub(super) origin: ManuallyDrop<Origin<F>>,
    _message: ManuallyDrop<PhantomData<M>>,
}

/// The parameters of an actor that has not begun, and the time from which it exists.
pub(super) struct Origin<F> {
    pub(super) form: Arc<F>,
    pub(super) birth_time: u64,
}

impl<M, F: Form<M>> Slot<M, F> {
    /// Returns a pointer to the actor.
    ///
    /// # Safety
    /// The slot is valid.
    #[inline(always)]
    pub(super) unsafe fn actor(slot: *mut Self) -> *mut F::Actor {
        // SAFETY: the slot is valid, so the address is within it. `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*slot).content.actor).cast() }
    }

    /// Returns the parameters of an actor that shares a page.
    ///
    /// # Safety
    /// The slot is valid.
    #[inline(always)]
    pub(super) unsafe fn origin(slot: *mut Self) -> *mut Origin<F> {
        // SAFETY: the slot is valid, so the address is within it. `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*slot).content.origin).cast() }
    }

    /// Writes an actor into its slot.
    ///
    /// # Safety
    /// The slot is valid, and has no content to drop.
    #[inline(always)]
    pub(super) unsafe fn begin(slot: *mut Self, actor: F::Actor) {
        // SAFETY: the slot is valid and has no content to drop, so it can be overwritten.
        unsafe {
            Slot::actor(slot).write(actor);
            (*slot).header.state = State::Live;
        }
    }

    /// Drops the actor with this address, if it has begun and not ended. A panic of the destructor counts as a panic
    /// of the actor.
    ///
    /// # Safety
    /// The slot belongs to the actor, nothing else uses it, and no reference to the shard is held.
    pub(super) unsafe fn clear(slot: *mut Self, shard: *mut Shard<M>, actor: u32)
    where
        M: Message,
    {
        // SAFETY: the slot belongs to the actor, and no reference to the shard is held. The state is `Ended` before the
        // actor is dropped, so the actor is dropped once.
        unsafe {
            if (*slot).header.state == State::Live {
                (*slot).header.end(Reason::Stopped);
                (*shard).leave();
                (*shard).turn.header = &raw mut (*slot).header;
                let body = Slot::actor(slot);
                Shard::at_end(ShardCell::new(shard), actor, || body.drop_in_place());
            }
        }
    }
}
