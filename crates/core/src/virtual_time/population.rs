//! What the engine asks of the actors of one spawn, whatever they are made of.
//!
//! `S` is the shard, which has requests for spawns but knows nothing of how they are carried out.

use super::header::{Header, State};
use super::region::Prefault;
use super::stored_event::StoredEvent;
#[cfg(feature = "serde")]
use super::travel::CodecError;
#[cfg(feature = "serde")]
use crate::contract::Reason;
use crate::contract::Spawn;
use std::any::TypeId;
use std::ptr::NonNull;
use std::sync::Arc;

/// A spawn that an actor has asked for.
pub(super) struct SpawnRequest<M, S> {
    pub(super) time: u64,
    pub(super) parent: u32,
    pub(super) request: u32,
    pub(super) spawn: Spawn,
    pub(super) blueprint: Arc<dyn Blueprint<M, S>>,
}

impl<M, S> Clone for SpawnRequest<M, S> {
    fn clone(&self) -> Self {
        SpawnRequest {
            spawn: self.spawn.clone(),
            blueprint: Arc::clone(&self.blueprint),
            ..*self
        }
    }
}

/// Addresses in pages of their own, as one shard sees them.
pub(super) struct Pages {
    pub(super) first: u32,
    pub(super) count: u32,
    /// From when on the actors are there.
    pub(super) born: u64,
    /// The pages that this shard has, counted from the first one, and how many actors are in each.
    pub(super) own: Vec<(u32, u32)>,
}

/// From which every shard makes its part of a population.
pub(super) trait Blueprint<M, S>: Send + Sync {
    /// The actors of these pages, a population by themselves.
    fn build(self: Arc<Self>, pages: &Pages) -> Box<dyn Population<M, S>>;

    /// What tells one type of actors from another.
    fn kind(&self) -> TypeId;

    /// The population, with this number on its shard, of all actors of this type that share pages
    /// with others.
    fn shared_population(&self, number: u32) -> Box<dyn Population<M, S>>;

    /// Memory for a number of actors of that population, which are there from `born` on. It is given back
    /// by [`Population::clear`].
    fn settle(self: Arc<Self>, count: usize, born: u64) -> NonNull<u8>;

    /// The name of the kind of these actors; `None`: a closure or an async body, which cannot travel.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes what they are made from.
    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError>;
}

/// An actor as it is seen from outside.
pub(super) struct ActorView {
    pub(super) state: State,
    /// Its type, if its state is [`State::Live`].
    pub(super) kind: TypeId,
    /// What its type is called.
    pub(super) called: &'static str,
    /// Where it is.
    pub(super) place: *const (),
    /// How many messages it has sent.
    pub(super) sent: u32,
    /// Its state as a value, given its place, if it shows that.
    #[cfg(feature = "serde")]
    pub(super) value: unsafe fn(*const ()) -> Option<serde_json::Value>,
}

/// Some actors of one type.
pub(super) trait Population<M, S> {
    /// Runs the events `order[at..]` as long as they are for this population, and returns the
    /// place of the first one that is not. Sets the shard's `cursor` to the one being handled.
    ///
    /// # Safety
    /// Called on the shard's thread, with a shard to which no reference is held. The events from
    /// `at` on have not been moved out.
    unsafe fn run(&self, shard: *mut S, order: &[*mut StoredEvent<M>], at: usize) -> usize;

    /// Runs one event, which is for this population; `slot`: its actor's header, or null.
    ///
    /// # Safety
    /// As for [`Population::run`].
    unsafe fn run_one(&self, shard: *mut S, slot: *mut Header, event: *mut StoredEvent<M>);

    /// The actor being run has panicked: drops its body.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` is one of this population.
    unsafe fn discard(&self, shard: *mut S, actor: u32);

    /// The header of an actor; null if it is not one of this population.
    ///
    /// # Safety
    /// As for [`Population::run`]; this shard has the address.
    unsafe fn header(&self, shard: *mut S, actor: u32) -> *mut Header;

    /// Lets an actor say what it waits for, in the shard's `waiting`.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` is one of this population and lives on this shard.
    unsafe fn ask(&self, shard: *mut S, actor: u32);

    /// Lets an actor do what it does when the run is over. If it panics, so does this.
    ///
    /// # Safety
    /// As for [`Population::ask`].
    unsafe fn finish(&self, shard: *mut S, actor: u32);

    /// What there is of an actor; `None` if it is not one of this population.
    ///
    /// # Safety
    /// As for [`Population::run`]; this shard has the address. What is seen is only used while no
    /// actor runs.
    unsafe fn look(&self, shard: *mut S, actor: u32) -> Option<ActorView>;

    /// Does something about the memory that its actors need next, if that is its own.
    ///
    /// # Safety
    /// Called on the shard's thread, while no actor runs.
    unsafe fn populate_ahead(&self) -> Prefault;

    /// Drops what is left of the actors that were spawned together with this one. If they share pages
    /// with others, their memory is given back.
    ///
    /// # Safety
    /// As for [`Population::run`]; nothing else is done with these actors afterwards.
    unsafe fn clear(&self, shard: *mut S, actor: u32);

    /// The name of the kind of its actors, if they are of one.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes what an actor that has not begun is made from. Returns from when on it is there.
    ///
    /// # Safety
    /// As for [`Population::look`]; the actor's state is [`State::Fresh`].
    #[cfg(feature = "serde")]
    unsafe fn origin(&self, shard: *mut S, actor: u32, to: &mut Vec<u8>)
    -> Result<u64, CodecError>;

    /// Writes an actor that lives.
    ///
    /// # Safety
    /// As for [`Population::look`]; the actor's state is [`State::Live`].
    #[cfg(feature = "serde")]
    unsafe fn save(&self, shard: *mut S, actor: u32, to: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Makes an actor that has not begun the one that was written.
    ///
    /// # Safety
    /// As for [`Population::origin`].
    #[cfg(feature = "serde")]
    unsafe fn load(&self, shard: *mut S, actor: u32, from: &mut &[u8]) -> Result<(), CodecError>;

    /// Ends an actor that has not begun, without notifying its parent.
    ///
    /// # Safety
    /// As for [`Population::origin`].
    #[cfg(feature = "serde")]
    unsafe fn end_unborn(&self, shard: *mut S, actor: u32, reason: Reason);
}
