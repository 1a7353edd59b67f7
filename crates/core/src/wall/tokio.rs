//! A tokio task per actor, on the run's own runtime with [`Config::workers`] threads, or on a runtime of the
//! caller.
//!
//! The run's own runtime is dropped with all tasks when the run is over. On the caller's runtime the tasks are not
//! dropped by the runtime: each task is woken, sees that the run is over, and drops its actor's body. The run waits
//! until the last task has ended. If that takes long, because the runtime is busy or nobody drives it, the run takes
//! the lives (the futures of the actors) out of the tasks and drops them itself.
//!
//! [`Config::workers`]: crate::Config::workers

use super::boxed::Life;
use crate::contract::CancelToken;
use crate::sync::lock;
use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Creates a runtime for a run. Its threads have stacks of `stack` bytes.
pub(super) fn build(workers: NonZeroUsize, stack: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers.get())
        .thread_name("corsair")
        .thread_stack_size(stack)
        .enable_time()
        .build()
}

/// Ends a runtime. Tokio forbids this on a thread that runs tasks, and the caller of a run may be on such a thread.
pub(super) fn end(runtime: Runtime) {
    if Handle::try_current().is_err() {
        return drop(runtime);
    }
    // If no thread can be created, the runtime is dropped here, which panics.
    if let Ok(ending) = std::thread::Builder::new().spawn(|| drop(runtime)) {
        let _ = ending.join();
    }
}

pub(super) struct Tasks {
    handle: Handle,
    /// The state for the caller's runtime; `None` if the runtime belongs to the run.
    guest: Option<Arc<Guest>>,
}

/// The state with which a run on the caller's runtime ends its tasks.
struct Guest {
    cancel: CancelToken,
    /// True if no more tasks may begin.
    over: AtomicBool,
    lives: Mutex<Lives>,
    /// Notified when a life ends after the run is over.
    gone: Condvar,
}

/// The current lives, by number.
#[derive(Default)]
struct Lives {
    begun: u64,
    all: HashMap<u64, Arc<Slot>>,
}

/// The life that a task runs: locked while it is polled, `None` when it has ended.
type Slot = Mutex<Option<Life>>;

/// A life as a task. If the runtime drops the task before the life has ended, the run is cancelled.
struct Task {
    guest: Arc<Guest>,
    number: u64,
    slot: Arc<Slot>,
}

impl Future for Task {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut life = lock(&self.slot);
        if let Some(future) = life.as_mut() {
            ready!(future.as_mut().poll(task));
            *life = None;
        }
        Poll::Ready(())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let left = lock(&self.slot).take();
        if left.is_some() && !self.guest.over.load(Acquire) {
            self.guest.cancel.cancel();
        }
        drop(left);
        self.guest.forget(self.number);
    }
}

impl Guest {
    /// Removes a life that has ended.
    fn forget(&self, number: u64) {
        lock(&self.lives).all.remove(&number);
        if self.over.load(Acquire) {
            self.gone.notify_all();
        }
    }

    /// Drops the lives that are not being polled.
    fn abandon(&self) {
        let all: Vec<_> = {
            let lives = lock(&self.lives);
            let all = lives.all.iter();
            all.map(|(&number, slot)| (number, slot.clone())).collect()
        };
        for (number, slot) in all {
            // A life that panicked during a poll is dropped by its task.
            let Ok(mut life) = slot.try_lock() else {
                continue;
            };
            let left = life.take();
            drop(life);
            drop(left);
            self.forget(number);
        }
    }
}

/// A run's use of the caller's runtime.
pub(super) struct Visit {
    guest: Arc<Guest>,
    handle: Handle,
}

impl Visit {
    /// Prevents further tasks, calls `wake` to wake the current ones, and waits until they have ended.
    pub(super) fn end(self, wake: impl FnOnce()) {
        /// The time after which the run drops the remaining tasks itself.
        const PATIENCE: Duration = Duration::from_millis(50);
        let Visit { guest, handle } = self;
        let mut lives = lock(&guest.lives);
        guest.over.store(true, Release);
        drop(lives);
        wake();
        loop {
            lives = lock(&guest.lives);
            if lives.all.is_empty() {
                return;
            }
            let waited = guest
                .gone
                .wait_timeout_while(lives, PATIENCE, |lives| !lives.all.is_empty());
            let (lives, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(lives);
            if waited.timed_out() {
                // Destructors may need the runtime's context.
                let _here = handle.enter();
                guest.abandon();
            }
        }
    }
}

impl Tasks {
    /// Creates tasks on the run's own runtime.
    pub(super) fn own(runtime: &Runtime) -> Tasks {
        Tasks {
            handle: runtime.handle().clone(),
            guest: None,
        }
    }

    /// Runs tasks on the caller's runtime. If the runtime drops one of them, the run is cancelled.
    pub(super) fn guest(handle: &Handle, cancel: &CancelToken) -> (Tasks, Visit) {
        let guest = Arc::new(Guest {
            cancel: cancel.clone(),
            over: AtomicBool::new(false),
            lives: Mutex::default(),
            gone: Condvar::new(),
        });
        let handle = handle.clone();
        let tasks = Tasks {
            handle: handle.clone(),
            guest: Some(guest.clone()),
        };
        (tasks, Visit { guest, handle })
    }

    /// Starts a life as a task.
    pub(super) fn start(&self, life: Life) {
        let Some(guest) = &self.guest else {
            drop(self.handle.spawn(life));
            return;
        };
        let slot = Arc::new(Mutex::new(Some(life)));
        let number = {
            let mut lives = lock(&guest.lives);
            // When the run is over, no actor starts.
            if guest.over.load(Acquire) {
                return;
            }
            lives.begun += 1;
            let number = lives.begun;
            lives.all.insert(number, slot.clone());
            number
        };
        drop(self.handle.spawn(Task {
            guest: guest.clone(),
            number,
            slot,
        }));
    }
}
