//! The public part of an actor.

use super::mailbox::Mailbox;
use super::overflow_count::OverflowCount;
use super::pool::Handle;
use crate::contract::{Message, Reason};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8, fence};
use std::task::{Context, Wake};

/// The shared state of an actor; see the [module](self).
pub(crate) struct Cell<M: Message> {
    pub(super) mailbox: Mailbox<M>,
    pub(super) handle: Handle,
    pub(super) state: AtomicU8,
    /// The number of this actor's messages that other mailboxes hold above their capacity.
    pub(super) owed: OverflowCount,
    /// True if the actor waits only for messages, as far as its context can tell.
    pub(super) idle: AtomicBool,
    /// True while the actor's body is polled. A context that is dropped during a poll belongs to a body that ends.
    pub(super) polled: AtomicBool,
    /// True if the actor's context was dropped.
    pub(super) left: AtomicBool,
}

/// The number of holders of a cell while its body waits: the table, the life, the waker of the body, and the
/// context.
const HOLDERS: usize = 4;

/// The waker with which the body is polled, the relay: see [`life`](super::life).
impl<M: Message> Wake for Cell<M> {
    fn wake(self: Arc<Self>) {
        Cell::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Cell::wake(self);
    }
}

pub(super) const LIVE: u8 = 0;
/// The increment of the stop's state; the lowest bit is the epoch in which the stop counts as sent.
pub(super) const STOPPING: u8 = 2;
pub(super) const RETURNED: u8 = 4;
pub(super) const STOPPED: u8 = 8;
pub(super) const PANICKED: u8 = 16;

impl<M: Message> Cell<M> {
    pub(super) fn shared() -> Arc<Cell<M>> {
        Arc::new(Cell {
            mailbox: Mailbox::new(),
            handle: Handle::default(),
            state: AtomicU8::new(LIVE),
            owed: OverflowCount::default(),
            idle: AtomicBool::new(false),
            polled: AtomicBool::new(false),
            left: AtomicBool::new(false),
        })
    }

    /// True if the actor was stopped and has not ended yet.
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.state.load(Acquire) & STOPPING != 0
    }

    /// True if a body is polled with the [relay](super::life) itself.
    #[inline]
    pub(super) fn is_relay(&self, task: &Context<'_>) -> bool {
        task.waker().data() == std::ptr::from_ref(self).cast()
    }

    /// True if clones of the relay exist.
    #[inline]
    pub(super) fn is_held(self: &Arc<Self>) -> bool {
        let holders = Arc::strong_count(self);
        // A thread that sees a count without the context's share also sees the context's write to `left`.
        fence(Acquire);
        holders + usize::from(self.left.load(Relaxed)) > HOLDERS
    }

    /// Wakes the actor, whatever it waits for.
    pub(super) fn wake(&self) {
        if let Some(task) = self.mailbox.task() {
            task.wake();
        }
    }

    /// Returns the reason of the actor's end; `None` while the actor lives.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.state.load(Acquire) {
            RETURNED => Some(Reason::Returned),
            STOPPED => Some(Reason::Stopped),
            PANICKED => Some(Reason::Panicked),
            _ => None,
        }
    }
}
