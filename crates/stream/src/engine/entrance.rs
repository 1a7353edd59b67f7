//! The entrance of a task: its first edge, and the elements that wait for capacity on it.
//!
//! Giving an element to an entrance never waits, so a write reaches all of its tasks or none, even if its request is
//! cancelled. Elements for a full edge wait in order in the entrance, and a separate task puts them on the edge. The
//! limit is checked before anything is given: [`Entrance::has_room`].

use crate::batch::Flow;
use crate::checkpoint::Barrier;
use crate::node::Counter;
use crate::pending::{Element, FlowElement, Load, PendingWrite, Sender};
use crate::pipeline::Subscription;
use corsair::edge::{Overflow, TrySendError};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::runtime::Handle;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) wants: Subscription,
    /// The name of the task.
    pub(super) task: Arc<str>,
    overflow: Overflow,
    /// The bytes of writes on the edges of the task, summed over all its entrances.
    held: Arc<AtomicUsize>,
    limit: usize,
    /// Points dropped because the task used too much memory.
    pub(super) over_memory: Counter,
    /// The generation of the routes from which on it takes points of a log.
    since: Arc<AtomicU64>,
    line: Mutex<Line>,
}

/// The number of waiting batches at which no more writes are accepted.
const WAITING: usize = 64;

#[derive(Debug)]
struct Line {
    end: End,
    waiting: VecDeque<Element>,
}

#[derive(Debug)]
enum End {
    /// The edge is available, and no write waits for it.
    Free(Sender),
    /// A separate task waits for capacity.
    Waiting {
        /// True if the edge must be closed once no elements wait.
        close: bool,
    },
    Closed,
}

impl Entrance {
    pub(super) fn new(
        wants: Subscription,
        task: Arc<str>,
        edge: Sender,
        overflow: Overflow,
        held: Arc<AtomicUsize>,
        limit: usize,
        since: Arc<AtomicU64>,
    ) -> Entrance {
        Entrance {
            wants,
            task,
            overflow,
            held,
            limit,
            over_memory: Counter::default(),
            since,
            line: Mutex::new(Line {
                end: End::Free(edge),
                waiting: VecDeque::new(),
            }),
        }
    }

    /// The generation of the routes from which on it takes points of a log.
    pub(super) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// True if more elements may be passed: few elements are waiting, and the task is within its memory limit. For a
    /// task that drops points, the result is always true.
    pub(super) fn has_room(&self) -> bool {
        self.overflow != Overflow::Block
            || (self.held.load(Ordering::Relaxed) < self.limit
                && self.line.lock().waiting.len() < WAITING)
    }

    /// Passes points to the task. Does nothing if the task has ended.
    pub(super) fn give(
        self: &Arc<Self>,
        flow: Flow,
        pending: PendingWrite,
        bytes: usize,
        io: &Handle,
    ) {
        if self.overflow != Overflow::Block && self.held.load(Ordering::Relaxed) >= self.limit {
            self.over_memory.add(flow.points());
            return;
        }
        let load = Some(Load::new(bytes, &self.held));
        self.put(
            Element::Flow(FlowElement {
                flow,
                pending,
                load,
            }),
            io,
        );
    }

    /// Puts a barrier after all elements that were passed to the task.
    pub(super) fn give_barrier(self: &Arc<Self>, barrier: Barrier, io: &Handle) {
        self.put(Element::Barrier(barrier), io);
    }

    /// Puts an element on the edge, or after the waiting elements.
    fn put(self: &Arc<Self>, parcel: Element, io: &Handle) {
        let mut line = self.line.lock();
        let edge = match &mut line.end {
            End::Free(edge) => edge,
            End::Waiting { .. } => return line.waiting.push_back(parcel),
            End::Closed => return,
        };
        if let Err(TrySendError::Full(parcel)) = edge.try_send(parcel)
            && let End::Free(edge) = std::mem::replace(&mut line.end, End::Waiting { close: false })
        {
            line.waiting.push_back(parcel);
            io.spawn(self.clone().pump(edge));
        }
    }

    /// Closes the entrance; waiting elements are still processed.
    pub(super) fn close(&self) {
        let mut line = self.line.lock();
        match &mut line.end {
            End::Waiting { close } => *close = true,
            end => *end = End::Closed,
        }
    }

    /// Puts waiting elements on the edge, in order.
    async fn pump(self: Arc<Self>, mut edge: Sender) {
        loop {
            let next = {
                let mut line = self.line.lock();
                match line.waiting.pop_front() {
                    Some(next) => next,
                    None => {
                        line.end = match line.end {
                            End::Waiting { close: false } => End::Free(edge),
                            _ => End::Closed,
                        };
                        return;
                    }
                }
            };
            if edge.send(next).await.is_err() {
                // The task has failed or was deleted.
                let mut line = self.line.lock();
                line.end = End::Closed;
                line.waiting.clear();
                return;
            }
        }
    }
}
