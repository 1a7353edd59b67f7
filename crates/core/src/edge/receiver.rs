//! The receiving end of an edge, for every flavour.

use super::error::{RecvTimeoutError, TryRecvError};
use super::flavour::{Flavour, ReceiverEnd, Ring};
use super::meter::{Meter, State};
use super::park::{block_on, block_until};
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The receiving end of an edge. Dropping it aborts the edge, unless it was closed and everything has
/// been received.
///
/// Threads can use a receiver as an iterator, by [`iter`](Receiver::iter) and [`IntoIterator`]; tasks can use it as a
/// [`Stream`](futures_core::Stream).
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, rx) = edge::ring(Options::new(16));
/// let sender = thread::spawn(move || (1..=100).all(|number| tx.send_blocking(number).is_ok()));
/// assert_eq!(rx.into_iter().sum::<u32>(), 5050);
/// assert!(sender.join().unwrap());
/// ```
pub struct Receiver<T: Send + 'static, F: Flavour<T> = Ring> {
    end: F::ReceiverEnd,
}

impl<T: Send + 'static, F: Flavour<T>> Receiver<T, F> {
    pub(super) fn new(end: F::ReceiverEnd) -> Receiver<T, F> {
        Receiver { end }
    }

    /// Returns the next message if there is one. O(1); lock-free on a [`ring`](super::ring()).
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if there is no message now; [`TryRecvError::Closed`] or [`TryRecvError::Aborted`] if the
    /// edge has ended.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TryRecvError};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(7).expect("the edge has capacity");
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.end.try_recv()
    }

    /// Waits for the next message; `None` when the edge has ended. [`state`](Receiver::state) then returns how it
    /// ended. Dropping the future before it is ready loses no message.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    ///
    /// async fn example() {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.send(7).await.expect("the edge is open");
    ///     drop(tx);
    ///     assert_eq!(rx.recv().await, Some(7));
    ///     assert_eq!(rx.recv().await, None);
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example());
    /// ```
    #[inline]
    pub async fn recv(&mut self) -> Option<T> {
        match self.recv_now() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => {
                ReceiveWait::new(&mut self.end, F::ReceiverEnd::poll_recv).await
            }
            Err(_) => None,
        }
    }

    /// Waits like [`recv`](Receiver::recv), but only until `limit` is ready. The limit is any future, for example a
    /// timer of the runtime.
    ///
    /// # Errors
    /// [`RecvTimeoutError::TimedOut`] if the limit was ready before a message arrived; [`RecvTimeoutError::Closed`] or
    /// [`RecvTimeoutError::Aborted`] if the edge has ended.
    ///
    /// ```
    /// use corsair::edge::{self, RecvTimeoutError, Options};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let (_tx, mut rx) = edge::ring::<u32>(Options::new(1));
    /// let limit = tokio::time::sleep(Duration::from_millis(1));
    /// assert_eq!(rx.recv_until(limit).await, Err(RecvTimeoutError::TimedOut));
    /// # });
    /// ```
    pub async fn recv_until(&mut self, limit: impl Future) -> Result<T, RecvTimeoutError> {
        let mut limit = pin!(limit);
        let received = {
            let mut recv = pin!(self.recv());
            poll_fn(|context| match recv.as_mut().poll(context) {
                Poll::Ready(message) => Poll::Ready(Some(message)),
                Poll::Pending => limit.as_mut().poll(context).map(|_| None),
            })
            .await
        };
        self.in_time(received)
    }

    /// Receives a message like [`recv`](Receiver::recv), but blocks the thread.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.send_blocking(7).expect("the edge is open");
    /// assert_eq!(rx.recv_blocking(), Some(7));
    /// ```
    #[inline]
    pub fn recv_blocking(&mut self) -> Option<T> {
        match self.recv_now() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => {
                self.end.linger();
                block_on(|context| self.end.poll_recv(context))
            }
            Err(_) => None,
        }
    }

    /// Receives a message like [`recv_blocking`](Receiver::recv_blocking), but with a time-out.
    ///
    /// # Errors
    /// [`RecvTimeoutError::TimedOut`] if no message arrived in time; [`RecvTimeoutError::Closed`] or
    /// [`RecvTimeoutError::Aborted`] if the edge has ended.
    ///
    /// ```
    /// use corsair::edge::{self, RecvTimeoutError, Options};
    /// use std::time::Duration;
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(rx.recv_timeout(patience), Err(RecvTimeoutError::TimedOut));
    /// tx.try_send(7).expect("the edge has capacity");
    /// assert_eq!(rx.recv_timeout(patience), Ok(7));
    /// drop(tx);
    /// assert_eq!(rx.recv_timeout(patience), Err(RecvTimeoutError::Closed));
    /// ```
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let received = match self.end.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Empty) => {
                // A deadline beyond the clock's range counts as no deadline.
                let deadline = Instant::now().checked_add(timeout);
                self.end.linger();
                block_until(deadline, |context| self.end.poll_recv(context))
            }
            Err(_) => Poll::Ready(None),
        };
        self.end.end_wait();
        self.in_time(match received {
            Poll::Ready(message) => Some(message),
            Poll::Pending => None,
        })
    }

    /// Returns the next message, if there is one. Methods that may wait call this method first.
    #[inline]
    fn recv_now(&mut self) -> Result<T, TryRecvError> {
        match self.end.is_known_empty() {
            true => Err(TryRecvError::Empty),
            false => self.end.try_recv(),
        }
    }

    /// Converts the result of a wait with a time limit; the outer `None` means a time-out.
    fn in_time(&self, received: Option<Option<T>>) -> Result<T, RecvTimeoutError> {
        match received {
            Some(Some(message)) => Ok(message),
            None => Err(RecvTimeoutError::TimedOut),
            Some(None) if self.is_aborted() => Err(RecvTimeoutError::Aborted),
            Some(None) => Err(RecvTimeoutError::Closed),
        }
    }

    /// Appends the available messages to a vector, at most `max` (0 counts as 1). Returns the number of appended
    /// messages.
    ///
    /// # Errors
    /// The same errors as [`try_recv`](Receiver::try_recv).
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_send_all(&mut vec![1, 2, 3]).expect("the edge has capacity");
    /// let mut batch = Vec::new();
    /// assert_eq!(rx.try_recv_many(&mut batch, 2), Ok(2));
    /// assert_eq!(batch, [1, 2]);
    /// ```
    #[inline]
    pub fn try_recv_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, TryRecvError> {
        self.end.try_recv_many(messages, max)
    }

    /// Waits for messages and appends the available ones to a vector, at most `max` (0 counts as 1). Returns the
    /// number of appended messages; 0 if the edge has ended. Dropping the future before it is ready loses no message.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    ///
    /// async fn example() {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.send_all(&mut vec![1, 2, 3]).await.expect("the edge is open");
    ///     let mut batch = Vec::new();
    ///     assert_eq!(rx.recv_many(&mut batch, 64).await, 3);
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example());
    /// ```
    #[inline]
    pub async fn recv_many(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.end.try_recv_many(messages, max) {
            Ok(count) => count,
            Err(TryRecvError::Empty) => {
                let take = |end: &mut F::ReceiverEnd, context: &mut Context<'_>| {
                    end.poll_recv_many(messages, max, context)
                };
                ReceiveWait::new(&mut self.end, take).await
            }
            Err(_) => 0,
        }
    }

    /// Receives messages like [`recv_many`](Receiver::recv_many), but blocks the thread.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.send_all_blocking(&mut vec![1, 2, 3]).expect("the edge is open");
    /// let mut batch = Vec::new();
    /// assert_eq!(rx.recv_many_blocking(&mut batch, 64), 3);
    /// ```
    pub fn recv_many_blocking(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.end.try_recv_many(messages, max) {
            Ok(count) => count,
            Err(TryRecvError::Empty) => {
                self.end.linger();
                block_on(|context| self.end.poll_recv_many(messages, max, context))
            }
            Err(_) => 0,
        }
    }

    /// Polls for the next message; ready with `None` when the edge has ended. Only the waker of the last call is woken,
    /// when polling again may succeed.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// use std::task::{Context, Poll, Waker};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(rx.poll_recv(&mut context).is_pending());
    /// tx.try_send(7).expect("the edge has capacity");
    /// assert_eq!(rx.poll_recv(&mut context), Poll::Ready(Some(7)));
    /// ```
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.end.poll_recv(context)
    }

    /// Ends a wait that a pending [`poll_recv`](Receiver::poll_recv) has begun. Call this method before other work, so
    /// that the time until the next poll does not count as blocked time.
    pub fn end_wait(&mut self) {
        self.end.end_wait();
    }

    /// Blocks until [`try_recv`](Receiver::try_recv) may succeed on at least one of the receivers, because it has a
    /// message or has ended. Returns at once if there are no receivers. O(receivers).
    ///
    /// ```
    /// use corsair::edge::{self, Receiver, Options};
    /// let (mut tx, first) = edge::ring(Options::new(4));
    /// let (_tx, second) = edge::ring(Options::new(4));
    /// tx.try_send(7).expect("the edge has capacity");
    /// let mut both = [first, second];
    /// Receiver::wait_any(&mut both);
    /// assert_eq!(both[0].try_recv(), Ok(7));
    /// ```
    pub fn wait_any(receivers: &mut [Self]) {
        block_on(|context| {
            let mut ready = receivers.is_empty();
            for receiver in receivers.iter_mut() {
                ready |= receiver.end.poll_some(context);
            }
            match ready {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        receivers.iter_mut().for_each(Receiver::end_wait);
    }

    /// Aborts the edge, like [`Sender::abort`](super::Sender::abort).
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    /// let (mut tx, rx) = edge::ring(Options::new(4));
    /// rx.abort();
    /// assert_eq!(tx.send_blocking(7), Err(Aborted(7)));
    /// ```
    pub fn abort(&self) {
        self.end.edge().abort();
    }

    super::meter::of_the_edge!();
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for Receiver<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

/// Polls like [`Receiver::poll_recv`].
impl<T: Send + 'static, F: Flavour<T>> futures_core::Stream for Receiver<T, F> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context)
    }
}

/// A future that polls an end; dropping it ends the wait.
struct ReceiveWait<'a, T, E: ReceiverEnd<T>, P> {
    end: &'a mut E,
    poll: P,
    message: PhantomData<fn() -> T>,
}

impl<'a, T, E: ReceiverEnd<T>, P> ReceiveWait<'a, T, E, P> {
    fn new(end: &'a mut E, poll: P) -> Self {
        ReceiveWait {
            end,
            poll,
            message: PhantomData,
        }
    }
}

// The poll function is never pinned.
impl<T, E: ReceiverEnd<T>, P> Unpin for ReceiveWait<'_, T, E, P> {}

impl<T, E, P, R> Future for ReceiveWait<'_, T, E, P>
where
    E: ReceiverEnd<T>,
    P: FnMut(&mut E, &mut Context<'_>) -> Poll<R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = self.get_mut();
        (this.poll)(this.end, context)
    }
}

impl<T, E: ReceiverEnd<T>, P> Drop for ReceiveWait<'_, T, E, P> {
    fn drop(&mut self) {
        self.end.end_wait();
    }
}
