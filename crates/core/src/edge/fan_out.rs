//! Sending one message to many edges.

use super::error::{Aborted, TrySendError};
use super::flavour::{Flavour, Ring};
use super::sender::Sender;
use std::fmt;

/// Sends every message to each of its edges, a clone to each; with an [`Arc`](std::sync::Arc) it is
/// shared, not copied.
///
/// A message is first offered to all edges, so that one whose policy drops never keeps its
/// siblings waiting; then those that are full and block are waited for. An edge that has been aborted
/// is removed. When there is none left, `send` fails, and the
/// feeder of the fan-out should abort in turn, which dropping its own receiver does.
///
/// Edges come and go by [`add`](FanOut::add) and [`remove`](FanOut::remove). Dropping it closes all.
///
/// ```
/// use corsair::edge::{self, FanOut, Options, Overflow};
/// use std::sync::Arc;
/// let mut all = FanOut::new();
/// let (tx, mut fast) = edge::ring::<Arc<str>>(Options::new(8));
/// all.add(tx);
/// let (tx, mut slow) = edge::ring(Options::new(1).overflow(Overflow::DropOldest));
/// let slow_one = all.add(tx);
/// for point in ["a", "b", "c"] {
///     all.send_blocking(Arc::from(point))?;
/// }
/// assert_eq!(fast.try_recv().as_deref(), Ok("a"));
/// assert_eq!(slow.try_recv().as_deref(), Ok("c"));
/// assert!(all.remove(slow_one).is_some());
/// # Ok::<(), edge::Aborted<Arc<str>>>(())
/// ```
pub struct FanOut<T: Send + 'static, F: Flavour<T> = Ring> {
    edges: Vec<(Branch, Sender<T, F>)>,
    /// The identity of the next added edge.
    next: u64,
    /// Indices of the edges that were full.
    full: Vec<usize>,
}

/// Names an edge of a [`FanOut`] or a [`Merge`](super::Merge). Never given twice by one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Branch(pub(super) u64);

impl<T: Send + 'static, F: Flavour<T>> FanOut<T, F> {
    /// Creates a fan-out without edges.
    pub const fn new() -> FanOut<T, F> {
        FanOut {
            edges: Vec::new(),
            next: 0,
            full: Vec::new(),
        }
    }

    /// Adds an edge, which gets messages from the next one on.
    pub fn add(&mut self, sender: Sender<T, F>) -> Branch {
        let branch = Branch(self.next);
        self.next += 1;
        self.edges.push((branch, sender));
        branch
    }

    /// Removes an edge and returns its sender, still open. `None` if it was aborted and removed. O(edges).
    pub fn remove(&mut self, branch: Branch) -> Option<Sender<T, F>> {
        let at = self.edges.iter().position(|(it, _)| *it == branch)?;
        Some(self.edges.remove(at).1)
    }

    /// Returns the number of edges, as of the last message.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// True if there are no edges.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The edges.
    pub fn iter(&self) -> impl Iterator<Item = (Branch, &Sender<T, F>)> {
        self.edges.iter().map(|(branch, edge)| (*branch, edge))
    }
}

impl<T: Clone + Send + 'static, F: Flavour<T>> FanOut<T, F> {
    /// Offers a message to all edges. Those that are full and block, and only those, do not get it: they
    /// are returned. O(edges).
    ///
    /// # Errors
    /// [`Aborted`] with the message if there are no edges, or none any more.
    pub fn try_send(&mut self, message: T) -> Result<Vec<Branch>, Aborted<T>> {
        self.offer(&message);
        if self.edges.is_empty() {
            return Err(Aborted(message));
        }
        Ok(self.full.iter().map(|at| self.edges[*at].0).collect())
    }

    /// Closes all edges, like [`Sender::close`].
    pub fn close(&mut self) {
        self.edges.iter_mut().for_each(|(_, edge)| edge.close());
    }

    /// Aborts all edges, like [`Sender::abort`].
    pub fn abort(&self) {
        self.edges.iter().for_each(|(_, edge)| edge.abort());
    }

    /// Offers a message to all edges, removes those that are aborted, and notes those that are full.
    fn offer(&mut self, message: &T) {
        self.full.clear();
        let mut at = 0;
        while at < self.edges.len() {
            match self.edges[at].1.try_send(message.clone()) {
                Ok(()) => at += 1,
                Err(TrySendError::Full(_)) => {
                    self.full.push(at);
                    at += 1;
                }
                Err(TrySendError::Aborted(_)) => drop(self.edges.remove(at)),
            }
        }
    }

    /// Removes those edges that turned out to be aborted while they were waited for.
    fn finish(&mut self, message: T, mut aborted: Vec<usize>) -> Result<(), Aborted<T>> {
        while let Some(at) = aborted.pop() {
            self.edges.remove(at);
        }
        match self.edges.is_empty() {
            true => Err(Aborted(message)),
            false => Ok(()),
        }
    }

    /// Sends a message to all edges, and waits for those that are full and block.
    ///
    /// If the future is dropped before it is ready, some of the edges that were full do not get the
    /// message; all others have it.
    ///
    /// # Errors
    /// [`Aborted`] with the message if there are no edges, or none any more.
    pub async fn send(&mut self, message: T) -> Result<(), Aborted<T>> {
        self.offer(&message);
        let mut aborted = Vec::new();
        for at in self.full.drain(..) {
            if self.edges[at].1.send(message.clone()).await.is_err() {
                aborted.push(at);
            }
        }
        self.finish(message, aborted)
    }

    /// Sends a message to all edges, and blocks the thread for those that are full and block.
    ///
    /// # Errors
    /// [`Aborted`] with the message if there are no edges, or none any more.
    pub fn send_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        self.offer(&message);
        let mut aborted = Vec::new();
        for at in self.full.drain(..) {
            if self.edges[at].1.send_blocking(message.clone()).is_err() {
                aborted.push(at);
            }
        }
        self.finish(message, aborted)
    }
}

impl<T: Send + 'static, F: Flavour<T>> Default for FanOut<T, F> {
    fn default() -> Self {
        FanOut::new()
    }
}

impl<T: Send + 'static, F: Flavour<T>> FromIterator<Sender<T, F>> for FanOut<T, F> {
    fn from_iter<I: IntoIterator<Item = Sender<T, F>>>(senders: I) -> Self {
        let mut all = FanOut::new();
        for end in senders {
            all.add(end);
        }
        all
    }
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for FanOut<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.edges.iter().map(|(branch, edge)| (branch, edge)))
            .finish()
    }
}
