//! Counts writes that have not settled. A write has settled when no node, edge or sink has points of the write any
//! more.
//!
//! Every write has a [`PendingWrite`], a token that all data derived from its points carries. When the path of a point
//! ends (at a node without followers, by an abort, or at a full edge), the token of the point is dropped. A write has
//! settled when the last token is dropped. So nothing needs to be counted per point or per edge.

use crate::batch::{Flow, Watermark};
use crate::checkpoint::Barrier;
use corsair::edge::{Ring, Weigh};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The writes that have not settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingWrites(Arc<Writes>);

#[derive(Debug, Default)]
struct Writes {
    under_way: Mutex<UnderWay>,
    /// Notified when a write has settled.
    gone: Notify,
}

#[derive(Debug, Default)]
struct UnderWay {
    writes: BTreeSet<u64>,
    next: u64,
}

/// A token held by all data derived from one write.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrite(
    #[expect(dead_code, reason = "it is held, not read")] Arc<WriteInProgress>,
);

#[derive(Debug)]
struct WriteInProgress {
    write: u64,
    of: Arc<Writes>,
}

/// An element of an edge.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    /// Points or a window.
    Flow(FlowElement),
    /// A time before which no further points of a group arrive.
    Watermark(Watermark),
    /// The barrier between the points before and after a checkpoint.
    Barrier(Barrier),
}

/// Points or windows on an edge.
#[derive(Clone, Debug)]
pub(crate) struct FlowElement {
    pub(crate) flow: Flow,
    pub(crate) pending: PendingWrite,
    /// The bytes that count towards the memory of the task; `None` for data created at the end of the stream.
    pub(crate) load: Option<Load>,
}

/// Bytes of a write that a task holds, until all data derived from it has left the task's edges.
#[derive(Clone, Debug)]
pub(crate) struct Load(Arc<HeldBytes>);

#[derive(Debug)]
struct HeldBytes {
    bytes: usize,
    by: Arc<AtomicUsize>,
}

impl Load {
    /// Adds bytes to the total of a task.
    pub(crate) fn new(bytes: usize, by: &Arc<AtomicUsize>) -> Load {
        by.fetch_add(bytes, Ordering::Relaxed);
        let by = by.clone();
        Load(Arc::new(HeldBytes { bytes, by }))
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.by.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Edges count points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points;

/// The sending end of an edge of a task.
pub(crate) type Sender = corsair::edge::Sender<Element, Ring<Points>>;

/// The receiving end of an edge of a task.
pub(crate) type Receiver = corsair::edge::Receiver<Element, Ring<Points>>;

impl Weigh<Element> for Points {
    fn weight(parcel: &Element) -> u64 {
        match parcel {
            Element::Flow(sent) => sent.flow.points() as u64,
            Element::Watermark(_) | Element::Barrier(_) => 0,
        }
    }
}

impl PendingWrites {
    /// Registers a write.
    pub(crate) fn begin(&self) -> PendingWrite {
        let mut under_way = self.0.under_way.lock();
        let write = under_way.next;
        under_way.next += 1;
        under_way.writes.insert(write);
        drop(under_way);
        let of = self.0.clone();
        PendingWrite(Arc::new(WriteInProgress { write, of }))
    }

    /// Waits until every write that has begun before this call has settled.
    pub(crate) async fn settle(&self) {
        let next = self.0.under_way.lock().next;
        loop {
            let mut gone = std::pin::pin!(self.0.gone.notified());
            gone.as_mut().enable();
            let first = self.0.under_way.lock().writes.first().copied();
            if first.is_none_or(|first| first >= next) {
                return;
            }
            gone.await;
        }
    }
}

impl Drop for WriteInProgress {
    fn drop(&mut self) {
        self.of.under_way.lock().writes.remove(&self.write);
        self.of.gone.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(()))
    }

    // Guarantee: stream-8.
    #[test]
    fn settled_when_the_last_holder_of_every_earlier_write_is_gone() {
        let pending_writes = PendingWrites::default();
        assert!(is_ready(pending_writes.settle()));
        let first = pending_writes.begin();
        let copy = first.clone();
        drop(first);
        assert!(!is_ready(pending_writes.settle()));
        let mut settling = Box::pin(pending_writes.settle());
        assert!(!is_ready(&mut settling));
        let later = pending_writes.begin();
        drop(copy);
        assert!(
            is_ready(&mut settling),
            "a write that began later is not waited for"
        );
        assert!(!is_ready(pending_writes.settle()));
        drop(later);
        assert!(is_ready(pending_writes.settle()));
    }
}
