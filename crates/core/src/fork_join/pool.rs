//! Pools of workers, and functions that run work on them.
#![allow(
    unsafe_code,
    reason = "a root closure lies on the caller's stack while a worker runs it"
)]

use super::job::{Job, JobHandle};
use super::registry::Registry;
use super::stack::{Extent, STACK};
use super::worker::Worker;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};

/// The maximum number of workers.
pub const MAX_WORKERS: usize = 1024;

/// A pool of worker threads, which share the work of forks.
///
/// Dropping a pool cancels the tasks that were [spawned](Pool::spawn) in it, and ends its threads. The drop waits until
/// running tasks reach their next wait.
///
/// ```
/// use corsair::fork_join::{Pool, join};
/// fn sum(low: u64, high: u64) -> u64 {
///     if low == high {
///         return low;
///     }
///     let mid = low + (high - low) / 2;
///     let (a, b) = join(|| sum(low, mid), || sum(mid + 1, high));
///     a + b
/// }
/// let pool = Pool::new(2)?;
/// assert_eq!(pool.install(|| sum(0, 1000)), 500_500);
/// # Ok::<(), corsair::fork_join::PoolError>(())
/// ```
pub struct Pool {
    pub(super) registry: Arc<Registry>,
    threads: Vec<JoinHandle<()>>,
}

/// The reasons why a pool could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The number of workers is zero.
    #[error("a pool of no workers does no work; give at least 1")]
    NoWorkers,
    /// Too many workers.
    #[error(
        "{0} workers are too many; the maximum is {MAX_WORKERS}, and more workers than cores only cost time"
    )]
    TooManyWorkers(usize),
    /// The operating system could not start a thread.
    #[error("cannot start the thread of worker {worker}: {source}; use fewer workers")]
    Thread {
        /// The index of the worker.
        worker: usize,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The global pool already exists.
    #[error(
        "the global pool has begun with {workers} workers; set its size before the first fork, or use a pool of your own"
    )]
    GlobalExists {
        /// The number of workers of the global pool.
        workers: usize,
    },
}

static GLOBAL: OnceLock<Pool> = OnceLock::new();

impl Pool {
    /// Creates a pool with `workers` workers, each on its own thread.
    ///
    /// # Errors
    /// If `workers` is 0 or above [`MAX_WORKERS`], or if the system cannot create a thread.
    pub fn new(workers: usize) -> Result<Pool, PoolError> {
        match workers {
            0 => return Err(PoolError::NoWorkers),
            1..=MAX_WORKERS => {}
            _ => return Err(PoolError::TooManyWorkers(workers)),
        }
        let registry = Registry::new(workers);
        // From here on, an error drops the pool, which ends the threads that have been started.
        let mut pool = Pool {
            registry,
            threads: Vec::with_capacity(workers),
        };
        for index in 0..workers {
            let registry = Arc::clone(&pool.registry);
            let thread = thread::Builder::new()
                .name(format!("corsair-fork-join-{index}"))
                .stack_size(STACK)
                .spawn(move || {
                    // SAFETY: each worker gets exactly one thread, so no two threads act as one worker.
                    unsafe {
                        registry.workers[index].embody(Extent::of_new_thread(STACK), Worker::live);
                    }
                })
                .map_err(|source| PoolError::Thread {
                    worker: index,
                    source,
                })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Returns the global pool, which forks use on threads that belong to no pool. The global pool has a worker for
    /// each core, unless [`Pool::set_global`] has set another number.
    ///
    /// # Panics
    /// If the operating system cannot start any thread.
    pub fn global() -> &'static Pool {
        GLOBAL.get_or_init(|| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            Pool::new(cores.min(MAX_WORKERS))
                .or_else(|_| Pool::new(1))
                .unwrap_or_else(|error| panic!("fork-join: no global pool: {error}"))
        })
    }

    /// Sets the number of workers of the global pool.
    ///
    /// # Errors
    /// See [`Pool::new`]; also if the global pool is already in use.
    pub fn set_global(workers: usize) -> Result<(), PoolError> {
        GLOBAL
            .set(Pool::new(workers)?)
            .map_err(|_| PoolError::GlobalExists {
                workers: Pool::global().workers(),
            })
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.registry.workers.len()
    }

    /// Returns the index of the calling worker, less than [`Pool::workers`]; `None` on a thread that is not a worker of
    /// this pool. A future may resume on another worker after each `await`.
    ///
    /// ```
    /// let pool = corsair::fork_join::Pool::new(2)?;
    /// assert!(pool.install(|| pool.current_worker()) < Some(2));
    /// assert_eq!(pool.current_worker(), None);
    /// # Ok::<(), corsair::fork_join::PoolError>(())
    /// ```
    pub fn current_worker(&self) -> Option<usize> {
        self.worker().map(Worker::index)
    }

    /// Runs `work` on a worker of this pool, so that its forks are shared among the pool's workers, and waits for its
    /// result. Called on a worker of this pool, `install` just calls `work`.
    ///
    /// # Panics
    /// If `work` panics, with the same panic.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        if self.worker().is_some() {
            work()
        } else {
            self.run_root(work)
        }
    }

    /// Returns the calling worker, if the calling thread is a worker of this pool.
    pub(super) fn worker(&self) -> Option<&Worker> {
        Worker::current().filter(|worker| ptr::eq(worker.registry(), &*self.registry))
    }

    /// Runs `work` on the pool and blocks the calling thread until it is done.
    fn run_root<R: Send, F: FnOnce() -> R + Send>(&self, work: F) -> R {
        let root = Root {
            job: Job::new(Root::<F, R>::run),
            work: Cell::new(Some(work)),
            result: Cell::new(None),
            done: AtomicBool::new(false),
            caller: thread::current(),
        };
        // SAFETY: `Root::run` expects the address of a `Root` of these types, whose contents are `Send`. `root` stays in
        // place until `done` is set, which is the runner's last access to it.
        let job = unsafe { JobHandle::new(NonNull::from(&root).cast()) };
        self.registry.enqueue(job);
        while !root.done.load(Ordering::Acquire) {
            thread::park();
        }
        match root.result.take() {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => unreachable!("a root is done when it has left its result"),
        }
    }
}

/// A closure from outside the pool, on the stack of the thread that waits for it.
#[repr(C)]
struct Root<F, R> {
    job: Job,
    work: Cell<Option<F>>,
    result: Cell<Option<thread::Result<R>>>,
    done: AtomicBool,
    caller: Thread,
}

impl<R, F: FnOnce() -> R> Root<F, R> {
    /// # Safety
    /// `job` begins a `Root<F, R>` that this caller alone has taken from the queue.
    unsafe fn run(job: NonNull<Job>, _: &Worker) {
        let root = job.cast::<Self>().as_ptr();
        // SAFETY: the waiting thread keeps the root in place and does not access it until `done` is set. Afterwards the
        // root is not accessed: the handle of the caller was cloned before.
        unsafe {
            let work = (*root).work.take();
            let result = work.map(|work| catch_unwind(AssertUnwindSafe(work)));
            (*root).result.set(result);
            let caller = (*root).caller.clone();
            (*root).done.store(true, Ordering::Release);
            caller.unpark();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.registry.roots.cancel_all();
        self.registry.stop();
        if self.worker().is_some() {
            // A job of the pool drops the pool, so the threads end by themselves after this job.
            return;
        }
        for thread in self.threads.drain(..) {
            // Jobs catch the panics of user code, so no worker's thread panics.
            let _ = thread.join();
        }
        // Discards halves that were queued after their worker had ended.
        // SAFETY: the threads of the workers have ended, so this thread alone acts as the worker.
        unsafe { self.registry.workers[0].embody(Extent::UNLIMITED, Worker::live) };
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}
