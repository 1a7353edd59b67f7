//! The sending end of an edge, for every flavour.

use super::batch::Batch;
use super::error::{Aborted, SendTimeoutError, TrySendError};
use super::flavour::{Flavour, Queue, Ring, SenderEnd};
use super::meter::{Meter, State};
use super::park::{block_on, block_until};
use super::weigh::Weigh;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The sending end of an edge. Dropping it closes the edge. The sending ends of a [`queue`](super::queue()) can be
/// cloned; dropping the last one closes the edge.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (tx, mut rx) = edge::queue::<u64>(Options::new(16));
/// let senders = [1, 2, 3].map(|number| {
///     let mut tx = tx.clone();
///     thread::spawn(move || tx.send_blocking(number))
/// });
/// drop(tx); // the clones keep the edge open
/// assert_eq!(rx.iter().sum::<u64>(), 6);
/// # senders.map(|sender| sender.join().unwrap().unwrap());
/// ```
pub struct Sender<T: Send + 'static, F: Flavour<T> = Ring> {
    end: F::SenderEnd,
}

/// The number of attempts to get free capacity before a thread joins the line of waiting senders. An attempt can fail
/// because another sender takes the capacity first.
const TRIES: u32 = 16;

impl<T: Send + 'static, F: Flavour<T>> Sender<T, F> {
    pub(super) fn new(end: F::SenderEnd) -> Sender<T, F> {
        Sender { end }
    }

    /// Sends a message if that is possible at once. O(1); lock-free on a [`ring`](super::ring()).
    ///
    /// An edge whose policy drops messages accepts every message, and a dropped message counts as sent. A rendezvous
    /// accepts a message only if the receiver is waiting.
    ///
    /// # Errors
    /// [`TrySendError::Full`] with [`Overflow::Block`](super::Overflow::Block) while the edge is full,
    /// [`TrySendError::Aborted`] when it has ended. Both contain the message.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TrySendError};
    /// let (mut tx, rx) = edge::ring(Options::new(1));
    /// assert!(tx.try_send("a").is_ok());
    /// assert_eq!(tx.try_send("b"), Err(TrySendError::Full("b")));
    /// rx.abort();
    /// assert_eq!(tx.try_send("c"), Err(TrySendError::Aborted("c")));
    /// ```
    #[inline]
    pub fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        self.end.try_send(message)
    }

    /// Sends a message, and waits while the edge is full if the edge's policy is to block. At a rendezvous, waits
    /// until the message has been received.
    ///
    /// If the future is dropped before it is ready, its message is dropped, unless the edge has accepted it in the
    /// meantime. To keep the message, use [`send_until`](Sender::send_until), or wait for [`ready`](Sender::ready) and
    /// then call [`try_send`](Sender::try_send).
    ///
    /// # Errors
    /// [`Aborted`] with the message, when the edge has ended.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    ///
    /// async fn example() -> Result<(), Aborted<u32>> {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.send(7).await?;
    ///     assert_eq!(rx.recv().await, Some(7));
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[inline]
    pub async fn send(&mut self, message: T) -> Result<(), Aborted<T>> {
        match self.end.send_now(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Aborted(message)) => Err(Aborted(message)),
            Err(TrySendError::Full(message)) => SendWait::new(&mut self.end, message).await,
        }
    }

    /// Sends a message like [`send`](Sender::send), but returns the message when `limit` is ready before the message is
    /// sent. The limit is any future, for example a timer of the runtime.
    ///
    /// # Errors
    /// [`SendTimeoutError::TimedOut`] if the limit was ready before the edge had capacity,
    /// [`SendTimeoutError::Aborted`] when it has ended. Both contain the message.
    ///
    /// ```
    /// use corsair::edge::{self, SendTimeoutError, Options};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let (mut tx, _rx) = edge::ring(Options::new(1));
    /// tx.send("a").await.expect("the edge has capacity");
    /// let limit = tokio::time::sleep(Duration::from_millis(1));
    /// assert_eq!(tx.send_until("b", limit).await, Err(SendTimeoutError::TimedOut("b")));
    /// # });
    /// ```
    pub async fn send_until(
        &mut self,
        message: T,
        limit: impl Future,
    ) -> Result<(), SendTimeoutError<T>> {
        let message = match self.end.send_now(message) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Aborted(message)) => return Err(Aborted(message).into()),
            Err(TrySendError::Full(message)) => message,
        };
        let mut waiting = SendWait::new(&mut self.end, message);
        let mut limit = pin!(limit);
        poll_fn(|context| {
            if let Poll::Ready(result) = waiting.poll_send(context) {
                return Poll::Ready(result.map_err(SendTimeoutError::from));
            }
            limit.as_mut().poll(context).map(|_| waiting.give_up())
        })
        .await
    }

    /// Sends a message like [`send`](Sender::send), but blocks the thread.
    ///
    /// # Errors
    /// [`Aborted`] with the message, when the edge has ended.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.send_blocking(1)?;
    /// drop(rx);
    /// assert_eq!(tx.send_blocking(2), Err(Aborted(2)));
    /// # Ok::<(), Aborted<u32>>(())
    /// ```
    #[inline]
    pub fn send_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        match self.end.send_now(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Aborted(message)) => Err(Aborted(message)),
            Err(TrySendError::Full(message)) => match self.block(message, None) {
                Ok(()) => Ok(()),
                Err(refused) => Err(Aborted(refused.into_inner())),
            },
        }
    }

    /// Sends a message like [`send_blocking`](Sender::send_blocking), but with a time-out.
    ///
    /// # Errors
    /// [`SendTimeoutError::TimedOut`] if the edge had no capacity in time, [`SendTimeoutError::Aborted`] when it has
    /// ended. Both contain the message.
    ///
    /// ```
    /// use corsair::edge::{self, SendTimeoutError, Options};
    /// use std::time::Duration;
    /// let (mut tx, _rx) = edge::ring(Options::new(1));
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(tx.send_timeout(1, patience), Ok(()));
    /// assert_eq!(tx.send_timeout(2, patience), Err(SendTimeoutError::TimedOut(2)));
    /// ```
    pub fn send_timeout(
        &mut self,
        message: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        match self.end.send_now(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Aborted(message)) => Err(Aborted(message).into()),
            // A deadline beyond the clock's range counts as no deadline.
            Err(TrySendError::Full(message)) => {
                self.block(message, Instant::now().checked_add(timeout))
            }
        }
    }

    /// Sends as many messages of a vector as fit, in order. All other messages stay in the vector.
    ///
    /// # Errors
    /// The same errors as [`try_send`](Sender::try_send), without a message.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TrySendError};
    /// let (mut tx, _rx) = edge::ring(Options::new(2));
    /// let mut batch = vec![1, 2, 3];
    /// assert_eq!(tx.try_send_all(&mut batch), Err(TrySendError::Full(())));
    /// assert_eq!(batch, [3]);
    /// ```
    pub fn try_send_all(&mut self, messages: &mut Vec<T>) -> Result<(), TrySendError<()>> {
        match self.end.try_send_all(&mut Batch::new(messages)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(TrySendError::Full(())),
            Err(aborted) => Err(aborted.into()),
        }
    }

    /// Sends all messages of a vector in order, in batches, and waits for capacity as needed. Messages that could not
    /// be sent stay in the vector, even if the future is dropped before it is ready.
    ///
    /// # Errors
    /// [`Aborted`] when the edge takes no more.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    ///
    /// async fn example() -> Result<(), Aborted<()>> {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(64));
    ///     let mut batch = vec![1, 2, 3];
    ///     tx.send_all(&mut batch).await?;
    ///     assert!(batch.is_empty());
    ///     assert_eq!(rx.recv_many(&mut batch, 64).await, 3);
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn send_all(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut waiting = WaitingAll::new(&mut self.end, messages);
        poll_fn(|context| waiting.poll(context)).await
    }

    /// Sends messages like [`send_all`](Sender::send_all), but blocks the thread.
    ///
    /// # Errors
    /// See [`send_all`](Sender::send_all).
    pub fn send_all_blocking(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut waiting = WaitingAll::new(&mut self.end, messages);
        if waiting.end.send_all_now(&mut waiting.batch)? {
            return Ok(());
        }
        for _ in 0..TRIES {
            if !waiting.end.linger_for_capacity() {
                break;
            }
            if waiting.end.send_all_now(&mut waiting.batch)? {
                return Ok(());
            }
        }
        block_on(|context| match waiting.poll(context) {
            Poll::Pending if waiting.end.linger() => waiting.poll(context),
            result => result,
        })
    }

    /// Waits until [`try_send`](Sender::try_send) would find capacity. On a [`ring`](super::ring()) the capacity is
    /// reserved for this end; on a [`queue`](super::queue()) another sender may take it first. An edge with a limit by
    /// weight may still be too full for a heavy message. The future may be dropped at any time.
    ///
    /// # Errors
    /// [`Aborted`] when the edge takes no more.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    ///
    /// async fn example() -> Result<(), Aborted<()>> {
    ///     let (mut tx, _rx) = edge::ring(Options::new(1));
    ///     tx.ready().await?;
    ///     tx.try_send("made only when there is room").expect("the edge has capacity");
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn ready(&mut self) -> Result<(), Aborted<()>> {
        let waiting = CapacityWait(&mut self.end, PhantomData);
        poll_fn(|context| waiting.0.poll_ready(context)).await
    }

    /// Closes this end, which then can send no more messages. Buffered messages are still received, and then `recv`
    /// returns `None`. A [`queue`](super::queue()) with several sending ends is closed when the last of them is closed.
    ///
    /// ```
    /// use corsair::edge::{self, Options, State};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_send(1).expect("the edge has capacity");
    /// tx.close();
    /// assert_eq!(rx.state(), State::Closed);
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1]);
    /// ```
    pub fn close(&mut self) {
        self.end.close();
    }

    /// Stops the edge at once. When this call has returned, no message is sent or received any more. Buffered messages
    /// are dropped, a waiting `send` returns its message, and a waiting `recv` returns `None`. An edge that was closed
    /// and completely received stays closed. O(messages).
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_send(1).expect("the edge has capacity");
    /// tx.abort();
    /// assert!(tx.try_send(2).is_err());
    /// assert_eq!(rx.recv_blocking(), None);
    /// ```
    pub fn abort(&self) {
        self.end.edge().abort();
    }

    super::meter::of_the_edge!();

    pub(super) fn poll_send(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        self.end.poll_send(message, context)
    }

    pub(super) fn withdraw(&mut self, message: &mut Option<T>) {
        self.end.withdraw(message);
    }

    #[cold]
    fn block(
        &mut self,
        mut message: T,
        deadline: Option<Instant>,
    ) -> Result<(), SendTimeoutError<T>> {
        for _ in 0..TRIES {
            if !self.end.linger_for_capacity() {
                break;
            }
            message = match self.end.send_now(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Aborted(message)) => return Err(Aborted(message).into()),
                Err(TrySendError::Full(message)) => message,
            };
        }
        let mut waiting = SendWait::new(&mut self.end, message);
        let result = block_until(deadline, |context| match waiting.poll_send(context) {
            Poll::Pending if waiting.end.linger() => waiting.poll_send(context),
            result => result,
        });
        match result {
            Poll::Ready(result) => Ok(result?),
            Poll::Pending => waiting.give_up(),
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Clone for Sender<T, Queue<W>> {
    /// Creates another sending end of the edge. The new end is closed if this end is closed.
    fn clone(&self) -> Self {
        Sender::new(self.end.clone())
    }
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for Sender<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

/// A future that ends when a message is sent. If dropped earlier, it takes the message back.
struct SendWait<'a, T, E: SenderEnd<T>> {
    end: &'a mut E,
    message: Option<T>,
    pending: bool,
}

impl<'a, T, E: SenderEnd<T>> SendWait<'a, T, E> {
    fn new(end: &'a mut E, message: T) -> SendWait<'a, T, E> {
        SendWait {
            end,
            message: Some(message),
            pending: false,
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<T>>> {
        let result = self.end.poll_send(&mut self.message, context);
        self.pending = result.is_pending();
        result
    }

    /// Takes the message back, unless the edge has accepted it.
    fn give_up(&mut self) -> Result<(), SendTimeoutError<T>> {
        self.end.withdraw(&mut self.message);
        self.pending = false;
        match self.message.take() {
            None => Ok(()),
            Some(message) => Err(SendTimeoutError::TimedOut(message)),
        }
    }
}

// The message is never pinned.
impl<T, E: SenderEnd<T>> Unpin for SendWait<'_, T, E> {}

impl<T, E: SenderEnd<T>> Future for SendWait<'_, T, E> {
    type Output = Result<(), Aborted<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_send(context)
    }
}

impl<T, E: SenderEnd<T>> Drop for SendWait<'_, T, E> {
    fn drop(&mut self) {
        if self.pending {
            self.end.withdraw(&mut self.message);
        }
    }
}

/// A future that ends when all messages of a vector are sent. If dropped earlier, it takes back the unsent messages.
struct WaitingAll<'a, T, E: SenderEnd<T>> {
    end: &'a mut E,
    batch: Batch<'a, T>,
    pending: bool,
}

impl<'a, T, E: SenderEnd<T>> WaitingAll<'a, T, E> {
    fn new(end: &'a mut E, messages: &'a mut Vec<T>) -> WaitingAll<'a, T, E> {
        WaitingAll {
            end,
            batch: Batch::new(messages),
            pending: false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        let result = self.end.poll_send_all(&mut self.batch, context);
        self.pending = result.is_pending();
        result
    }
}

impl<T, E: SenderEnd<T>> Drop for WaitingAll<'_, T, E> {
    fn drop(&mut self) {
        let mut first = None;
        if self.pending {
            self.end.withdraw(&mut first);
        }
        if let Some(first) = first {
            self.batch.give_back(first);
        }
    }
}

/// Waits for capacity.
struct CapacityWait<'a, T, E: SenderEnd<T>>(&'a mut E, PhantomData<fn(T)>);

impl<T, E: SenderEnd<T>> Drop for CapacityWait<'_, T, E> {
    fn drop(&mut self) {
        self.0.withdraw(&mut None);
    }
}
