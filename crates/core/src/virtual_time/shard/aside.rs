//! Memory beside a shard, for what is no actor and no event.

use super::ROOT;
use crate::virtual_time::header::Header;
use crate::virtual_time::scheduled::{Head, Kind};
use std::ptr::NonNull;

/// What a shard's `header` and `current` point to where no actor's memory and no event is
/// meant. In memory of its own, which nobody borrows together with the shard.
pub(super) struct Aside(NonNull<(Header, Head)>);

impl Aside {
    pub(super) fn new() -> Aside {
        let head = Head::new(0, Kind::Start, ROOT, ROOT, 0, 0);
        let aside = Box::into_raw(Box::new((Header::default(), head)));
        Aside(NonNull::new(aside).expect("a box is not null"))
    }

    /// The header of nobody.
    pub(super) fn header(&self) -> *mut Header {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw mut (*self.0.as_ptr()).0 }
    }

    /// A copy of the head of an event that had been kept, or that begins a new trace.
    pub(super) fn head(&self) -> *const Head {
        // SAFETY: the memory is there as long as this.
        unsafe { &raw const (*self.0.as_ptr()).1 }
    }

    pub(super) fn set_head(&mut self, head: Head) -> *const Head {
        // SAFETY: the memory is there as long as this; nobody holds a reference to the head.
        unsafe { (*self.0.as_ptr()).1 = head };
        self.head()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: made from a box, and given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
