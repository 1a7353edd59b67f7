//! The end that yields messages, of every flavour.

use super::error::{EmitTimeoutError, TryEmitError};
use super::flavour::{Emitting, Flavour, Ring};
use super::meter::{Meter, State};
use super::park::{block_on, block_until};
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The emitting end of an edge. Dropping it aborts the edge, unless it was closed and everything has
/// been emitted.
///
/// It is an iterator for threads, by [`iter`](Emitter::iter) and [`IntoIterator`], and a
/// [`Stream`](futures_core::Stream) for tasks.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, rx) = edge::ring(Options::new(16));
/// let sender = thread::spawn(move || (1..=100).all(|number| tx.collect_blocking(number).is_ok()));
/// assert_eq!(rx.into_iter().sum::<u32>(), 5050);
/// assert!(sender.join().unwrap());
/// ```
pub struct Emitter<T: Send + 'static, F: Flavour<T> = Ring> {
    end: F::Emitting,
}

impl<T: Send + 'static, F: Flavour<T>> Emitter<T, F> {
    pub(super) fn new(end: F::Emitting) -> Emitter<T, F> {
        Emitter { end }
    }

    /// Yields the next message if there is one. O(1); on a [`ring`](super::ring()) without a lock.
    ///
    /// # Errors
    /// [`TryEmitError::Empty`] if there is none now; [`TryEmitError::Closed`] and
    /// [`TryEmitError::Aborted`] if there will be none any more.
    ///
    /// ```
    /// use corsair::edge::{self, Options, TryEmitError};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// assert_eq!(rx.try_emit(), Err(TryEmitError::Empty));
    /// tx.try_collect(7).expect("there is room");
    /// drop(tx);
    /// assert_eq!(rx.try_emit(), Ok(7));
    /// assert_eq!(rx.try_emit(), Err(TryEmitError::Closed));
    /// ```
    #[inline]
    pub fn try_emit(&mut self) -> Result<T, TryEmitError> {
        self.end.try_emit()
    }

    /// Waits for the next message; `None` when there will be none any more, and
    /// [`state`](Emitter::state) tells why. A future that is dropped before it is ready has taken nothing.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    ///
    /// async fn example() {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.collect(7).await.expect("the edge is open");
    ///     drop(tx);
    ///     assert_eq!(rx.emit().await, Some(7));
    ///     assert_eq!(rx.emit().await, None);
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example());
    /// ```
    #[inline]
    pub async fn emit(&mut self) -> Option<T> {
        match self.emit_at_once() {
            Ok(message) => Some(message),
            Err(TryEmitError::Empty) => Waiting::new(&mut self.end, F::Emitting::poll_emit).await,
            Err(_) => None,
        }
    }

    /// As [`emit`](Emitter::emit), but gives up once `limit` is ready, which is any future, such as a timer of
    /// the runtime.
    ///
    /// # Errors
    /// [`EmitTimeoutError::TimedOut`] if the limit was ready before there was a message;
    /// [`EmitTimeoutError::Closed`] and [`EmitTimeoutError::Aborted`] if there will be none any more.
    ///
    /// ```
    /// use corsair::edge::{self, EmitTimeoutError, Options};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let (_tx, mut rx) = edge::ring::<u32>(Options::new(1));
    /// let limit = tokio::time::sleep(Duration::from_millis(1));
    /// assert_eq!(rx.emit_until(limit).await, Err(EmitTimeoutError::TimedOut));
    /// # });
    /// ```
    pub async fn emit_until(&mut self, limit: impl Future) -> Result<T, EmitTimeoutError> {
        let mut limit = pin!(limit);
        let emitted = {
            let mut emit = pin!(self.emit());
            poll_fn(|context| match emit.as_mut().poll(context) {
                Poll::Ready(message) => Poll::Ready(Some(message)),
                Poll::Pending => limit.as_mut().poll(context).map(|_| None),
            })
            .await
        };
        self.in_time(emitted)
    }

    /// As [`emit`](Emitter::emit), blocking the thread.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.collect_blocking(7).expect("the edge is open");
    /// assert_eq!(rx.emit_blocking(), Some(7));
    /// ```
    #[inline]
    pub fn emit_blocking(&mut self) -> Option<T> {
        match self.emit_at_once() {
            Ok(message) => Some(message),
            Err(TryEmitError::Empty) => {
                self.end.linger();
                block_on(|context| self.end.poll_emit(context))
            }
            Err(_) => None,
        }
    }

    /// As [`emit_blocking`](Emitter::emit_blocking), for at most as long as this.
    ///
    /// # Errors
    /// [`EmitTimeoutError::TimedOut`] if there was no message in time;
    /// [`EmitTimeoutError::Closed`] and [`EmitTimeoutError::Aborted`] if there will be none any more.
    ///
    /// ```
    /// use corsair::edge::{self, EmitTimeoutError, Options};
    /// use std::time::Duration;
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(rx.emit_timeout(patience), Err(EmitTimeoutError::TimedOut));
    /// tx.try_collect(7).expect("there is room");
    /// assert_eq!(rx.emit_timeout(patience), Ok(7));
    /// drop(tx);
    /// assert_eq!(rx.emit_timeout(patience), Err(EmitTimeoutError::Closed));
    /// ```
    pub fn emit_timeout(&mut self, timeout: Duration) -> Result<T, EmitTimeoutError> {
        let emitted = match self.end.try_emit() {
            Ok(message) => return Ok(message),
            Err(TryEmitError::Empty) => {
                // A deadline that is too late for the clock is none.
                let deadline = Instant::now().checked_add(timeout);
                self.end.linger();
                block_until(deadline, |context| self.end.poll_emit(context))
            }
            Err(_) => Poll::Ready(None),
        };
        self.end.rest();
        self.in_time(match emitted {
            Poll::Ready(message) => Some(message),
            Poll::Pending => None,
        })
    }

    /// The next message, if there is one, for a method that may wait.
    #[inline]
    fn emit_at_once(&mut self) -> Result<T, TryEmitError> {
        match self.end.is_known_empty() {
            true => Err(TryEmitError::Empty),
            false => self.end.try_emit(),
        }
    }

    /// What was emitted; `None`: not in time.
    fn in_time(&self, emitted: Option<Option<T>>) -> Result<T, EmitTimeoutError> {
        match emitted {
            Some(Some(message)) => Ok(message),
            None => Err(EmitTimeoutError::TimedOut),
            Some(None) if self.is_aborted() => Err(EmitTimeoutError::Aborted),
            Some(None) => Err(EmitTimeoutError::Closed),
        }
    }

    /// Appends as many messages as there are to a vector, at most `max`, and at least one, also if `max` is 0.
    /// Returns how many.
    ///
    /// # Errors
    /// As [`try_emit`](Emitter::try_emit).
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.try_collect_all(&mut vec![1, 2, 3]).expect("there is room");
    /// let mut batch = Vec::new();
    /// assert_eq!(rx.try_emit_many(&mut batch, 2), Ok(2));
    /// assert_eq!(batch, [1, 2]);
    /// ```
    #[inline]
    pub fn try_emit_many(
        &mut self,
        messages: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, TryEmitError> {
        self.end.try_emit_many(messages, max)
    }

    /// Waits for messages and appends as many as there are to a vector, at most `max`, and at
    /// least one, also if `max` is 0. Returns how many; 0 when there will be none any more. A future
    /// that is dropped before it is ready has taken nothing.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    ///
    /// async fn example() {
    ///     let (mut tx, mut rx) = edge::ring(Options::new(4));
    ///     tx.collect_all(&mut vec![1, 2, 3]).await.expect("the edge is open");
    ///     let mut batch = Vec::new();
    ///     assert_eq!(rx.emit_many(&mut batch, 64).await, 3);
    /// }
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example());
    /// ```
    #[inline]
    pub async fn emit_many(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.end.try_emit_many(messages, max) {
            Ok(count) => count,
            Err(TryEmitError::Empty) => {
                let take = |end: &mut F::Emitting, context: &mut Context<'_>| {
                    end.poll_emit_many(messages, max, context)
                };
                Waiting::new(&mut self.end, take).await
            }
            Err(_) => 0,
        }
    }

    /// As [`emit_many`](Emitter::emit_many), blocking the thread.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// tx.collect_all_blocking(&mut vec![1, 2, 3]).expect("the edge is open");
    /// let mut batch = Vec::new();
    /// assert_eq!(rx.emit_many_blocking(&mut batch, 64), 3);
    /// ```
    pub fn emit_many_blocking(&mut self, messages: &mut Vec<T>, max: usize) -> usize {
        match self.end.try_emit_many(messages, max) {
            Ok(count) => count,
            Err(TryEmitError::Empty) => {
                self.end.linger();
                block_on(|context| self.end.poll_emit_many(messages, max, context))
            }
            Err(_) => 0,
        }
    }

    /// The next message, or `None` when there will be none any more. The waker is called when it is worth
    /// to ask again; only that of the last call.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// use std::task::{Context, Poll, Waker};
    /// let (mut tx, mut rx) = edge::ring(Options::new(4));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(rx.poll_emit(&mut context).is_pending());
    /// tx.try_collect(7).expect("there is room");
    /// assert_eq!(rx.poll_emit(&mut context), Poll::Ready(Some(7)));
    /// ```
    pub fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.end.poll_emit(context)
    }

    /// Ends the wait that a pending [`poll_emit`](Emitter::poll_emit) has begun, as far as the time
    /// spent blocked is counted. To be called if something else is done before the next poll.
    pub fn rest(&mut self) {
        self.end.rest();
    }

    /// Blocks until at least one of these is worth a [`try_emit`](Emitter::try_emit): it has a message
    /// or has ended. Returns at once if there are none. O(emitters).
    ///
    /// ```
    /// use corsair::edge::{self, Emitter, Options};
    /// let (mut tx, first) = edge::ring(Options::new(4));
    /// let (_tx, second) = edge::ring(Options::new(4));
    /// tx.try_collect(7).expect("there is room");
    /// let mut both = [first, second];
    /// Emitter::wait_any(&mut both);
    /// assert_eq!(both[0].try_emit(), Ok(7));
    /// ```
    pub fn wait_any(emitters: &mut [Self]) {
        block_on(|context| {
            let mut ready = emitters.is_empty();
            for emitter in emitters.iter_mut() {
                ready |= emitter.end.poll_some(context);
            }
            match ready {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        emitters.iter_mut().for_each(Emitter::rest);
    }

    /// As [`Collector::abort`](super::Collector::abort).
    ///
    /// ```
    /// use corsair::edge::{self, Aborted, Options};
    /// let (mut tx, rx) = edge::ring(Options::new(4));
    /// rx.abort();
    /// assert_eq!(tx.collect_blocking(7), Err(Aborted(7)));
    /// ```
    pub fn abort(&self) {
        self.end.edge().abort();
    }

    super::meter::of_the_edge!();
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for Emitter<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

/// As [`Emitter::poll_emit`].
impl<T: Send + 'static, F: Flavour<T>> futures_core::Stream for Emitter<T, F> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_emit(context)
    }
}

/// Waits by a poll of the end; its time is over when this is dropped.
struct Waiting<'a, T, E: Emitting<T>, P> {
    end: &'a mut E,
    poll: P,
    message: PhantomData<fn() -> T>,
}

impl<'a, T, E: Emitting<T>, P> Waiting<'a, T, E, P> {
    fn new(end: &'a mut E, poll: P) -> Self {
        Waiting {
            end,
            poll,
            message: PhantomData,
        }
    }
}

// The poll is not pinned.
impl<T, E: Emitting<T>, P> Unpin for Waiting<'_, T, E, P> {}

impl<T, E, P, R> Future for Waiting<'_, T, E, P>
where
    E: Emitting<T>,
    P: FnMut(&mut E, &mut Context<'_>) -> Poll<R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = self.get_mut();
        (this.poll)(this.end, context)
    }
}

impl<T, E: Emitting<T>, P> Drop for Waiting<'_, T, E, P> {
    fn drop(&mut self) {
        self.end.rest();
    }
}
