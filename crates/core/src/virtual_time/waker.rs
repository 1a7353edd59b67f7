//! The wakers of async bodies.
//!
//! A body is polled when an event arrives for it, which needs no waker. A waker is needed if something wakes the body
//! *within* a poll: for example a combinator that yields, or a channel between two parts of one body. The body is then
//! polled again at the same instant. Waking an actor from anywhere else has no effect, because the time of such a
//! wake-up would depend on the machine.
//!
//! A combinator may pass its own waker to the futures that it polls, to learn which of them to poll again. The waker is
//! then stored with the wait ([`Shard::relays`](super::shard::Shard)) and woken when an event arrives.
//!
//! A waker needs no memory: it is only a number, the actor's number plus one.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

thread_local! {
    /// The number of the body being polled on this thread, and whether it was woken during the poll.
    static POLLED: Cell<(usize, bool)> = const { Cell::new((0, false)) };
    /// True if a future has cloned the waker of [`of_question`].
    static TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// True if a future of this process has ever cloned an actor's waker.
static EVER_TAKEN: AtomicBool = AtomicBool::new(false);

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| {});

/// The number of the waker with which a body is polled to find out what it awaits. No actor's waker has the number 0.
const QUESTION: usize = 0;

fn clone(number: *const ()) -> RawWaker {
    if number.addr() == QUESTION {
        TAKEN.set(true);
    } else if !EVER_TAKEN.load(Ordering::Relaxed) {
        EVER_TAKEN.store(true, Ordering::Relaxed);
    }
    RawWaker::new(number, &TABLE)
}

fn wake(number: *const ()) {
    let (polled, _) = POLLED.get();
    if polled == number.addr() {
        POLLED.set((polled, true));
    }
}

/// Returns the waker of an actor.
#[inline(always)]
pub(super) fn of(actor: u32) -> Waker {
    let number = std::ptr::without_provenance(actor as usize + 1);
    // SAFETY: the functions of the table use the pointer only as a number. They access only thread-local cells and an
    // atomic flag, so any thread may call them.
    unsafe { Waker::from_raw(RawWaker::new(number, &TABLE)) }
}

/// Returns the waker with which a body is polled to find out what it awaits: a future that clones this waker waits to
/// be woken. The waker differs from the actor's waker, so that a future that compares wakers also clones it.
pub(super) fn of_question() -> Waker {
    TAKEN.set(false);
    let number = std::ptr::without_provenance(QUESTION);
    // SAFETY: the functions of the table use the pointer only as a number. They access only thread-local cells and an
    // atomic flag, so any thread may call them.
    unsafe { Waker::from_raw(RawWaker::new(number, &TABLE)) }
}

/// True if a future has cloned the waker since [`of_question`].
pub(super) fn was_taken() -> bool {
    TAKEN.get()
}

/// Returns true if a future of this process has ever cloned an actor's waker. If not, no actor awaits a foreign future.
pub(super) fn was_ever_taken() -> bool {
    EVER_TAKEN.load(Ordering::Relaxed)
}

/// Returns true if the waker belongs to the actor, and false if it belongs to a combinator.
#[inline(always)]
pub(super) fn is_of(waker: &Waker, actor: u32) -> bool {
    waker.data().addr() == actor as usize + 1 && std::ptr::eq(waker.vtable(), &raw const TABLE)
}

/// Records that the body of an actor is about to be polled.
#[inline(always)]
pub(super) fn begin(actor: u32) {
    POLLED.set((actor as usize + 1, false));
}

/// True if the body was woken since [`begin`].
#[inline(always)]
pub(super) fn was_woken() -> bool {
    POLLED.get().1
}

/// Returns the state, so that a run within a run can use the variables; [`restore`] restores it.
pub(super) fn set_aside() -> (usize, bool) {
    POLLED.replace((0, false))
}

pub(super) fn restore(polled: (usize, bool)) {
    POLLED.set(polled);
}
