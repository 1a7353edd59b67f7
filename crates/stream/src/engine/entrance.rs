//! The entrance of a task: its first edge, and the elements that wait for capacity on it.
//!
//! Passing an element to an entrance never waits. So a write reaches all of its tasks or none, even if its request is
//! cancelled. Elements for a full edge wait in order in the entrance, and a separate task puts them on the edge.
//! [`Entrance::has_room`] checks the limit before an element is passed.
//!
//! The edges of a task may drop points when they are full, but never a barrier: the entrance holds points back while a
//! barrier is on these edges.

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
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::sleep;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) wants: Subscription,
    /// The name of the task.
    pub(super) task: Arc<str>,
    overflow: Overflow,
    held: TaskBytes,
    limit: usize,
    /// Points dropped because the task used too much memory.
    pub(super) over_memory: Counter,
    /// The generation of the routes from which on it takes points of a log.
    since: Arc<AtomicU64>,
    line: Mutex<Line>,
}

/// The bytes of writes that a task holds, summed over all its entrances.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskBytes {
    /// The bytes on the edges of the task and at its entrances.
    all: Arc<AtomicUsize>,
    /// The bytes at the entrances of the task.
    waiting: Arc<AtomicUsize>,
}

impl TaskBytes {
    fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// True if no bytes are on the edges.
    fn none_on_edges(&self) -> bool {
        // `all` is read last: it contains what leaves an entrance in between.
        let waiting = self.waiting.load(Ordering::SeqCst);
        self.all.load(Ordering::SeqCst) <= waiting
    }
}

/// The pause between two checks of the edges of a task.
const LOOK: Duration = Duration::from_millis(1);
/// The number of checks without a pause between them.
const LOOKS: usize = 100;

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
        held: TaskBytes,
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
            || (self.held.all() < self.limit && self.line.lock().waiting.len() < WAITING)
    }

    /// Waits until a task that drops points has processed all points that it has received. This is called before a
    /// write of the log is passed to the task again. The overflow policy must not drop points of this write, because it
    /// may not have dropped them before.
    pub(super) async fn processed_if_dropping(&self) {
        if self.overflow != Overflow::Block {
            until(|| self.held.all() == 0).await;
        }
    }

    /// Passes points to the task. Does nothing if the task has ended.
    pub(super) fn give(
        self: &Arc<Self>,
        flow: Flow,
        pending: PendingWrite,
        bytes: usize,
        io: &Handle,
    ) {
        if self.overflow != Overflow::Block && self.held.all() >= self.limit {
            self.over_memory.add(flow.points());
            return;
        }
        let load = Some(Load::new(bytes, &self.held.all));
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
            End::Waiting { .. } => return self.wait(&mut line, parcel),
            End::Closed => return,
        };
        let waits = match self.overflow != Overflow::Block && matches!(parcel, Element::Barrier(_))
        {
            true => Some(parcel),
            false => match edge.try_send(parcel) {
                Err(TrySendError::Full(parcel)) => Some(parcel),
                _ => None,
            },
        };
        if let Some(parcel) = waits
            && let End::Free(edge) = std::mem::replace(&mut line.end, End::Waiting { close: false })
        {
            self.wait(&mut line, parcel);
            io.spawn(self.clone().pump(edge));
        }
    }

    fn wait(&self, line: &mut Line, parcel: Element) {
        self.held
            .waiting
            .fetch_add(bytes(&parcel), Ordering::SeqCst);
        line.waiting.push_back(parcel);
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
            let passing = match &next {
                Element::Barrier(barrier) if self.overflow != Overflow::Block => {
                    until(|| self.held.none_on_edges()).await;
                    Some(barrier.passing())
                }
                _ => None,
            };
            self.held.waiting.fetch_sub(bytes(&next), Ordering::SeqCst);
            if edge.send(next).await.is_err() {
                // The task has failed or was deleted.
                let mut line = self.line.lock();
                line.end = End::Closed;
                let waiting: usize = line.waiting.drain(..).map(|parcel| bytes(&parcel)).sum();
                self.held.waiting.fetch_sub(waiting, Ordering::SeqCst);
                return;
            }
            if let Some(passing) = passing {
                until(|| passing.is_over()).await;
            }
        }
    }
}

/// The bytes of an element that count towards the memory of its task.
fn bytes(parcel: &Element) -> usize {
    match parcel {
        Element::Flow(sent) => sent.load.as_ref().map_or(0, Load::bytes),
        Element::Watermark(_) | Element::Barrier(_) => 0,
    }
}

/// Waits until `is_so` returns true for the edges of a task.
async fn until(is_so: impl Fn() -> bool) {
    for look in 0.. {
        if is_so() {
            return;
        }
        match look < LOOKS {
            true => yield_now().await,
            false => sleep(LOOK).await,
        }
    }
}
