//! The asynchronous form of fork-join.
#![allow(
    unsafe_code,
    reason = "a join is `Send` because its block is only reached by atomic steps"
)]

use super::fork::{Fork, Handle};
use super::in_place::InPlace;
use super::worker::Worker;
use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs two futures, potentially at the same time; `.await` gives both results.
///
/// On a worker of a [`Pool`](super::Pool), the call itself begins both halves: it polls `a` and then `b` as far as
/// possible, unless another worker has taken `b` in the meantime. Code runs on a worker within
/// [`Pool::block_on`](super::Pool::block_on), [`Pool::spawn`](super::Pool::spawn) and
/// [`Pool::install`](super::Pool::install). A half that waits is polled separately when it is woken, by whichever
/// worker is free. Near the end of the stack halves are queued instead, so the depth of recursion is limited only by
/// memory.
///
/// Outside a pool, for example in an actor, the halves begin with the first poll and run alternately in the task that
/// awaits them. They may wait for everything that this task may wait for, such as timers, channels and edges. To use
/// several cores in an actor, pass the complete computation to [`Pool::block_on`](super::Pool::block_on), whose call is
/// then part of the event that the actor handles.
///
/// Dropping the join cancels both halves. A half that waits is dropped at once; a half that another worker is running
/// is dropped at its next wait. The drop itself does not wait.
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
/// If a half panics, after both are over; if both panic, with the panic of `a`. On a worker this may happen in the
/// call, otherwise when the join is awaited.
#[inline(always)]
pub fn fork_join<A, B>(a: A, b: B) -> Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    match Worker::current() {
        Some(worker) => Join::started(worker, a, b),
        // Boxed here and not in a separate function: if the futures were passed by address, the case above would build
        // them in memory twice.
        None => Join::unready(Unready::Outside(Box::new((a, b)))),
    }
}

/// The future that [`fork_join`] returns; it waits for both halves.
#[must_use = "dropping a join cancels its halves"]
pub struct Join<A: Future, B: Future>(Stage<A, B>);

enum Stage<A: Future, B: Future> {
    /// Both halves are over, and their results were taken.
    Taken,
    /// Both halves are over; the results are not taken yet.
    Ready((A::Output, B::Output)),
    /// The halves are not over. The join's `Drop` drops this value, so dropping a join that ended within its call costs
    /// only a comparison.
    Unready(ManuallyDrop<Unready<A, B>>),
}

enum Unready<A: Future, B: Future> {
    /// The halves run separately.
    Waiting(Handle<A, B>),
    /// The halves were made outside a pool and have not begun.
    Outside(Box<(A, B)>),
    /// The halves run in the task that awaits them.
    InPlace(Box<InPlace<A, B>>),
}

// SAFETY: a handle is used by one thread at a time. The futures and results are `Send`, and the block's state, which
// other threads share, is atomic.
unsafe impl<A, B> Send for Join<A, B>
where
    A: Future<Output: Send> + Send,
    B: Future<Output: Send> + Send,
{
}

// Nothing in a join is pinned: futures lie in blocks or boxes.
impl<A: Future, B: Future> Unpin for Join<A, B> {}

impl<A, B> Future for Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    type Output = (A::Output, B::Output);

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Ready(_) = self.0
            && let Stage::Ready(both) = std::mem::replace(&mut self.0, Stage::Taken)
        {
            return Poll::Ready(both);
        }
        self.poll_unready(context)
    }
}

impl<A: Future, B: Future> Join<A, B> {
    #[inline(always)]
    fn unready(unready: Unready<A, B>) -> Join<A, B> {
        Join(Stage::Unready(ManuallyDrop::new(unready)))
    }

    #[cold]
    #[inline(never)]
    fn drop_unready(&mut self) {
        if let Stage::Unready(unready) = std::mem::replace(&mut self.0, Stage::Taken) {
            drop(ManuallyDrop::into_inner(unready));
        }
    }
}

impl<A, B> Join<A, B>
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    #[inline(always)]
    fn started(worker: &Worker, a: A, b: B) -> Join<A, B> {
        match Fork::start(worker, a, b) {
            Ok(both) => Join(Stage::Ready(both)),
            Err(handle) => Join::unready(Unready::Waiting(handle)),
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_unready(&mut self, context: &mut Context<'_>) -> Poll<(A::Output, B::Output)> {
        loop {
            if let Stage::Unready(unready) = &self.0
                && let Unready::Waiting(handle) = &**unready
                && !handle.shared().poll_finished(context.waker())
            {
                return Poll::Pending;
            }
            match std::mem::replace(&mut self.0, Stage::Taken) {
                Stage::Ready(both) => return Poll::Ready(both),
                Stage::Taken => panic!("a join was polled after it was over"),
                Stage::Unready(unready) => match ManuallyDrop::into_inner(unready) {
                    Unready::Waiting(handle) => return Poll::Ready(handle.results()),
                    Unready::Outside(halves) => *self = Join::begun(*halves),
                    Unready::InPlace(mut halves) => {
                        let both = halves.poll(context);
                        if both.is_pending() {
                            *self = Join::unready(Unready::InPlace(halves));
                        }
                        return both;
                    }
                },
            }
        }
    }

    /// Begins halves that were created outside a pool, on the first poll: in the pool of the current worker, or in
    /// place.
    fn begun((a, b): (A, B)) -> Join<A, B> {
        match Worker::current() {
            Some(worker) => Join::started(worker, a, b),
            None => Join::unready(Unready::InPlace(Box::new(InPlace::new(a, b)))),
        }
    }
}

impl<A: Future, B: Future> Drop for Join<A, B> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Stage::Unready(_) = self.0 {
            self.drop_unready();
        }
    }
}

impl<A: Future, B: Future> fmt::Debug for Join<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.0 {
            Stage::Taken => "taken",
            Stage::Ready(_) => "over",
            Stage::Unready(unready) => match **unready {
                Unready::Waiting(_) => "running",
                Unready::Outside(_) => "not begun",
                Unready::InPlace(_) => "running in place",
            },
        };
        f.debug_tuple("Join").field(&stage).finish()
    }
}
