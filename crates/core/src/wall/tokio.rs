//! A tokio task per actor, on a runtime of its own with [`Config::workers`] threads, or on one that
//! is there already.
//!
//! A runtime of its own is dropped when the run is over, and every task with it. On another's
//! ([`run_on`]) the tasks end by themselves: each is woken, sees that the run is over, and drops its
//! body. The run waits until the last has done so.

use super::runtime::{Life, Runtime};
use super::stack;
use super::system::System;
use super::{launch, nothing};
use crate::contract::{Config, Cut, Executor, Message, Report, RunError, Scenario};
use crate::sync::lock;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, mpsc};
use tokio::runtime::{Builder, Handle};

/// Runs a scenario with a task per actor. The calling thread waits until it is over.
pub(crate) fn run<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let workers = config.workers.get();
    let built = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("corsair")
        .thread_stack_size(stack::of_worker::<M>())
        .enable_time()
        .build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(source) => {
            return Err(RunError::Thread {
                source,
                report: nothing(Executor::Tokio, config),
            });
        }
    };
    let tasks = Tasks {
        handle: runtime.handle().clone(),
        guest: None,
    };
    // The end of the runtime drops every task.
    launch(
        Executor::Tokio,
        config,
        Runtime::Tasks(tasks),
        scenario,
        |_| end(runtime),
    )
}

/// Ends a runtime, which tokio does not allow on a thread that runs tasks, as the caller of a run may be.
fn end(runtime: tokio::runtime::Runtime) {
    if Handle::try_current().is_err() {
        return drop(runtime);
    }
    // Without a thread for it, it ends here, by a panic.
    if let Ok(ending) = std::thread::Builder::new().spawn(|| drop(runtime)) {
        let _ = ending.join();
    }
}

/// Runs a scenario with a task per actor on this runtime, beside whatever else it runs.
pub(crate) fn run_on<M: Message>(
    handle: &Handle,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let workers = NonZeroUsize::new(handle.metrics().num_workers());
    let config = Config {
        workers: workers.unwrap_or(NonZeroUsize::MIN),
        ..config.clone()
    };
    let (alive, gone) = mpsc::channel();
    let guest = Arc::new(Guest {
        cut: config.cut.clone(),
        alive: Mutex::new(Some(alive)),
    });
    let tasks = Tasks {
        handle: handle.clone(),
        guest: Some(guest.clone()),
    };
    let shut = |system: &Arc<System<M>>| {
        drop(lock(&guest.alive).take());
        for cell in system.cells.iter() {
            cell.wake();
        }
        // An error says that no sender is left, which is what is waited for.
        let _ = gone.recv();
    };
    launch(
        Executor::Tokio,
        &config,
        Runtime::Tasks(tasks),
        scenario,
        shut,
    )
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

impl Tasks {
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
