//! The slot of a thread among all threads of the process, which selects its part of sharded state.

use crate::sync::lock;
use std::sync::Mutex;

/// The number of slots that each belong to one thread at a time.
const OWNED: usize = if cfg!(loom) { 2 } else { 32 };
/// The number of slots; threads that get no slot of their own share the others.
pub(super) const SHARDS: usize = OWNED + if cfg!(loom) { 1 } else { 16 };

/// The slot of a thread; see the [module](self).
#[derive(Clone, Copy)]
pub(super) struct ThreadSlot {
    pub(super) index: usize,
    /// True if no other thread has the slot while this thread is alive.
    pub(super) owned: bool,
}

/// Returns the slot of this thread, which is the same in every run.
#[inline]
pub(super) fn mine() -> ThreadSlot {
    // A thread that is ending, and has already returned its slot, uses a shared slot.
    PLACE.try_with(|held| held.0).unwrap_or(ThreadSlot {
        index: OWNED,
        owned: false,
    })
}

/// The free slots.
struct Free {
    /// Slots that ended threads have returned.
    returned: Vec<usize>,
    /// The number of owned slots that were assigned at least once.
    given: usize,
    /// The number of threads that found no free slot.
    without: usize,
}

static FREE: Mutex<Free> = Mutex::new(Free {
    returned: Vec::new(),
    given: 0,
    without: 0,
});

/// Frees the slot when its thread ends.
struct SlotGuard(ThreadSlot);

impl SlotGuard {
    fn new() -> SlotGuard {
        let mut free = lock(&FREE);
        if let Some(index) = free.returned.pop() {
            return SlotGuard(ThreadSlot { index, owned: true });
        }
        let owned = free.given < OWNED;
        let count = if owned {
            &mut free.given
        } else {
            &mut free.without
        };
        *count += 1;
        let index = match *count - 1 {
            given if owned => given,
            without => OWNED + without % (SHARDS - OWNED),
        };
        SlotGuard(ThreadSlot { index, owned })
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if self.0.owned {
            lock(&FREE).returned.push(self.0.index);
        }
    }
}

thread_local! {
    static PLACE: SlotGuard = SlotGuard::new();
}
