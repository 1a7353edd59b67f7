//! Memory next to a shard, for a header and an event that belong to no actor and no buffer.

use crate::virtual_time::header::{Header, HeaderCell};
use crate::virtual_time::stored_event::EventSpaces;

/// A dummy actor header for a shard without a current actor, and memory for an event that is in no buffer. Both are in
/// separate allocations, which are never borrowed together with the shard.
pub(super) struct Scratch<M> {
    header: HeaderCell,
    pub(super) event: EventSpaces<M, 1>,
}

impl<M> Scratch<M> {
    pub(super) fn new() -> Scratch<M> {
        Scratch {
            // SAFETY: the header exists until this value is dropped. It is used through cells only.
            header: unsafe { HeaderCell::new(Box::into_raw(Box::default())) },
            event: EventSpaces::new(),
        }
    }

    /// Returns the header that belongs to no actor; it exists as long as the shard.
    pub(super) fn header(&self) -> HeaderCell {
        self.header
    }
}

impl<M> Drop for Scratch<M> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, which is recreated only here.
        drop(unsafe { Box::<Header>::from_raw(self.header.as_ptr()) });
    }
}
