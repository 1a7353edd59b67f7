//! Many edges read as one.

use super::error::TryRecvError;
use super::fan_out::Branch;
use super::flavour::{Flavour, Ring};
use super::meter::State;
use super::receiver::Receiver;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Receives from all of its edges in turn: after a message from one edge, every other edge is asked before this edge is
/// asked again.
///
/// An edge that has ended is removed; when no edge is left, `recv` returns `None`. If an edge was aborted,
/// [`is_aborted`](Merge::is_aborted) returns true from then on. So the reader knows that messages are missing, and can
/// abort its own output.
///
/// [`add`](Merge::add) and [`remove`](Merge::remove) change the edges. Dropping the merge aborts all of them, like
/// dropping a receiver.
///
/// ```
/// use corsair::edge::{self, Merge, Options};
/// let mut all = Merge::new();
/// let edges = [1, 2].map(|_| edge::ring::<u32>(Options::new(8)));
/// let mut senders = edges.map(|(tx, rx)| {
///     all.add(rx);
///     tx
/// });
/// for number in 0..4 {
///     senders[number % 2].try_send(number as u32).expect("the edge has capacity");
/// }
/// drop(senders);
/// let mut numbers: Vec<u32> = std::iter::from_fn(|| all.recv_blocking()).collect();
/// numbers.sort();
/// assert_eq!(numbers, [0, 1, 2, 3]);
/// ```
pub struct Merge<T: Send + 'static, F: Flavour<T> = Ring> {
    edges: Vec<Receiver<T, F>>,
    /// The identities of the edges, in the same order.
    branches: Vec<Branch>,
    /// The identity of the edge that is added next.
    named: u64,
    /// The index of the edge that is asked first.
    turn: usize,
    aborted: bool,
    /// True if some of the edges may be counting blocked time, because the merge waits for them.
    waits: bool,
}

impl<T: Send + 'static, F: Flavour<T>> Merge<T, F> {
    /// Creates a merge without edges, whose `recv` ends at once.
    pub const fn new() -> Merge<T, F> {
        Merge {
            edges: Vec::new(),
            branches: Vec::new(),
            named: 0,
            turn: 0,
            aborted: false,
            waits: false,
        }
    }

    /// Adds an edge to receive from.
    pub fn add(&mut self, receiver: Receiver<T, F>) -> Branch {
        let branch = Branch(self.named);
        self.named += 1;
        self.edges.push(receiver);
        self.branches.push(branch);
        branch
    }

    /// Removes an edge and returns its receiver. `None` if the edge has ended and was removed. O(edges).
    pub fn remove(&mut self, branch: Branch) -> Option<Receiver<T, F>> {
        let at = self.branches.iter().position(|it| *it == branch)?;
        Some(self.take_out(at))
    }

    /// Returns the number of edges. Edges that ended since the last message are included.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// True if there are no edges.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// True if one of the edges was aborted.
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    /// Returns the edges.
    pub fn iter(&self) -> impl Iterator<Item = (Branch, &Receiver<T, F>)> {
        self.branches.iter().copied().zip(&self.edges)
    }

    fn take_out(&mut self, at: usize) -> Receiver<T, F> {
        self.branches.remove(at);
        if at < self.turn {
            self.turn -= 1;
        }
        self.edges.remove(at)
    }

    /// Returns the index of the edge that follows the edge `at`; the first edge follows the last one.
    fn after(&self, at: usize) -> usize {
        if at + 1 < self.edges.len() { at + 1 } else { 0 }
    }

    /// Returns the next message of any edge, if there is one.
    ///
    /// # Errors
    /// Like [`Receiver::try_recv`]: [`TryRecvError::Empty`] if all edges are empty. If no edge is left,
    /// [`TryRecvError::Aborted`] if one of them was aborted, else [`TryRecvError::Closed`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.ask(|edge| match edge.try_recv() {
            Ok(message) => Poll::Ready(Some(message)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Closed | TryRecvError::Aborted) => Poll::Ready(None),
        }) {
            Poll::Ready(Some(message)) => Ok(message),
            Poll::Pending => Err(TryRecvError::Empty),
            Poll::Ready(None) if self.aborted => Err(TryRecvError::Aborted),
            Poll::Ready(None) => Err(TryRecvError::Closed),
        }
    }

    /// Aborts all edges, like [`Receiver::abort`].
    pub fn abort(&self) {
        self.edges.iter().for_each(Receiver::abort);
    }

    /// Asks all edges in turn until one has a message, and removes ended edges.
    fn ask(
        &mut self,
        mut ask: impl FnMut(&mut Receiver<T, F>) -> Poll<Option<T>>,
    ) -> Poll<Option<T>> {
        let mut left = self.edges.len();
        while left > 0 {
            left -= 1;
            if self.turn >= self.edges.len() {
                self.turn = 0;
            }
            match ask(&mut self.edges[self.turn]) {
                Poll::Ready(Some(message)) => {
                    self.turn = self.after(self.turn);
                    return Poll::Ready(Some(message));
                }
                Poll::Ready(None) => {
                    let edge = self.take_out(self.turn);
                    self.aborted |= edge.state() == State::Aborted;
                }
                Poll::Pending => self.turn = self.after(self.turn),
            }
        }
        match self.edges.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }

    /// Polls for the next message of any edge, like [`Receiver::poll_recv`].
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let message = self.ask(|edge| edge.poll_recv(context));
        match message.is_pending() {
            true => self.waits = true,
            false => self.end_wait(),
        }
        message
    }

    /// Waits for the next message of any edge; `None` when all have ended. Dropping the future before it is ready loses
    /// no message.
    pub async fn recv(&mut self) -> Option<T> {
        let guard = WaitGuard(self);
        poll_fn(|context| guard.0.poll_recv(context)).await
    }

    /// Stops waiting for the edges.
    fn end_wait(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.edges.iter_mut().for_each(Receiver::end_wait);
        }
    }

    /// Blocks the thread until an edge has a message; `None` when all have ended.
    pub fn recv_blocking(&mut self) -> Option<T> {
        loop {
            match self.try_recv() {
                Ok(message) => return Some(message),
                Err(TryRecvError::Empty) => Receiver::wait_any(&mut self.edges),
                Err(_) => return None,
            }
        }
    }
}

/// A guard that ends the wait when it is dropped.
struct WaitGuard<'a, T: Send + 'static, F: Flavour<T>>(&'a mut Merge<T, F>);

impl<T: Send + 'static, F: Flavour<T>> Drop for WaitGuard<'_, T, F> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

impl<T: Send + 'static, F: Flavour<T>> Default for Merge<T, F> {
    fn default() -> Self {
        Merge::new()
    }
}

impl<T: Send + 'static, F: Flavour<T>> FromIterator<Receiver<T, F>> for Merge<T, F> {
    fn from_iter<I: IntoIterator<Item = Receiver<T, F>>>(receivers: I) -> Self {
        let mut all = Merge::new();
        for end in receivers {
            all.add(end);
        }
        all
    }
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for Merge<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.branches.iter().zip(&self.edges))
            .finish()
    }
}
