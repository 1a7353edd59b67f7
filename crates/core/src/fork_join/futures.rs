//! The asynchronous form of fork-join.

use super::fork::{Fork, Handle};
use super::in_place::InPlace;
use super::worker::Worker;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs two futures, potentially at the same time; `.await` gives both results.
///
/// On a worker of a [`Pool`](super::Pool) (that is, in what was given to
/// [`Pool::block_on`](super::Pool::block_on), [`Pool::spawn`](super::Pool::spawn) or
/// [`Pool::install`](super::Pool::install)) both halves begin with the call: it runs `a` and then
/// `b` as far as they go, unless another worker has taken `b` meanwhile. A half that waits is
/// polled by itself when it is woken, by whichever worker is free. Near the end of the stack
/// halves are queued instead, so recursion may go as deep as memory reaches.
///
/// Outside a pool, in particular in an actor, the halves begin with the first poll and run
/// alternately in place, in the task that awaits them. They may wait for whatever that task may
/// wait for: timers, channels, edges. To put more than one core to work there, give the whole to
/// [`Pool::block_on`](super::Pool::block_on), which is then part of the event that the actor
/// handles.
///
/// Dropping the join cancels both halves. A half that waits is dropped at once; one that is just
/// being run by another worker is dropped when it next waits. The drop itself waits for nobody.
///
/// ```
/// use corsair::fork_join::{Pool, fork_join};
/// // A recursive `async fn` does not compile with `Send`: say it this way.
/// fn sum(low: u64, high: u64) -> impl Future<Output = u64> + Send {
///     async move {
///         if low == high {
///             return low;
///         }
///         let mid = low + (high - low) / 2;
///         let (a, b) = fork_join(sum(low, mid), sum(mid + 1, high)).await;
///         a + b
///     }
/// }
/// let pool = Pool::new(2)?;
/// assert_eq!(pool.block_on(sum(0, 1000)), 500_500);
/// # Ok::<(), corsair::fork_join::PoolError>(())
/// ```
///
/// # Panics
/// If a half does: after both are over, with what `a` panicked with if both did. On a worker this
/// may happen in the call, else it happens when the join is awaited.
#[inline(always)]
pub fn fork_join<A, B>(a: A, b: B) -> Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    match Worker::current() {
        Some(worker) => match Fork::start(worker, a, b) {
            Ok(both) => Join(Stage::Ready(Some(both))),
            Err(handle) => Join(Stage::Waiting(handle)),
        },
        // Boxed here and not in a function of its own: if the futures were passed on by address,
        // the case above would have to build them in memory twice.
        None => Join(Stage::Outside(Box::new((a, b)))),
    }
}

/// Waits for both halves of a [`fork_join`].
#[must_use = "dropping a join cancels its halves"]
pub struct Join<A: Future, B: Future>(Stage<A, B>);

enum Stage<A: Future, B: Future> {
    /// Both are over; `None` once they were taken.
    Ready(Option<(A::Output, B::Output)>),
    /// They run on their own.
    Waiting(Handle<A, B>),
    /// They were made outside a pool and have not begun.
    Outside(Box<(A, B)>),
    /// They run in the task that awaits them.
    InPlace(Box<InPlace<A, B>>),
}

// SAFETY: a handle is used by one thread at a time, and what it reaches, futures and results, is
// `Send`; what it shares with other threads is made for sharing.
unsafe impl<A, B> Send for Join<A, B>
where
    A: Future<Output: Send> + Send,
    B: Future<Output: Send> + Send,
{
}

// Nothing in it is pinned: futures lie in blocks or boxes.
impl<A: Future, B: Future> Unpin for Join<A, B> {}

impl<A, B> Future for Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    type Output = (A::Output, B::Output);

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Stage::Ready(both) => Poll::Ready(both.take().expect("a join is polled once it is over")),
            _ => self.poll_slowly(context),
        }
    }
}

impl<A, B> Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    #[cold]
    #[inline(never)]
    fn poll_slowly(&mut self, context: &mut Context<'_>) -> Poll<(A::Output, B::Output)> {
        loop {
            match std::mem::replace(&mut self.0, Stage::Ready(None)) {
                Stage::Ready(both) => {
                    return Poll::Ready(both.expect("a join is polled once it is over"));
                }
                Stage::Waiting(handle) => {
                    if handle.shared().poll_finished(context.waker()) {
                        return Poll::Ready(handle.results());
                    }
                    self.0 = Stage::Waiting(handle);
                    return Poll::Pending;
                }
                Stage::Outside(halves) => {
                    let (a, b) = *halves;
                    self.0 = match Worker::current() {
                        Some(worker) => match Fork::start(worker, a, b) {
                            Ok(both) => Stage::Ready(Some(both)),
                            Err(handle) => Stage::Waiting(handle),
                        },
                        None => Stage::InPlace(Box::new(InPlace::new(a, b))),
                    };
                }
                Stage::InPlace(mut halves) => {
                    let both = halves.poll(context);
                    if both.is_pending() {
                        self.0 = Stage::InPlace(halves);
                    }
                    return both;
                }
            }
        }
    }
}

impl<A: Future, B: Future> fmt::Debug for Join<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.0 {
            Stage::Ready(Some(_)) => "over",
            Stage::Ready(None) => "taken",
            Stage::Waiting(_) => "running",
            Stage::Outside(_) => "not begun",
            Stage::InPlace(_) => "running in place",
        };
        f.debug_tuple("Join").field(&stage).finish()
    }
}
