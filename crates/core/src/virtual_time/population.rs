//! The interface between the engine and the actors of one spawn, whatever their type.
//!
//! `S` is the shard, which stores requests for spawns but does not know how they are carried out.

use super::header::{HeaderCell, State};
use super::region::Prefault;
use super::stored_event::EventPtr;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use super::turn_cell::TurnCell;
#[cfg(feature = "serde")]
use crate::contract::Reason;
use crate::contract::Spawn;
use std::any::{Any, TypeId};
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
    /// Builds the population of the actors of `pages` on a shard, which outlives the population.
    fn build(self: Arc<Self>, pages: &Pages, shard: TurnCell<S>) -> Box<dyn Population<M>>;

    /// Identifies the type of the actors.
    fn kind(&self) -> TypeId;

    /// Returns the population of all actors of this type on a shard that share pages with others. `number` is its number
    /// on the shard.
    fn shared_population(&self, number: u32, shard: TurnCell<S>) -> Box<dyn Population<M>>;

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
pub(super) struct ActorView<'a> {
    pub(super) state: State,
    /// The actor, if its state is [`State::Live`].
    pub(super) actor: Option<&'a dyn Any>,
    /// The name of the actor's type.
    pub(super) type_name: &'static str,
    /// The number of messages that the actor has sent.
    pub(super) sent: u32,
    /// Returns the state of an actor of this population as a value, if the actor provides one.
    #[cfg(feature = "serde")]
    pub(super) value: fn(&dyn Any) -> Option<serde_json::Value>,
}

/// Actors of one type on one shard. The shard outlives the population, and no reference to the shard is held when one of
/// these methods is called, except for reading with the methods that only read.
pub(super) trait Population<M> {
    /// Runs the events `order[at..]` as long as they belong to this population, and returns the index of the
    /// first one that does not. Sets the shard's `cursor` to the event being handled.
    ///
    /// # Safety
    /// The receivers of the events belong to the population's shard. The events from `at` on have not been moved out;
    /// nothing else moves them out, and their memory exists during the call.
    unsafe fn run(&self, order: &[EventPtr<M>], at: usize) -> usize;

    /// Delivers one event to an actor of this population. `header` is the header of the actor, if it is known.
    ///
    /// # Safety
    /// As for [`Population::run`]; `header` came from [`Population::header`] for the receiver.
    unsafe fn run_one(&self, header: Option<HeaderCell>, event: EventPtr<M>);

    /// Drops the body of the actor being run, which has panicked.
    fn discard(&self, actor: u32);

    /// Returns the header of an actor; `None` if it does not belong to this population. The header exists until the
    /// actor is [cleared](Population::clear). Only reads.
    fn header(&self, actor: u32) -> Option<HeaderCell>;

    /// Makes an actor, if it is live, record the reason of its wait in the shard's `waiting`.
    fn ask(&self, actor: u32);

    /// Calls the `finish` of an actor, if it is live, at the end of the run. Panics of `finish` are propagated.
    fn finish(&self, actor: u32);

    /// Returns a view of an actor; `None` if it does not belong to this population.
    ///
    /// # Safety
    /// No actor of the population runs or ends while the view exists.
    unsafe fn look(&self, actor: u32) -> Option<ActorView<'_>>;

    /// Pre-faults the memory that the population's actors need next, if the population has memory of its own.
    fn populate_ahead(&self) -> Prefault;

    /// Drops the actors that were spawned together with this actor. If they share pages with others, their memory is
    /// freed.
    ///
    /// # Safety
    /// These actors and their headers are not used afterwards.
    unsafe fn clear(&self, actor: u32);

    /// Returns the name of the kind of its actors, if they have one.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes the parameters of an actor that has not begun. Returns the time from which it exists. Only reads.
    #[cfg(feature = "serde")]
    fn origin(&self, actor: u32, to: &mut Vec<u8>) -> Result<u64, CodecError>;

    /// Writes a live actor. Only reads.
    #[cfg(feature = "serde")]
    fn save(&self, actor: u32, to: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Replaces an actor that has not begun with the saved one.
    #[cfg(feature = "serde")]
    fn load(&self, actor: u32, from: &mut &[u8]) -> Result<(), CodecError>;

    /// Ends an actor that has not begun, without notifying its parent.
    #[cfg(feature = "serde")]
    fn end_unborn(&self, actor: u32, reason: Reason);
}
