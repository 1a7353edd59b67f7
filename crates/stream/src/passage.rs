//! When everything that was written has gone its way.
//!
//! Every write has a [`Passage`], which goes along with all that is made of its points. Whatever ends
//! a point's way, be it a node without followers, an abort, or a full edge, drops what it holds; with
//! the last holder the write has gone its way. Nothing is counted per point or per edge.

use crate::batch::Flow;
use corsair::edge::Weigh;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The writes under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passages(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    under_way: Mutex<UnderWay>,
    /// One has gone its way.
    gone: Notify,
}

#[derive(Debug, Default)]
struct UnderWay {
    writes: BTreeSet<u64>,
    next: u64,
}

/// Held by all that is made of one write.
#[derive(Clone, Debug)]
pub(crate) struct Passage(#[expect(dead_code, reason = "it is held, not read")] Arc<Entry>);

#[derive(Debug)]
struct Entry {
    write: u64,
    of: Arc<Shared>,
}

/// What lies on an edge.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) flow: Flow,
    pub(crate) passage: Passage,
}

/// Edges count points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points;

/// The collecting end of an edge of a task.
pub(crate) type Collector = corsair::edge::Collector<Parcel, Points>;

/// The emitting end of an edge of a task.
pub(crate) type Emitter = corsair::edge::Emitter<Parcel, Points>;

impl Weigh<Parcel> for Points {
    fn weight(parcel: &Parcel) -> u64 {
        parcel.flow.points() as u64
    }
}

impl Passages {
    /// A write begins.
    pub(crate) fn begin(&self) -> Passage {
        let mut under_way = self.0.lock();
        let write = under_way.next;
        under_way.next += 1;
        under_way.writes.insert(write);
        drop(under_way);
        let of = self.0.clone();
        Passage(Arc::new(Entry { write, of }))
    }

    /// Waits until every write that has begun by now has gone its way.
    pub(crate) async fn settle(&self) {
        let next = self.0.lock().next;
        loop {
            let mut gone = std::pin::pin!(self.0.gone.notified());
            gone.as_mut().enable();
            let first = self.0.lock().writes.first().copied();
            if first.is_none_or(|first| first >= next) {
                return;
            }
            gone.await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.of.lock().writes.remove(&self.write);
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

    #[test]
    fn settled_when_the_last_holder_of_every_earlier_write_is_gone() {
        let passages = Passages::default();
        assert!(is_ready(passages.settle()));
        let first = passages.begin();
        let copy = first.clone();
        drop(first);
        assert!(!is_ready(passages.settle()));
        let mut settling = Box::pin(passages.settle());
        assert!(!is_ready(&mut settling));
        let later = passages.begin();
        drop(copy);
        assert!(
            is_ready(&mut settling),
            "a write that began later is not waited for"
        );
        assert!(!is_ready(passages.settle()));
        drop(later);
        assert!(is_ready(passages.settle()));
    }
}
