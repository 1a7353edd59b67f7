//! What an actor leaves that ends during the run.

use super::mailbox_entry::MailboxEntry;
use std::collections::VecDeque;

/// What an actor leaves when its context is dropped.
pub(crate) struct Unfinished<M> {
    /// What it was handling as it panicked; empty if that is not known.
    pub(crate) handled: String,
    /// What it had received and not handled.
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
