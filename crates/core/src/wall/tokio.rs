//! A tokio task per actor, on a runtime of its own with [`Config::workers`] threads, or on one that
//! is there already.
//!
//! A runtime of its own is dropped when the run is over, and every task with it. On another's the tasks end
//! by themselves: each is woken, sees that the run is over, and drops its body. The run waits until the last
//! has done so.
//!
//! [`Config::workers`]: crate::Config::workers

use super::boxed::Life;
use crate::contract::Cut;
use crate::sync::lock;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime of a run's own, whose threads have so much stack.
pub(super) fn build(workers: NonZeroUsize, stack: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers.get())
        .thread_name("corsair")
        .thread_stack_size(stack)
        .enable_time()
        .build()
}

/// Ends a runtime, which tokio does not allow on a thread that runs tasks, as the caller of a run may be.
pub(super) fn end(runtime: Runtime) {
    if Handle::try_current().is_err() {
        return drop(runtime);
    }
    // Without a thread for it, it ends here, by a panic.
    if let Ok(ending) = std::thread::Builder::new().spawn(|| drop(runtime)) {
        let _ = ending.join();
    }
}

pub(super) struct Tasks {
    handle: Handle,
    /// If the runtime is not the run's own.
    guest: Option<Arc<Guest>>,
}

/// What a run on another's runtime needs to end well.
struct Guest {
    cut: Cut,
    /// Each task holds a clone; `None` when no more may begin.
    alive: Mutex<Option<mpsc::Sender<()>>>,
}

/// Held by a task. If the runtime drops that before it has ended, the run is over.
struct Stay {
    cut: Cut,
    ended: bool,
    _alive: mpsc::Sender<()>,
}

impl Stay {
    async fn until_end(mut self, life: impl Future<Output = ()>) {
        life.await;
        self.ended = true;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if !self.ended {
            self.cut.cut();
        }
    }
}

/// A run's stay on another's runtime.
pub(super) struct Visit {
    guest: Arc<Guest>,
    gone: mpsc::Receiver<()>,
}

impl Visit {
    /// Lets no more tasks begin, and waits until those that there are have ended, as they do when woken.
    pub(super) fn end(self, wake: impl FnOnce()) {
        drop(lock(&self.guest.alive).take());
        wake();
        // An error says that no sender is left, which is what is waited for.
        let _ = self.gone.recv();
    }
}

impl Tasks {
    /// Tasks of a runtime that is the run's own.
    pub(super) fn own(runtime: &Runtime) -> Tasks {
        Tasks {
            handle: runtime.handle().clone(),
            guest: None,
        }
    }

    /// Tasks of another's runtime. If that drops one of them, the run is cut.
    pub(super) fn guest(handle: &Handle, cut: &Cut) -> (Tasks, Visit) {
        let (alive, gone) = mpsc::channel();
        let guest = Arc::new(Guest {
            cut: cut.clone(),
            alive: Mutex::new(Some(alive)),
        });
        let tasks = Tasks {
            handle: handle.clone(),
            guest: Some(guest.clone()),
        };
        (tasks, Visit { guest, gone })
    }

    /// Begins a life as a task.
    pub(super) fn start(&self, life: Life) {
        let Some(guest) = &self.guest else {
            drop(self.handle.spawn(life));
            return;
        };
        // When the run is over no actor starts.
        if let Some(alive) = lock(&guest.alive).clone() {
            let stay = Stay {
                cut: guest.cut.clone(),
                ended: false,
                _alive: alive,
            };
            drop(self.handle.spawn(stay.until_end(life)));
        }
    }
}
