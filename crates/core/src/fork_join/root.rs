//! Roots: futures that run in a pool and are not part of a fork.
#![allow(unsafe_code, reason = "a root's block is allocated and freed by hand")]

use super::block::{Block, BlockPtr, Header, Party};
use super::half::{self, Half, Held, Home};
use super::pool::Pool;
use super::state::{Side, State};
use crate::sync::lock;
use std::alloc::{Layout, dealloc};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroUsize;
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

// SAFETY: `Root` is `repr(C)`, begins with the header, and has its half at the offset of `half`.
unsafe impl<F: Future> Home for RootHalf<F> {
    type Future = F;
    type Block = Root<F>;
    const SIDE: Side = Side::First;
    const OFFSET: usize = offset_of!(Root<F>, half);
}

impl<F: Future> Block for Root<F> {
    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: `Task::new` has boxed the block; the future and its result were dropped or moved out.
        unsafe { dealloc(block.as_ptr().cast(), Layout::new::<Root<F>>()) };
    }
}

/// The roots that a pool has to cancel when it is dropped.
#[derive(Default)]
pub(super) struct Roots(Mutex<HashMap<NonZeroUsize, RootEntry>>);

/// A party of a root's block, whose type is erased.
struct RootEntry {
    block: BlockPtr,
    /// Makes the party again and drops it, after cancelling the root if the argument is true.
    leave: unsafe fn(BlockPtr, bool),
}

// SAFETY: an entry is a party to its block, and a block may be used from any thread.
unsafe impl Send for RootEntry {}

impl RootEntry {
    fn new<F: Future>(party: Party<Root<F>>) -> RootEntry {
        RootEntry {
            block: party.into_block(),
            leave: |block, cancel| {
                // SAFETY: the entry has taken the party from `into_block`, and calls this function once.
                let party = unsafe { Party::<Root<F>>::new(block) };
                if cancel {
                    half::abort::<RootHalf<F>>(&party);
                }
            },
        }
    }

    /// Leaves the block, after cancelling the root if `cancel` is true.
    fn leave(self, cancel: bool) {
        // SAFETY: the function is for a block of this type, and is called once, because the entry is consumed.
        unsafe { (self.leave)(self.block, cancel) };
    }
}

impl Roots {
    /// Removes a root.
    fn remove(&self, block: BlockPtr) {
        let entry = lock(&self.0).remove(&block.address().addr());
        if let Some(entry) = entry {
            entry.leave(false);
        }
    }

    /// Cancels all roots. Roots that are running continue to their next wait.
    pub(super) fn cancel_all(&self) {
        let roots = std::mem::take(&mut *lock(&self.0));
        for entry in roots.into_values() {
            entry.leave(true);
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
    /// The party of the task to the block of the root; `None` when the result was taken.
    party: Option<Party<Root<F>>>,
}

// SAFETY: the task is a party to the block, whose state is atomic; the future and its result are `Send`, by the bounds
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
        // SAFETY: the block is new and parted, and no other thread accesses the half before it is queued. The state
        // counts two parties.
        let (block, job, parties) = unsafe {
            let block = BlockPtr::new(NonNull::from(Box::leak(root)).cast());
            let job = Held::<RootHalf<F>>::place(block, future).detach();
            (block, job, [Party::new(block), Party::new(block)])
        };
        let [entry, party] = parties;
        let address = block.address().addr();
        lock(&pool.registry.roots.0).insert(address, RootEntry::new::<F>(entry));
        pool.registry.enqueue(job);
        Task { party: Some(party) }
    }

    /// Returns true if the future is over.
    pub fn is_over(&self) -> bool {
        let party = self.party.as_ref();
        party.is_none_or(|party| party.header().is_finished())
    }
}

impl<F: Future> Future for Task<F> {
    type Output = Result<F::Output, PoolDropped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let party = self.party.as_ref().expect("a result is taken once");
        if !party.header().poll_finished(context.waker()) {
            return Poll::Pending;
        }
        let party = self.party.take().expect("it was there just now");
        remove(&party);
        let is_cancelled = party.header().state().is_cancelled(Side::First);
        // SAFETY: the half is over and was not cancelled. The task is the join, and takes the result once, because it has
        // given its party up.
        let result = (!is_cancelled).then(|| unsafe { half::take_result::<RootHalf<F>>(&party) });
        drop(party);
        match result {
            Some(Ok(value)) => Poll::Ready(Ok(value)),
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Ready(Err(PoolDropped)),
        }
    }
}

impl<F: Future> Drop for Task<F> {
    fn drop(&mut self) {
        let Some(party) = self.party.take() else {
            return;
        };
        let defer = super::stack::is_low();
        remove(&party);
        party.header().wait_no_more();
        half::cancel::<RootHalf<F>>(&party, defer);
    }
}

/// Removes the root of a party from those that the pool cancels.
fn remove<F: Future>(party: &Party<Root<F>>) {
    let registry = party.header().home().registry();
    registry.roots.remove(party.block());
}

impl<F: Future> fmt::Debug for Task<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned")
            .field("over", &self.is_over())
            .finish_non_exhaustive()
    }
}
