//! The end that accepts messages, of every flavour.

use super::batch::Batch;
use super::error::{Aborted, CollectTimeoutError, TryCollectError};
use super::flavour::{Collecting, Flavour, Queue, Ring};
use super::meter::{Meter, State};
use super::park::{block_on, block_until};
use super::weigh::Weigh;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The collecting end of an edge. Dropping it closes the edge; of a [`queue`](super::queue()), whose
/// collecting ends can be cloned, dropping the last one does.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (tx, mut rx) = edge::queue::<u64>(Options::new(16));
/// let senders = [1, 2, 3].map(|number| {
///     let mut tx = tx.clone();
///     thread::spawn(move || tx.collect_blocking(number))
/// });
/// drop(tx); // the clones keep the edge open
/// assert_eq!(rx.iter().sum::<u64>(), 6);
/// # senders.map(|sender| sender.join().unwrap().unwrap());
/// ```
pub struct Collector<T: Send + 'static, F: Flavour<T> = Ring> {
    end: F::Collecting,
}

/// How often a thread tries to get room that others may take before it, until it waits in their line.
const TRIES: u32 = 16;

impl<T: Send + 'static, F: Flavour<T>> Collector<T, F> {
    pub(super) fn new(end: F::Collecting) -> Collector<T, F> {
        Collector { end }
    }

    /// Accepts a message if that is possible at once. O(1); on a [`ring`](super::ring()) without a lock.
    ///
    /// Policies that drop always accept, and the dropped message counts as collected. A rendezvous accepts if
    /// the emitter waits at this moment; the message is then kept for it.
    ///
    /// # Errors
    /// [`TryCollectError::Full`] with [`Overflow::Block`](super::Overflow::Block) while there is no
    /// room, [`TryCollectError::Aborted`] when the edge takes no more. Both hold the message.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TryCollectError};
    /// let (mut tx, rx) = edge::ring(Options::new(1));
    /// assert!(tx.try_collect("a").is_ok());
    /// assert_eq!(tx.try_collect("b"), Err(TryCollectError::Full("b")));
    /// rx.abort();
    /// assert_eq!(tx.try_collect("c"), Err(TryCollectError::Aborted("c")));
    /// ```
    #[inline]
    pub fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.end.try_collect(message)
    }

    /// Accepts a message, and waits while the edge is full, if its policy is to block. At a rendezvous it
    /// waits until the message has been emitted.
    ///
    /// A future that is dropped before it is ready drops its message, unless that was accepted in the
    /// meantime. To keep it, use [`collect_until`](Collector::collect_until), or wait for
    /// [`ready`](Collector::ready) and then [`try_collect`](Collector::try_collect).
    ///
    /// # Errors
    /// [`Aborted`] with the message when the edge takes no more.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    ///
    /// async fn example() -> Result<(), Aborted<u32>> {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.collect(7).await?;
    ///     assert_eq!(rx.emit().await, Some(7));
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[inline]
    pub async fn collect(&mut self, message: T) -> Result<(), Aborted<T>> {
        match self.end.collect_at_once(message) {
            Ok(()) => Ok(()),
            Err(TryCollectError::Aborted(message)) => Err(Aborted(message)),
            Err(TryCollectError::Full(message)) => Waiting::new(&mut self.end, message).await,
        }
    }

    /// As [`collect`](Collector::collect), but gives the message back once `limit` is ready, which is any
    /// future, such as a timer of the runtime.
    ///
    /// # Errors
    /// [`CollectTimeoutError::TimedOut`] if the limit was ready before there was room,
    /// [`CollectTimeoutError::Aborted`] when the edge takes no more. Both hold the message.
    ///
    /// ```
    /// use corsair::edge::{self, CollectTimeoutError, Options};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let (mut tx, _rx) = edge::ring(Options::new(1));
    /// tx.collect("a").await.expect("there is room");
    /// let limit = tokio::time::sleep(Duration::from_millis(1));
    /// assert_eq!(tx.collect_until("b", limit).await, Err(CollectTimeoutError::TimedOut("b")));
    /// # });
    /// ```
    pub async fn collect_until(
        &mut self,
        message: T,
        limit: impl Future,
    ) -> Result<(), CollectTimeoutError<T>> {
        let message = match self.end.collect_at_once(message) {
            Ok(()) => return Ok(()),
            Err(TryCollectError::Aborted(message)) => return Err(Aborted(message).into()),
            Err(TryCollectError::Full(message)) => message,
        };
        let mut waiting = Waiting::new(&mut self.end, message);
        let mut limit = pin!(limit);
        poll_fn(|context| {
            if let Poll::Ready(result) = waiting.poll_collect(context) {
                return Poll::Ready(result.map_err(CollectTimeoutError::from));
            }
            limit.as_mut().poll(context).map(|_| waiting.give_up())
        })
        .await
    }

    /// As [`collect`](Collector::collect), blocking the thread.
    ///
    /// # Errors
    /// [`Aborted`] with the message when the edge takes no more.
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.collect_blocking(1)?;
    /// drop(rx);
    /// assert_eq!(tx.collect_blocking(2), Err(Aborted(2)));
    /// # Ok::<(), Aborted<u32>>(())
    /// ```
    #[inline]
    pub fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        match self.end.collect_at_once(message) {
            Ok(()) => Ok(()),
            Err(TryCollectError::Aborted(message)) => Err(Aborted(message)),
            Err(TryCollectError::Full(message)) => match self.block(message, None) {
                Ok(()) => Ok(()),
                Err(refused) => Err(Aborted(refused.into_inner())),
            },
        }
    }

    /// As [`collect_blocking`](Collector::collect_blocking), for at most as long as this.
    ///
    /// # Errors
    /// [`CollectTimeoutError::TimedOut`] if there was no room in time,
    /// [`CollectTimeoutError::Aborted`] when the edge takes no more. Both hold the message.
    ///
    /// ```
    /// use corsair::edge::{self, CollectTimeoutError, Options};
    /// use std::time::Duration;
    /// let (mut tx, _rx) = edge::ring(Options::new(1));
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(tx.collect_timeout(1, patience), Ok(()));
    /// assert_eq!(tx.collect_timeout(2, patience), Err(CollectTimeoutError::TimedOut(2)));
    /// ```
    pub fn collect_timeout(
        &mut self,
        message: T,
        timeout: Duration,
    ) -> Result<(), CollectTimeoutError<T>> {
        match self.end.collect_at_once(message) {
            Ok(()) => Ok(()),
            Err(TryCollectError::Aborted(message)) => Err(Aborted(message).into()),
            // A deadline that is too late for the clock is none.
            Err(TryCollectError::Full(message)) => {
                self.block(message, Instant::now().checked_add(timeout))
            }
        }
    }

    /// Accepts as many messages of a vector as there is room for, in order. What is left stays in the vector.
    ///
    /// # Errors
    /// As [`try_collect`](Collector::try_collect), without a message.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TryCollectError};
    /// let (mut tx, _rx) = edge::ring(Options::new(2));
    /// let mut batch = vec![1, 2, 3];
    /// assert_eq!(tx.try_collect_all(&mut batch), Err(TryCollectError::Full(())));
    /// assert_eq!(batch, [3]);
    /// ```
    pub fn try_collect_all(&mut self, messages: &mut Vec<T>) -> Result<(), TryCollectError<()>> {
        match self.end.try_collect_all(&mut Batch::new(messages)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(TryCollectError::Full(())),
            Err(aborted) => Err(aborted.into()),
        }
    }

    /// Accepts all messages of a vector, in order and many at once, and waits for room as often as
    /// it has to. What could not be collected is left in the vector, also if the future is dropped
    /// before it is ready.
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
    ///     tx.collect_all(&mut batch).await?;
    ///     assert!(batch.is_empty());
    ///     assert_eq!(rx.emit_many(&mut batch, 64).await, 3);
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn collect_all(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut waiting = WaitingAll::new(&mut self.end, messages);
        poll_fn(|context| waiting.poll(context)).await
    }

    /// As [`collect_all`](Collector::collect_all), blocking the thread.
    ///
    /// # Errors
    /// As there.
    pub fn collect_all_blocking(&mut self, messages: &mut Vec<T>) -> Result<(), Aborted<()>> {
        let mut waiting = WaitingAll::new(&mut self.end, messages);
        if waiting.end.collect_all_at_once(&mut waiting.batch)? {
            return Ok(());
        }
        for _ in 0..TRIES {
            if !waiting.end.linger_for_room() {
                break;
            }
            if waiting.end.collect_all_at_once(&mut waiting.batch)? {
                return Ok(());
            }
        }
        block_on(|context| match waiting.poll(context) {
            Poll::Pending if waiting.end.linger() => waiting.poll(context),
            result => result,
        })
    }

    /// Waits until [`try_collect`](Collector::try_collect) would not find the edge full. On a
    /// [`ring`](super::ring()) the room is this end's; on a [`queue`](super::queue()) another collector may take
    /// it first. An edge with a limit by weight may still have no room for a heavy message. May be dropped at
    /// any time.
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
    ///     tx.try_collect("made only when there is room").expect("there is room");
    ///     Ok(())
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn ready(&mut self) -> Result<(), Aborted<()>> {
        let waiting = WaitingForRoom(&mut self.end, PhantomData);
        poll_fn(|context| waiting.0.poll_ready(context)).await
    }

    /// Collects no more. What is buffered is still emitted, then `emit` ends. Of several collecting ends of a
    /// [`queue`](super::queue()) the last one closes the edge.
    ///
    /// ```
    /// use corsair::edge::{self, Options, State};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_collect(1).expect("there is room");
    /// tx.close();
    /// assert_eq!(rx.state(), State::Closed);
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1]);
    /// ```
    pub fn close(&mut self) {
        self.end.close();
    }

    /// Stops the edge at once. When this has returned, nothing is collected and nothing is emitted
    /// any more. What is buffered is dropped; a waiting `collect` gives its message back, a waiting
    /// `emit` ends. An edge that was closed and has emitted everything stays closed. O(messages).
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_collect(1).expect("there is room");
    /// tx.abort();
    /// assert!(tx.try_collect(2).is_err());
    /// assert_eq!(rx.emit_blocking(), None);
    /// ```
    pub fn abort(&self) {
        self.end.edge().abort();
    }

    super::meter::of_the_edge!();

    pub(super) fn poll_collect(
        &mut self,
        message: &mut Option<T>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<T>>> {
        self.end.poll_collect(message, context)
    }

    pub(super) fn withdraw(&mut self, message: &mut Option<T>) {
        self.end.withdraw(message);
    }

    #[cold]
    fn block(
        &mut self,
        mut message: T,
        deadline: Option<Instant>,
    ) -> Result<(), CollectTimeoutError<T>> {
        for _ in 0..TRIES {
            if !self.end.linger_for_room() {
                break;
            }
            message = match self.end.collect_at_once(message) {
                Ok(()) => return Ok(()),
                Err(TryCollectError::Aborted(message)) => return Err(Aborted(message).into()),
                Err(TryCollectError::Full(message)) => message,
            };
        }
        let mut waiting = Waiting::new(&mut self.end, message);
        let result = block_until(deadline, |context| match waiting.poll_collect(context) {
            Poll::Pending if waiting.end.linger() => waiting.poll_collect(context),
            result => result,
        });
        match result {
            Poll::Ready(result) => Ok(result?),
            Poll::Pending => waiting.give_up(),
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Clone for Collector<T, Queue<W>> {
    /// Another collecting end of the same edge; of a closed one, a closed one.
    fn clone(&self) -> Self {
        Collector::new(self.end.clone())
    }
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for Collector<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

/// Waits until a message is collected. Dropped before, it takes the message back.
struct Waiting<'a, T, E: Collecting<T>> {
    end: &'a mut E,
    message: Option<T>,
    pending: bool,
}

impl<'a, T, E: Collecting<T>> Waiting<'a, T, E> {
    fn new(end: &'a mut E, message: T) -> Waiting<'a, T, E> {
        Waiting {
            end,
            message: Some(message),
            pending: false,
        }
    }

    fn poll_collect(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<T>>> {
        let result = self.end.poll_collect(&mut self.message, context);
        self.pending = result.is_pending();
        result
    }

    /// Takes the message back, unless it has been accepted in the meantime.
    fn give_up(&mut self) -> Result<(), CollectTimeoutError<T>> {
        self.end.withdraw(&mut self.message);
        self.pending = false;
        match self.message.take() {
            None => Ok(()),
            Some(message) => Err(CollectTimeoutError::TimedOut(message)),
        }
    }
}

// The message is not pinned.
impl<T, E: Collecting<T>> Unpin for Waiting<'_, T, E> {}

impl<T, E: Collecting<T>> Future for Waiting<'_, T, E> {
    type Output = Result<(), Aborted<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_collect(context)
    }
}

impl<T, E: Collecting<T>> Drop for Waiting<'_, T, E> {
    fn drop(&mut self) {
        if self.pending {
            self.end.withdraw(&mut self.message);
        }
    }
}

/// Waits until all of a vector is collected. Dropped before, it takes back what has not been.
struct WaitingAll<'a, T, E: Collecting<T>> {
    end: &'a mut E,
    batch: Batch<'a, T>,
    pending: bool,
}

impl<'a, T, E: Collecting<T>> WaitingAll<'a, T, E> {
    fn new(end: &'a mut E, messages: &'a mut Vec<T>) -> WaitingAll<'a, T, E> {
        WaitingAll {
            end,
            batch: Batch::new(messages),
            pending: false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        let result = self.end.poll_collect_all(&mut self.batch, context);
        self.pending = result.is_pending();
        result
    }
}

impl<T, E: Collecting<T>> Drop for WaitingAll<'_, T, E> {
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

/// Waits for room.
struct WaitingForRoom<'a, T, E: Collecting<T>>(&'a mut E, PhantomData<fn(T)>);

impl<T, E: Collecting<T>> Drop for WaitingForRoom<'_, T, E> {
    fn drop(&mut self) {
        self.0.withdraw(&mut None);
    }
}
