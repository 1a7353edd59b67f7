//! Memory beside a shard, for what is no actor and no event.

use super::ROOT;
use crate::virtual_time::header::Header;
use crate::virtual_time::scheduled::{Head, Kind, Scheduled};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// What a shard's `header` and `current` point to where no actor's memory and no event is
/// meant, and a place for an event that lies in no buffer. In memory of its own, which nobody
/// borrows together with the shard.
pub(super) struct Aside<M>(NonNull<Places<M>>);

struct Places<M> {
    header: Header,
    head: Head,
    event: MaybeUninit<Scheduled<M>>,
}

impl<M> Aside<M> {
    pub(super) fn new() -> Aside<M> {
        let aside = Box::into_raw(Box::new(Places {
            header: Header::default(),
            head: Head::new(0, Kind::Start, ROOT, ROOT, 0, 0),
            event: MaybeUninit::uninit(),
        }));
        Aside(NonNull::new(aside).expect("a box is not null"))
    }

    /// The header of nobody.
    pub(super) fn header(&self) -> *mut Header {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw mut (*self.0.as_ptr()).header }
    }

    /// A copy of the head of an event that had been kept, or that begins a new trace.
    pub(super) fn head(&self) -> *const Head {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw const (*self.0.as_ptr()).head }
    }

    pub(super) fn set_head(&mut self, head: Head) -> *const Head {
        // SAFETY: the memory is there as long as this; nobody holds a reference to the head.
        unsafe { (*self.0.as_ptr()).head = head };
        self.head()
    }
}

impl<M> Aside<M> {
    /// Puts an event without a message into the place for one, where it stays until the next.
    pub(super) fn set_event(&mut self, event: Scheduled<M>) -> *mut Scheduled<M> {
        debug_assert!(!event.head.kind().has_body(), "it is not dropped");
        // SAFETY: the memory is there as long as this; nobody holds a reference to the event.
        unsafe {
            let place = &raw mut (*self.0.as_ptr()).event;
            place.cast::<Scheduled<M>>().write(event);
            place.cast()
        }
    }
}

impl<M> Drop for Aside<M> {
    fn drop(&mut self) {
        // SAFETY: made from a box, and given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
