//! The interface between the engine and the actors of one spawn, whatever their type.
//!
//! `S` is the shard, which stores requests for spawns but does not know how they are carried out.

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

/// A spawn that an actor has requested.
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

/// The addresses of a spawn with complete pages, and the part of them that belongs to one shard.
pub(super) struct Pages {
    pub(super) first: u32,
    pub(super) count: u32,
    /// The time from which the actors exist.
    pub(super) birth_time: u64,
    /// The pages of this shard, counted from the first one, and the number of actors in each.
    pub(super) own: Vec<(u32, u32)>,
}

/// A description of a population, from which every shard builds its part.
pub(super) trait Blueprint<M, S>: Send + Sync {
    /// Builds the population of the actors of `pages`.
    fn build(self: Arc<Self>, pages: &Pages) -> Box<dyn Population<M, S>>;

    /// Identifies the type of the actors.
    fn kind(&self) -> TypeId;

    /// Returns the population of all actors of this type that share pages with others. `number` is its number on the
    /// shard.
    fn shared_population(&self, number: u32) -> Box<dyn Population<M, S>>;

    /// Allocates memory for `count` actors, which exist from `birth_time` on. [`Population::clear`] frees it.
    fn settle(self: Arc<Self>, count: usize, birth_time: u64) -> NonNull<u8>;

    /// Returns the name of the actors' kind; `None` for a closure or an async body, which cannot be sent to another
    /// process.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes the parameters of the actors.
    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError>;
}

/// A view of an actor for inspection.
pub(super) struct ActorView {
    pub(super) state: State,
    /// The actor's type, if its state is [`State::Live`].
    pub(super) kind: TypeId,
    /// The name of the actor's type.
    pub(super) type_name: &'static str,
    /// The location of the actor in memory.
    pub(super) place: *const (),
    /// The number of messages that the actor has sent.
    pub(super) sent: u32,
    /// Returns the actor's state as a value, given its location, if the actor provides one.
    #[cfg(feature = "serde")]
    pub(super) value: unsafe fn(*const ()) -> Option<serde_json::Value>,
}

/// Actors of one type.
pub(super) trait Population<M, S> {
    /// Runs the events `order[at..]` as long as they belong to this population, and returns the index of the
    /// first one that does not. Sets the shard's `cursor` to the event being handled.
    ///
    /// # Safety
    /// The caller is on the shard's thread, and no reference to the shard is held. The events from `at` on have not
    /// been moved out.
    unsafe fn run(&self, shard: *mut S, order: &[*mut StoredEvent<M>], at: usize) -> usize;

    /// Delivers one event to an actor of this population. `slot` is the header of the actor, or null if it is not
    /// known.
    ///
    /// # Safety
    /// As for [`Population::run`].
    unsafe fn run_one(&self, shard: *mut S, slot: *mut Header, event: *mut StoredEvent<M>);

    /// Drops the body of the actor being run, which has panicked.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` belongs to this population.
    unsafe fn discard(&self, shard: *mut S, actor: u32);

    /// Returns the header of an actor; null if it does not belong to this population.
    ///
    /// # Safety
    /// As for [`Population::run`]; this shard has the address.
    unsafe fn header(&self, shard: *mut S, actor: u32) -> *mut Header;

    /// Makes an actor record the reason of its wait in the shard's `waiting`.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` belongs to this population, and is alive on this shard.
    unsafe fn ask(&self, shard: *mut S, actor: u32);

    /// Calls an actor's `finish` at the end of the run. Panics of `finish` are propagated.
    ///
    /// # Safety
    /// As for [`Population::ask`].
    unsafe fn finish(&self, shard: *mut S, actor: u32);

    /// Returns a view of an actor; `None` if it does not belong to this population.
    ///
    /// # Safety
    /// As for [`Population::run`]; this shard has the address. The view is only used while no actor runs.
    unsafe fn look(&self, shard: *mut S, actor: u32) -> Option<ActorView>;

    /// Pre-faults the memory that the population's actors need next, if the population has memory of its own.
    ///
    /// # Safety
    /// The caller is on the shard's thread, and no actor runs.
    unsafe fn populate_ahead(&self) -> Prefault;

    /// Drops the actors that were spawned together with this actor. If they share pages with others, their memory is
    /// freed.
    ///
    /// # Safety
    /// As for [`Population::run`]; these actors are not used afterwards.
    unsafe fn clear(&self, shard: *mut S, actor: u32);

    /// Returns the name of the kind of its actors, if they have one.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes the parameters of an actor that has not begun. Returns the time from which it exists.
    ///
    /// # Safety
    /// As for [`Population::look`]; the actor's state is [`State::Fresh`].
    #[cfg(feature = "serde")]
    unsafe fn origin(&self, shard: *mut S, actor: u32, to: &mut Vec<u8>)
    -> Result<u64, CodecError>;

    /// Writes a live actor.
    ///
    /// # Safety
    /// As for [`Population::look`]; the actor's state is [`State::Live`].
    #[cfg(feature = "serde")]
    unsafe fn save(&self, shard: *mut S, actor: u32, to: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Replaces an actor that has not begun with the saved one.
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
