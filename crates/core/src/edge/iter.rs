//! Iterators over a receiver's messages, for threads.

use super::flavour::{Flavour, Ring};
use super::receiver::Receiver;

/// An iterator that blocks the thread until the next message, and ends when the edge has ended. [`Receiver::iter`]
/// creates it.
#[derive(Debug)]
pub struct Iter<'a, T: Send + 'static, F: Flavour<T> = Ring>(&'a mut Receiver<T, F>);

/// An iterator over the buffered messages, which does not wait. [`Receiver::try_iter`] creates it.
#[derive(Debug)]
pub struct TryIter<'a, T: Send + 'static, F: Flavour<T> = Ring>(&'a mut Receiver<T, F>);

/// An iterator like [`Iter`] that owns the receiver. Dropping the iterator aborts the edge if the edge has not ended.
#[derive(Debug)]
pub struct IntoIter<T: Send + 'static, F: Flavour<T> = Ring>(Receiver<T, F>);

impl<T: Send + 'static, F: Flavour<T>> Receiver<T, F> {
    /// Returns an iterator that blocks the thread for each message and ends when the edge has
    /// ended.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_send_all(&mut vec![1, 2, 3]).expect("the edge has capacity");
    /// assert_eq!(rx.iter().next(), Some(1));
    /// drop(tx);
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [2, 3]);
    /// ```
    pub fn iter(&mut self) -> Iter<'_, T, F> {
        Iter(self)
    }

    /// Returns an iterator over the buffered messages, which does not wait.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_send_all(&mut vec![1, 2, 3]).expect("the edge has capacity");
    /// assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    pub fn try_iter(&mut self) -> TryIter<'_, T, F> {
        TryIter(self)
    }
}

impl<T: Send + 'static, F: Flavour<T>> Iterator for Iter<'_, T, F> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.recv_blocking()
    }
}

impl<T: Send + 'static, F: Flavour<T>> Iterator for TryIter<'_, T, F> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T: Send + 'static, F: Flavour<T>> Iterator for IntoIter<T, F> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.recv_blocking()
    }
}

impl<'a, T: Send + 'static, F: Flavour<T>> IntoIterator for &'a mut Receiver<T, F> {
    type Item = T;
    type IntoIter = Iter<'a, T, F>;

    fn into_iter(self) -> Iter<'a, T, F> {
        self.iter()
    }
}

impl<T: Send + 'static, F: Flavour<T>> IntoIterator for Receiver<T, F> {
    type Item = T;
    type IntoIter = IntoIter<T, F>;

    fn into_iter(self) -> IntoIter<T, F> {
        IntoIter(self)
    }
}
