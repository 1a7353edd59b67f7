//! Sending one message to many edges.

use super::error::{Aborted, TrySendError};
use super::flavour::{Flavour, Ring};
use super::sender::Sender;
use std::fmt;

/// Sends each message to all of its edges, as a clone for each. Messages in an [`Arc`](std::sync::Arc) are shared, not
/// copied.
///
/// A message is first offered to all edges, so an edge whose policy drops messages never waits for the other edges.
/// Then the fan-out waits for full edges whose policy is to block. An aborted edge is removed. When no edge is left,
/// `send` fails. The owner of the fan-out should then abort its own input by dropping the input's receiver.
///
/// [`add`](FanOut::add) and [`remove`](FanOut::remove) change the edges. Dropping the fan-out closes all of them.
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
    /// The identity of the edge that is added next.
    next: u64,
    /// Indices of the edges that were full.
    full: Vec<usize>,
}

/// The identity of an edge in a [`FanOut`] or a [`Merge`](super::Merge), which never reuses it.
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

    /// Adds an edge, which receives all messages that are sent from now on.
    pub fn add(&mut self, sender: Sender<T, F>) -> Branch {
        let branch = Branch(self.next);
        self.next += 1;
        self.edges.push((branch, sender));
        branch
    }

    /// Removes an edge and returns its sender, which is still open. `None` if the edge was aborted and removed.
    /// O(edges).
    pub fn remove(&mut self, branch: Branch) -> Option<Sender<T, F>> {
        let at = self.edges.iter().position(|(it, _)| *it == branch)?;
        Some(self.edges.remove(at).1)
    }

    /// Returns the number of edges. Edges aborted since the last message are included.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// True if there are no edges.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Returns the edges.
    pub fn iter(&self) -> impl Iterator<Item = (Branch, &Sender<T, F>)> {
        self.edges.iter().map(|(branch, edge)| (*branch, edge))
    }
}

impl<T: Clone + Send + 'static, F: Flavour<T>> FanOut<T, F> {
    /// Offers a message to all edges without waiting. Returns the full edges with a blocking policy, which did not
    /// accept the message. O(edges).
    ///
    /// # Errors
    /// [`Aborted`] with the message, if no edge is left.
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

    /// Offers a message to all edges, removes aborted ones, and records full ones.
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

    /// Removes edges that were aborted while the fan-out waited for them.
    fn finish(&mut self, message: T, mut aborted: Vec<usize>) -> Result<(), Aborted<T>> {
        while let Some(at) = aborted.pop() {
            self.edges.remove(at);
        }
        match self.edges.is_empty() {
            true => Err(Aborted(message)),
            false => Ok(()),
        }
    }

    /// Sends a message to all edges, and waits for full edges with a blocking policy.
    ///
    /// If the future is dropped before it is ready, some of the full edges do not get the message; all other edges have
    /// got it.
    ///
    /// # Errors
    /// [`Aborted`] with the message, if no edge is left.
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

    /// Sends a message to all edges, and blocks the thread for full edges with a blocking policy.
    ///
    /// # Errors
    /// [`Aborted`] with the message, if no edge is left.
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
