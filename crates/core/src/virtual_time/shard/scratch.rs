//! Memory next to a shard, for a header and an event that belong to no actor and no buffer.

use crate::virtual_time::event::ScheduledEvent;
use crate::virtual_time::header::Header;
use crate::virtual_time::stored_event::{EventSpace, StoredEvent};
use std::ptr::NonNull;

/// A dummy actor header for a shard without a current actor, and memory for an event that is in no buffer. Both are in
/// a separate allocation, which is never borrowed together with the shard.
pub(super) struct Scratch<M>(NonNull<ScratchMemory<M>>);

struct ScratchMemory<M> {
    header: Header,
    event: EventSpace<M>,
}

impl<M> Scratch<M> {
    pub(super) fn new() -> Scratch<M> {
        let scratch = Box::into_raw(Box::new(ScratchMemory {
            header: Header::default(),
            event: EventSpace::new(),
        }));
        Scratch(NonNull::new(scratch).expect("a box is not null"))
    }

    /// Returns the header that belongs to no actor.
    pub(super) fn header(&self) -> *mut Header {
        // SAFETY: the memory exists as long as `self`.
        unsafe { &raw mut (*self.0.as_ptr()).header }
    }

    /// Writes a timer as the event, which is valid until the next call.
    #[inline]
    pub(super) fn set_timer(&mut self, offset: u32, actor: u32, token: u32) -> *mut StoredEvent<M> {
        // SAFETY: the memory exists as long as `self`, and has the size and alignment of any event. No reference to the
        // event is held.
        unsafe {
            let place = (&raw mut (*self.0.as_ptr()).event).cast::<u8>();
            StoredEvent::<M>::write_timer(place, offset, actor, token);
            place.cast()
        }
    }

    /// Writes a message into the memory of the event. The message must be moved out before the next call.
    pub(super) fn set_message(&mut self, message: ScheduledEvent<M>) -> *mut StoredEvent<M> {
        // SAFETY: the memory exists as long as `self`, and has the size and alignment of any event. No reference to the
        // event is held.
        unsafe {
            let place = (&raw mut (*self.0.as_ptr()).event).cast::<u8>();
            StoredEvent::write(place, message);
            place.cast()
        }
    }
}

impl<M> Drop for Scratch<M> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, which is recreated only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
