//! Roots: futures that run in a pool and are not part of a fork.
#![allow(unsafe_code, reason = "a root's block is allocated and freed by hand")]

use super::block::{Header, Home};
use super::half::{self, Half};
use super::pool::Pool;
use super::state::{Side, State};
use crate::sync::lock;
use std::alloc::{Layout, dealloc};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// The block of a root: a single half.
#[repr(C)]
struct Root<F: Future> {
    shared: Header,
    half: MaybeUninit<Half<F>>,
}

/// The marker of a root's only half.
struct RootHalf<F>(PhantomData<F>);

// SAFETY: `Root` is `repr(C)` and begins with the header.
unsafe impl<F: Future> Home for RootHalf<F> {
    type Future = F;
    const SIDE: Side = Side::First;
    const OFFSET: usize = offset_of!(Root<F>, half);

    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: `Task::new` has boxed the block; the future and its result were dropped or moved out.
        unsafe { dealloc(block.as_ptr().cast(), Layout::new::<Root<F>>()) };
    }
}

/// The roots that a pool has to cancel when it is dropped.
#[derive(Default)]
pub(super) struct Roots(Mutex<HashMap<NonNull<Header>, Canceller>>);

/// The functions that cancel a root and release the reference to its block that this entry has.
#[derive(Clone, Copy)]
struct Canceller {
    abort: unsafe fn(NonNull<Header>),
    leave: unsafe fn(NonNull<Header>),
}

// SAFETY: an entry is a party to its block, and a block may be used from any thread.
unsafe impl Send for Roots {}
// SAFETY: all access to the map is locked.
unsafe impl Sync for Roots {}

impl Roots {
    fn enter(&self, block: NonNull<Header>, entry: Canceller) {
        lock(&self.0).insert(block, entry);
    }

    /// Removes a root; the caller acts for one party.
    fn remove(&self, block: NonNull<Header>) {
        let entry = lock(&self.0).remove(&block);
        if let Some(entry) = entry {
            // SAFETY: the entry is a party to the block and leaves it here.
            unsafe { (entry.leave)(block) };
        }
    }

    /// Cancels all roots. Roots that are running continue to their next wait.
    pub(super) fn cancel_all(&self) {
        let roots = std::mem::take(&mut *lock(&self.0));
        for (block, entry) in roots {
            // SAFETY: the entry is a party to the block until `leave`.
            unsafe {
                (entry.abort)(block);
                (entry.leave)(block);
            }
        }
    }
}

impl Pool {
    /// Starts a future on the workers of this pool. The returned task may be awaited anywhere and returns the future's
    /// result. Dropping the task cancels the future.
    ///
    /// ```
    /// use corsair::fork_join::{Pool, fork_join};
    /// let pool = Pool::new(2)?;
    /// let spawned = pool.spawn(async { fork_join(async { 1 }, async { 2 }).await });
    /// assert_eq!(pool.block_on(spawned), Ok((1, 2)));
    /// # Ok::<(), corsair::fork_join::PoolError>(())
    /// ```
    pub fn spawn<F>(&self, future: F) -> Task<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Task::new(self, future)
    }

    /// Runs a future on the workers of this pool and waits for its result. On a worker of this pool, that worker runs
    /// other jobs during the wait; any other thread blocks. In an actor in virtual time the call is part of the event
    /// being handled, and takes no virtual time.
    ///
    /// # Panics
    /// If the future panics, with the same panic.
    pub fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut spawned = pin!(self.spawn(future));
        let result = match self.worker() {
            Some(worker) => {
                let waker = Waker::from(Arc::new(WakeWorker(
                    Arc::clone(&self.registry),
                    worker.index(),
                )));
                let mut context = Context::from_waker(&waker);
                let mut result = spawned.as_mut().poll(&mut context);
                while result.is_pending() {
                    worker.work_until(|| spawned.is_over());
                    result = spawned.as_mut().poll(&mut context);
                }
                result
            }
            None => {
                let waker = Waker::from(Arc::new(WakeThread(thread::current())));
                let mut context = Context::from_waker(&waker);
                loop {
                    match spawned.as_mut().poll(&mut context) {
                        Poll::Pending => thread::park(),
                        ready => break ready,
                    }
                }
            }
        };
        match result {
            Poll::Ready(Ok(value)) => value,
            _ => unreachable!("a pool is not dropped while it is borrowed"),
        }
    }
}

/// Wakes a thread that blocks until a root is over.
struct WakeThread(Thread);

impl Wake for WakeThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Wakes a worker that waits until a root is over.
struct WakeWorker(Arc<super::registry::Registry>, usize);

impl Wake for WakeWorker {
    fn wake(self: Arc<Self>) {
        self.0.workers[self.1].wake();
    }
}

/// The error for a task whose pool was dropped before the future was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pool was dropped before the spawned future was over; keep the pool longer")]
pub struct PoolDropped;

/// A task that was [spawned](Pool::spawn) in a pool. Awaiting the task returns the future's result, or an error if the
/// pool was dropped first. Dropping the task cancels the future.
#[must_use = "dropping this cancels the spawned future"]
pub struct Task<F: Future> {
    /// The block of the root; `None` when the result was taken.
    block: Option<NonNull<Header>>,
    marker: PhantomData<F>,
}

// SAFETY: the handle is a party to the block; the future and its result are `Send`, by the bounds
// of `Pool::spawn`.
unsafe impl<F: Future<Output: Send> + Send> Send for Task<F> {}

// A task contains only a pointer to the future.
impl<F: Future> Unpin for Task<F> {}

impl<F: Future> Task<F> {
    fn new(pool: &Pool, future: F) -> Task<F> {
        let home = pool.worker().unwrap_or(&pool.registry.workers[0]);
        let root: Box<Root<F>> = Box::new(Root {
            // The parties are this handle and the entry in `Roots`.
            shared: Header::parted(home, State::new(State::of_root(2))),
            half: MaybeUninit::uninit(),
        });
        let block = NonNull::from(Box::leak(root)).cast::<Header>();
        // SAFETY: the block is new, and no other thread accesses the half before it is queued.
        unsafe {
            half::place::<RootHalf<F>>(block, future);
            let entry = Canceller {
                abort: half::abort::<RootHalf<F>>,
                leave: Header::leave::<RootHalf<F>>,
            };
            let job = half::detach::<RootHalf<F>>(block);
            pool.registry.roots.enter(block, entry);
            pool.registry.enqueue(job);
        }
        Task {
            block: Some(block),
            marker: PhantomData,
        }
    }

    /// Returns true if the future is over.
    pub fn is_over(&self) -> bool {
        // SAFETY: the handle is a party, so the block exists.
        self.block
            .is_none_or(|block| unsafe { block.as_ref() }.is_finished())
    }
}

impl<F: Future> Future for Task<F> {
    type Output = Result<F::Output, PoolDropped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let block = self.block.expect("a result is taken once");
        // SAFETY: the handle is a party until it leaves, after the result was taken.
        let result = unsafe {
            if !block.as_ref().poll_finished(context.waker()) {
                return Poll::Pending;
            }
            self.block = None;
            remove(block);
            let result = if half::is_cancelled::<RootHalf<F>>(block) {
                None
            } else {
                Some(half::take_result::<RootHalf<F>>(block))
            };
            Header::leave::<RootHalf<F>>(block);
            result
        };
        match result {
            Some(Ok(value)) => Poll::Ready(Ok(value)),
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Ready(Err(PoolDropped)),
        }
    }
}

impl<F: Future> Drop for Task<F> {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let defer = super::stack::is_low();
        // SAFETY: the handle is a party until it leaves, and does not take the result.
        unsafe {
            remove(block);
            block.as_ref().wait_no_more();
            half::cancel::<RootHalf<F>>(block, defer);
            Header::leave::<RootHalf<F>>(block);
        }
    }
}

/// # Safety
/// The caller acts for a party.
unsafe fn remove(block: NonNull<Header>) {
    // SAFETY: the caller's party keeps the block alive, and the block holds the registry.
    unsafe {
        block
            .as_ref()
            .home()
            .as_ref()
            .registry()
            .roots
            .remove(block)
    };
}

impl<F: Future> fmt::Debug for Task<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned")
            .field("over", &self.is_over())
            .finish_non_exhaustive()
    }
}
