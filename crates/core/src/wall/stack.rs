//! Stack sizes of threads that run actors.
//!
//! A message is moved several times between a call of `send` and a mailbox, and as often on its way to the receiver.
//! Without compiler optimisations each move uses separate memory on the stack. The same applies to the body of an actor
//! that starts.

use super::mailbox_entry::MailboxEntry;

/// The default stack size of a thread.
const USUAL: usize = 2 << 20;
/// Stack headroom, in copies of the message type.
const COPIES: usize = 32;

/// Returns the additional bytes for messages of this type.
pub(super) const fn for_messages<M>() -> usize {
    size_of::<MailboxEntry<M>>() * COPIES
}

/// Returns the bytes for the life of an actor of this size.
pub(super) const fn for_life(size: usize) -> usize {
    size * COPIES
}

/// Returns the stack size of a worker, which runs any number of actors.
pub(super) const fn of_worker<M>() -> usize {
    USUAL + for_messages::<M>()
}
