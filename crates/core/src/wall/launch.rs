//! A run on one of the wall-clock executors: creates its threads or tasks, waits until the run is over, and
//! ends the remaining actors.

use super::context;
use super::pool::Pool;
use super::runtime::Runtime;
use super::stack;
use super::summary;
use super::system::System;
use super::threads::Threads;
#[cfg(feature = "tokio")]
use super::tokio::{self, Tasks};
use crate::contract::{Addr, Config, Executor, Message, Report, RunError, Scenario};
#[cfg(feature = "tokio")]
use ::tokio::runtime::Handle;
use std::io;
#[cfg(feature = "tokio")]
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Runs a scenario with a task per actor. The calling thread waits until it is over.
#[cfg(feature = "tokio")]
pub(crate) fn on_tokio<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let executor = Executor::Tokio;
    let built = tokio::build(config.workers, stack::of_worker::<M>());
    let runtime = built.map_err(|error| without_threads(executor, config, error))?;
    let tasks = Runtime::Tasks(Tasks::own(&runtime));
    // Dropping the runtime drops every task.
    launch(executor, config, tasks, scenario, |_| tokio::end(runtime))
}

/// Runs a scenario with a task per actor on this runtime, which may run other tasks as well.
#[cfg(feature = "tokio")]
pub(crate) fn on_runtime<M: Message>(
    handle: &Handle,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let workers = NonZeroUsize::new(handle.metrics().num_workers());
    let config = Config {
        workers: workers.unwrap_or(NonZeroUsize::MIN),
        ..config.clone()
    };
    let (tasks, visit) = Tasks::guest(handle, &config.cancel);
    let shut = |system: &Arc<System<M>>| visit.end(|| system.wake_all());
    let tasks = Runtime::Tasks(tasks);
    launch(Executor::Tokio, &config, tasks, scenario, shut)
}

/// Runs a scenario with a thread per actor. The calling thread waits until it is over.
pub(crate) fn on_threads<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let threads = Threads::new(stack::for_messages::<M>());
    let running = threads.running();
    let threads = Runtime::Threads(threads);
    launch(Executor::Threads, config, threads, scenario, |system| {
        // The call is repeated, because an actor that is just being started may miss it.
        while !running.wait(Duration::from_millis(5), || system.wake_all()) {}
    })
}

/// Runs a scenario on [`Config::workers`] threads. The calling thread waits until it is over.
pub(crate) fn on_pool<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let executor = Executor::Pool;
    let begun = Pool::begin(config.workers, stack::of_worker::<M>());
    let (pool, crew) = begun.map_err(|error| without_threads(executor, config, error))?;
    let pool = Runtime::Pool(pool);
    launch(executor, config, pool, scenario, |system| {
        crew.dismiss();
        for who in (0..system.spawned()).map(Addr) {
            let cell = system.cells.get(who.0);
            if let Some(job) = cell.and_then(|cell| cell.handle.get()) {
                job.abandon();
            }
        }
    })
}

/// Starts the root, keeps the time until the run is over, ends the remaining actors by `shut`, and reports.
fn launch<M: Message>(
    executor: Executor,
    config: &Config,
    runtime: Runtime,
    scenario: impl Scenario<M>,
    shut: impl FnOnce(&Arc<System<M>>),
) -> Result<Report, RunError> {
    let system = Arc::new(System::<M>::new(config, runtime));
    context::spawn_root(&system, scenario);
    system.clock.run(
        |now| system.watch(now),
        |to, entry| system.post_delayed(to, entry),
    );
    let over = system.clock.now();
    shut(&system);
    summary::conclude(&system, executor, over)
}

/// Returns the error of a run that could not begin, because the system had no threads for it.
fn without_threads(executor: Executor, config: &Config, source: io::Error) -> RunError {
    let report = Report {
        executor,
        seed: config.seed,
        ..Report::default()
    };
    RunError::Thread {
        source,
        report: Box::new(report),
    }
}
