//! The data that is left of an actor that ended during the run.

use super::mailbox_entry::MailboxEntry;
use std::collections::VecDeque;

/// The data that is left of an actor after its context was dropped.
pub(crate) struct ActorRemains<M> {
    /// The event that the actor was handling when it panicked; empty if unknown.
    pub(crate) handled: String,
    /// The events that the actor has received but not handled.
    pub(crate) unread: VecDeque<MailboxEntry<M>>,
}

impl<M> Default for ActorRemains<M> {
    fn default() -> ActorRemains<M> {
        ActorRemains {
            handled: String::new(),
            unread: VecDeque::new(),
        }
    }
}
