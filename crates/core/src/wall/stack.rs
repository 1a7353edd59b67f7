//! How much stack the threads have that run actors.
//!
//! A message is moved several times between a call of `send` and a mailbox, and as often on its way to the
//! receiver; without optimisation each of these moves has memory of its own. So it is for a body that
//! begins.

use super::mailbox_entry::MailboxEntry;

/// What a thread has if nobody says otherwise.
const USUAL: usize = 2 << 20;
/// Stack headroom, in copies of the message type.
const COPIES: usize = 32;

/// What messages of this type need beside everything else.
pub(super) const fn for_messages<M>() -> usize {
    size_of::<MailboxEntry<M>>() * COPIES
}

/// What the life of an actor needs, by its size.
pub(super) const fn for_life(size: usize) -> usize {
    size * COPIES
}

/// The stack of a worker, which runs any number of actors.
pub(super) const fn of_worker<M>() -> usize {
    USUAL + for_messages::<M>()
}
