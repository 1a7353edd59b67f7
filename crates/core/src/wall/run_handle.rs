//! A handle of the run, which actors that begin together share.
//!
//! Each actor keeps its run alive. If all of them counted themselves in one place, every worker that begins
//! or ends an actor would write to the same cache line, and wait for the others.

use super::system::System;
use crate::contract::Message;
use std::ops::Deref;
use std::sync::Arc;

/// See the [module](self).
pub(super) struct RunHandle<M: Message>(Arc<Counted<M>>);

/// Counted by those that begin together; itself it counts as one.
struct Counted<M: Message> {
    system: Arc<System<M>>,
}

impl<M: Message> RunHandle<M> {
    /// A new one.
    pub(super) fn new(system: &Arc<System<M>>) -> RunHandle<M> {
        let system = system.clone();
        RunHandle(Arc::new(Counted { system }))
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
