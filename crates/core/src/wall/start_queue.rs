//! Actors that have received their first message and have not started yet.
//!
//! If thousands of actors got their first message in one step and started at once, their sender would create all of
//! them, and each start would wake another worker. Instead they are queued and start together: when [`BATCH`] actors
//! are queued, when the step of their sender is over, or at the next check of the clock thread, whichever comes first.
//! Any idle worker can create a batch: see [`System::begin`](super::system::System::begin).

use super::thread_slot::{self, SHARDS};
use crate::contract::Addr;
use crate::sync::lock;
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::Mutex;

/// The number of actors that start together.
const BATCH: usize = 256;

/// The state of this thread's current step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The thread is not polling a body.
    None,
    /// The thread is polling a body.
    Begun,
    /// The thread is polling a body, and has queued actors in this step.
    Queued,
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::None) };
}

/// The queued actors; see the [module](self).
pub(super) struct StartQueue {
    /// The queues by thread.
    shards: Box<[CachePadded<Mutex<Vec<Addr>>>]>,
}

impl StartQueue {
    pub(super) fn new() -> StartQueue {
        let shards = (0..SHARDS).map(|_| CachePadded::default());
        StartQueue {
            shards: shards.collect(),
        }
    }

    /// Records that this thread begins to poll a body.
    #[inline]
    pub(super) fn begin_step() {
        STEP.set(Step::Begun);
    }

    /// Records that the body was polled. Returns the actors to start now.
    #[inline]
    pub(super) fn end_step(&self) -> Option<Vec<Addr>> {
        let queued = STEP.replace(Step::None) == Step::Queued;
        queued
            .then(|| self.take(thread_slot::mine().index))
            .flatten()
    }

    /// Queues an actor. Returns the actors to start now.
    pub(super) fn note(&self, who: Addr) -> Option<Vec<Addr>> {
        if STEP.get() == Step::None {
            return Some(vec![who]);
        }
        STEP.set(Step::Queued);
        let mut queued = lock(&self.shards[thread_slot::mine().index]);
        if queued.capacity() == 0 {
            queued.reserve_exact(BATCH);
        }
        queued.push(who);
        (queued.len() >= BATCH).then(|| std::mem::take(&mut *queued))
    }

    /// Takes all queued actors.
    pub(super) fn take_all(&self) -> impl Iterator<Item = Vec<Addr>> {
        (0..SHARDS).filter_map(|shard| self.take(shard))
    }

    fn take(&self, shard: usize) -> Option<Vec<Addr>> {
        let mut queued = lock(&self.shards[shard]);
        (!queued.is_empty()).then(|| std::mem::take(&mut *queued))
    }
}
