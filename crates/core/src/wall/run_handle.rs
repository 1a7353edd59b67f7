//! A handle of the run, which actors that start together share.
//!
//! Each actor keeps its run alive. If all of them used one reference count, every worker that starts or ends an actor
//! would write to the same cache line and wait for the others.

use super::system::System;
use crate::contract::Message;
use std::ops::Deref;
use std::sync::Arc;

/// A handle of the run; see the [module](self).
pub(super) struct RunHandle<M: Message>(Arc<CountedSystem<M>>);

/// A reference to the run, shared by the actors that start together: they use its reference count instead of the run's.
struct CountedSystem<M: Message> {
    system: Arc<System<M>>,
}

impl<M: Message> RunHandle<M> {
    /// Creates a handle for actors that start together.
    pub(super) fn new(system: &Arc<System<M>>) -> RunHandle<M> {
        let system = system.clone();
        RunHandle(Arc::new(CountedSystem { system }))
    }
}

impl<M: Message> Clone for RunHandle<M> {
    fn clone(&self) -> RunHandle<M> {
        RunHandle(self.0.clone())
    }
}

impl<M: Message> Deref for RunHandle<M> {
    type Target = Arc<System<M>>;

    #[inline]
    fn deref(&self) -> &Arc<System<M>> {
        &self.0.system
    }
}
