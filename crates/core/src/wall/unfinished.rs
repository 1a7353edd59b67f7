//! The remains of an actor that ended during the run.

use super::mailbox_entry::MailboxEntry;
use std::collections::VecDeque;

/// The remains of an actor after its context was dropped.
pub(crate) struct Unfinished<M> {
    /// The event that the actor was handling when it panicked; empty if unknown.
    pub(crate) handled: String,
    /// The events that the actor has received but not handled.
    pub(crate) unread: VecDeque<MailboxEntry<M>>,
}

impl<M> Default for Unfinished<M> {
    fn default() -> Unfinished<M> {
        Unfinished {
            handled: String::new(),
            unread: VecDeque::new(),
        }
    }
}
