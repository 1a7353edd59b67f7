//! What an actor is made of: its form, and its place in memory.

use super::header::{Header, State};
use super::shard::Shard;
use super::stored::Stored;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use crate::contract::{Flow, Message, Reason};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// What an actor's type has to do with events.
pub(super) trait Form<M>: Send + Sync + 'static {
    /// What lies in a slot.
    type Actor: 'static;

    /// Makes the actor with this index.
    fn make(&self, shard: *mut Shard<M>, index: u32) -> Self::Actor;

    /// Does what it does before its first event.
    ///
    /// # Safety
    /// Called on the shard's thread, with a shard to which no reference is held; `actor` is
    /// pinned in its slot and not used otherwise. So for the other functions.
    unsafe fn begin(actor: *mut Self::Actor, shard: *mut Shard<M>);

    /// Lets it handle the event that has arrived, if one has; if not, it has just begun.
    ///
    /// # Safety
    /// As for [`Form::begin`].
    unsafe fn handle(actor: *mut Self::Actor, shard: *mut Shard<M>) -> Flow;

    /// Lets an actor that has begun handle a message.
    ///
    /// # Safety
    /// As for [`Form::begin`]; `message` has not been moved out, and is from here on.
    #[inline(always)]
    unsafe fn receive(
        actor: *mut Self::Actor,
        shard: *mut Shard<M>,
        message: *mut Stored<M>,
    ) -> Flow
    where
        M: Message,
    {
        // SAFETY: passed on.
        unsafe {
            (*shard).turn.arrived = message;
            Self::handle(actor, shard)
        }
    }

    /// Lets an actor that has begun handle a timer of its own.
    ///
    /// # Safety
    /// As for [`Form::begin`]; `timer` is a timer with a token of the actor's, and is there until this returns.
    #[inline(always)]
    unsafe fn due(actor: *mut Self::Actor, shard: *mut Shard<M>, timer: *mut Stored<M>) -> Flow
    where
        M: Message,
    {
        // SAFETY: passed on.
        unsafe {
            (*shard).turn.arrived = timer;
            Self::handle(actor, shard)
        }
    }

    /// The name of the kind of its actors, if they are of one.
    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = None;

    /// Writes what actors of this spawn that have not begun are made from.
    #[cfg(feature = "serde")]
    fn parameters(&self, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Writes an actor.
    ///
    /// # Safety
    /// `actor` is one of this form, and is not changed meanwhile.
    #[cfg(feature = "serde")]
    unsafe fn save(_: *const Self::Actor, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Reads what [`Form::save`] has written.
    #[cfg(feature = "serde")]
    fn load(&self, _: &mut &[u8]) -> Result<Self::Actor, CodecError> {
        Err(CodecError::NoKind)
    }

    /// Its state as a value, if it shows that.
    ///
    /// # Safety
    /// `actor` is one of this form, and is not used otherwise meanwhile.
    #[cfg(feature = "serde")]
    unsafe fn state(actor: *const ()) -> Option<serde_json::Value>;

    /// Lets it do what it does when the run is over.
    ///
    /// # Safety
    /// As for [`Form::begin`].
    unsafe fn finish(actor: *mut Self::Actor, shard: *mut Shard<M>);

    /// Lets it say in the shard's `waiting` what it waits for.
    ///
    /// # Safety
    /// As for [`Form::begin`].
    unsafe fn ask(actor: *mut Self::Actor, shard: *mut Shard<M>);
}

/// An actor's place in memory.
#[repr(C)]
pub(super) struct Slot<M, F: Form<M>> {
    pub(super) header: Header,
    pub(super) content: Content<M, F>,
}

/// What comes after the header.
#[repr(C)]
pub(super) union Content<M, F: Form<M>> {
    /// Initialised exactly if the header's state is [`State::Live`].
    pub(super) actor: ManuallyDrop<F::Actor>,
    /// In a page shared with others, initialised exactly if the state is [`State::Fresh`].
    pub(super) origin: ManuallyDrop<Origin<F>>,
    _message: ManuallyDrop<PhantomData<M>>,
}

/// How an actor is made that has not begun, and from when on it is there.
pub(super) struct Origin<F> {
    pub(super) form: Arc<F>,
    pub(super) born: u64,
}

impl<M, F: Form<M>> Slot<M, F> {
    /// The actor.
    ///
    /// # Safety
    /// The slot is valid.
    #[inline(always)]
    pub(super) unsafe fn actor(slot: *mut Self) -> *mut F::Actor {
        // SAFETY: the contract; `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*slot).content.actor).cast() }
    }

    /// What an actor that shares a page is made from.
    ///
    /// # Safety
    /// The slot is valid.
    #[inline(always)]
    pub(super) unsafe fn origin(slot: *mut Self) -> *mut Origin<F> {
        // SAFETY: the contract; `ManuallyDrop` is transparent.
        unsafe { (&raw mut (*slot).content.origin).cast() }
    }

    /// Puts an actor into its slot.
    ///
    /// # Safety
    /// The slot is valid, and holds nothing that is to be dropped.
    #[inline(always)]
    pub(super) unsafe fn begin(slot: *mut Self, actor: F::Actor) {
        // SAFETY: the contract.
        unsafe {
            Slot::actor(slot).write(actor);
            (*slot).header.state = State::Live;
        }
    }

    /// Drops the actor with this address, if it has begun and not ended. If that panics, it is the
    /// actor's panic.
    ///
    /// # Safety
    /// The slot is the actor's and used by nothing else, and no reference to the shard is held.
    pub(super) unsafe fn clear(slot: *mut Self, shard: *mut Shard<M>, actor: u32)
    where
        M: Message,
    {
        // SAFETY: the contract. The state is `Ended` before the actor is dropped, so that it is
        // dropped once.
        unsafe {
            if (*slot).header.state == State::Live {
                (*slot).header.end(Reason::Stopped);
                (*shard).leave();
                (*shard).turn.header = &raw mut (*slot).header;
                let body = Slot::actor(slot);
                Shard::at_end(shard, actor, || body.drop_in_place());
            }
        }
    }
}
