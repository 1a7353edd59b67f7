//! Aborts one edge or a graph of edges from outside.

use crate::sync::lock;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// An edge that a handle can abort.
pub trait Abort: Send + Sync {
    /// Aborts the edge, like [`Sender::abort`](super::Sender::abort).
    fn abort(&self);
}

/// A handle that aborts every edge created with it. Clones of a handle abort the same edges.
///
/// When [`abort`](AbortHandle::abort) has returned, every edge of the handle is aborted. During the call, some edges
/// are aborted and others not yet. Dropped edges are removed from the handle. Adding an edge costs O(1) amortised.
///
/// ```
/// use corsair::edge::{self, AbortHandle, Options};
/// let graph = AbortHandle::new();
/// let (mut tx, _rx) = edge::ring::<u32>(Options::new(1).abort_handle(graph.clone()));
/// graph.abort();
/// assert!(tx.try_send(1).is_err());
/// let (_tx, rx) = edge::ring::<u32>(Options::new(1).abort_handle(graph));
/// assert!(rx.is_aborted(), "made with a handle that has aborted");
/// ```
#[derive(Clone, Default)]
pub struct AbortHandle(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// True if the handle was aborted. The flag is set while the lock is held, so `attach` either adds its edge before
    /// the abort or sees the flag.
    aborted: AtomicBool,
    edges: Mutex<Edges>,
}

#[derive(Default)]
struct Edges {
    list: Vec<Weak<dyn Abort>>,
    /// The length of the list at which dropped edges are removed from it.
    sweep_at: usize,
}

/// The minimum length of the list at which dropped edges are removed.
const FEW: usize = 16;

impl AbortHandle {
    /// Creates a handle without edges.
    pub fn new() -> AbortHandle {
        AbortHandle::default()
    }

    /// Aborts all edges of the handle. Edges that are added later are aborted at once. Takes O(edges) time, plus the
    /// time to drop their messages.
    pub fn abort(&self) {
        // The list is only cloned, so a concurrent abort also finds all edges and returns when all of them are aborted.
        // The lock is not held while messages are dropped.
        let edges = {
            let edges = self.edges();
            self.0.aborted.store(true, Ordering::Release);
            edges.list.clone()
        };
        for edge in edges.iter().filter_map(Weak::upgrade) {
            edge.abort();
        }
        self.edges().list = Vec::new();
    }

    /// True if [`abort`](AbortHandle::abort) has been called, even if it has not returned yet.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// Adds an edge to this handle. If the handle has already been aborted, aborts the edge at once.
    pub(super) fn attach(&self, edge: &Arc<impl Abort + 'static>) {
        let mut edges = self.edges();
        if self.is_aborted() {
            drop(edges);
            edge.abort();
            return;
        }
        if edges.list.len() >= edges.sweep_at {
            edges.list.retain(|edge| edge.strong_count() > 0);
            edges.sweep_at = (edges.list.len() * 2).max(FEW);
        }
        let edge: Weak<dyn Abort> = Arc::downgrade(edge) as Weak<dyn Abort>;
        edges.list.push(edge);
    }

    /// Locks the list. No code panics while it holds the lock, so the lock is never poisoned.
    fn edges(&self) -> MutexGuard<'_, Edges> {
        lock(&self.0.edges)
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("aborted", &self.is_aborted())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Edge(AtomicBool);

    impl Abort for Edge {
        fn abort(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    // Guarantee: core-99.
    #[test]
    fn edges_that_are_gone_leave_the_handle() {
        let handle = AbortHandle::new();
        let edge = || {
            let edge = Arc::new(Edge::default());
            handle.attach(&edge);
            edge
        };
        let kept: Vec<_> = (0..10).map(|_| edge()).collect();
        for _ in 0..1000 {
            drop(edge());
        }
        assert!(handle.edges().list.len() <= 2 * (kept.len() + FEW));
        handle.abort();
        assert!(handle.edges().list.is_empty());
        assert!(kept.iter().all(|edge| edge.0.load(Ordering::Relaxed)));
    }
}
