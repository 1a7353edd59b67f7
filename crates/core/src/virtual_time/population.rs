//! What the engine asks of the actors of one spawn, whatever they are made of.
//!
//! `S` is the shard, which has requests for spawns but knows nothing of how they are carried out.

use super::header::Header;
use super::scheduled::Scheduled;
use crate::contract::Spawn;
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

/// From which every shard makes its part of a population.
pub(super) trait Blueprint<M, S>: Send + Sync {
    /// The actors `first..first + count` of which this shard has the pages; `slots` of them, or up
    /// to the ends of its pages.
    fn build(self: Arc<Self>, first: u32, count: u32, slots: usize) -> Box<dyn Population<M, S>>;
}

/// Some actors of one type.
pub(super) trait Population<M, S> {
    /// Runs the events `order[at..]` as long as they are for this population, and returns the
    /// place of the first one that is not. Sets the shard's `cursor` to the one being handled.
    ///
    /// # Safety
    /// Called on the shard's thread, with a shard that nobody holds a reference to. `events` has
    /// all the events that `order` names, and those from `at` on have not been moved out.
    unsafe fn run(
        &self,
        shard: *mut S,
        events: *mut Scheduled<M>,
        order: &[u32],
        at: usize,
    ) -> usize;

    /// The actor being run has panicked: drops its body.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` is one of this population.
    unsafe fn discard(&self, shard: *mut S, actor: u32);

    /// Calls `each` for every actor of this shard that has begun or was sent to, in the order of
    /// addresses, until it returns false.
    ///
    /// # Safety
    /// As for [`Population::run`].
    unsafe fn visit(&self, shard: *mut S, each: &mut dyn FnMut(u32, *mut Header) -> bool);

    /// Lets an actor say what it waits for, in the shard's `waiting`.
    ///
    /// # Safety
    /// As for [`Population::run`]; `actor` is one of this population and lives on this shard.
    unsafe fn ask(&self, shard: *mut S, actor: u32);

    /// The first byte of the slots, and the bytes of each.
    fn slots(&self) -> (*mut u8, usize);

    /// Drops all bodies.
    ///
    /// # Safety
    /// As for [`Population::run`]; nothing else is called afterwards.
    unsafe fn drop_all(&mut self, shard: *mut S);
}
