//! Runs tasks: every node of a task is an actor, and every arrow an edge.
//!
//! An engine is one run of the core, on its own thread. The root actor starts the nodes of tasks and is notified when
//! they end. Writes do not pass through any actor: the caller of [`Engine::write`] parses the lines, looks up the tasks
//! that take them, and puts a batch on the first edge of each task.
//!
//! **Nothing accepted is lost.** When a write is answered, its points are on the edges of all tasks that take them.
//! [`Engine::close`] accepts no further writes, and returns when all points have been processed. [`Engine::suspend`]
//! does the same within a deadline, and saves the points that have not been processed. With a write-ahead log
//! ([`Engine::open_log`]) this also holds after a crash. Only [`Engine::delete`], a task's overflow policy and the
//! limits in [`EngineOptions`] drop points, and dropped points are counted.

mod actors;
mod check;
mod checkpointing;
mod command;
mod endpoints;
mod entrance;
mod error;
mod log_entry;
mod options;
mod parse;
mod plan;
mod recovery;
mod report;
mod routes;
mod saved;
mod sources;
mod state;
mod status;
mod task;
mod write;
mod write_log;

pub use crate::node::endpoint::Endpoints;
pub use crate::node::spill::SinkDisk;
pub(crate) use check::check_name;
pub use endpoints::EndpointError;
pub use error::{StartError, TaskError};
pub use options::{AlertLogs, EngineOptions, TaskOptions};
pub(crate) use parse::{Lines, ParseError, ParsedWrite};
pub use report::{BadLine, Write, WriteError, WriteReport};
pub use saved::{EngineSnapshot, SavedError};
pub(crate) use status::escaped;
pub use status::{EdgeStatus, NodeStatus, TaskState, TaskStatus};
pub use task::TaskOrigin;
pub use write_log::{Durability, LogError};

use crate::language;
use crate::node::latest::LatestByGroup;
use crate::node::queue::{Counts, Queue};
use crate::nodes::log;
use crate::pending::PendingWrites;
use crate::pipeline::Pipeline;
use check::{file_lengths, known_endpoints, refuse_tls};
use command::Command;
use corsair::{Executor, Report, RunError};
use parking_lot::{Mutex, RwLock};
use saved::SavedTask;
use state::EngineState;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use task::Task;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// An engine that runs tasks. Clones share one engine.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<EngineState>,
}

impl Engine {
    /// Starts an engine without tasks.
    ///
    /// # Errors
    /// See [`StartError`].
    ///
    /// # Panics
    /// If called outside of a tokio runtime, which runs the waits for capacity in tasks.
    pub fn start(options: EngineOptions) -> Result<Engine, StartError> {
        if options.executor == Executor::Virtual {
            return Err(StartError::Virtual);
        }
        let (commands, received) = command::commands();
        let shared = Arc::new(EngineState {
            writes: Arc::new(Semaphore::new(options.writes.get())),
            write_log: OnceLock::new(),
            live: AtomicBool::new(false),
            position: AtomicU64::new(0),
            restored: Mutex::default(),
            sources: Mutex::default(),
            routes: RwLock::default(),
            tasks: RwLock::default(),
            commands,
            pending_writes: PendingWrites::default(),
            order: RwLock::default(),
            closed: AtomicBool::new(false),
            suspended: Arc::default(),
            saved: Mutex::default(),
            log: log::queue(options.log.clone(), options.sink_memory),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            written: AtomicU64::new(0),
            run: Mutex::new(None),
            io: Handle::current(),
            options,
        });
        let run = actors::run(&shared, received)?;
        *shared.run.lock() = Some(run);
        Ok(Engine { shared })
    }

    /// Starts a task from its text.
    ///
    /// # Errors
    /// See [`TaskError`]; in that case nothing is started.
    pub async fn add(&self, name: &str, text: &str, options: TaskOptions) -> Result<(), TaskError> {
        self.add_pipeline(name, language::parse(text)?, options)
            .await
    }

    /// Starts a task.
    ///
    /// # Errors
    /// See [`TaskError`]; in that case nothing is started.
    pub async fn add_pipeline(
        &self,
        name: &str,
        pipeline: Pipeline,
        options: TaskOptions,
    ) -> Result<(), TaskError> {
        self.add_with(name, pipeline, options, None)
    }

    /// Starts a task that an earlier process has created.
    ///
    /// # Errors
    /// See [`TaskError`]; in that case nothing is started.
    pub async fn add_stored(
        &self,
        name: &str,
        text: &str,
        options: TaskOptions,
        origin: TaskOrigin,
    ) -> Result<(), TaskError> {
        self.add_with(name, language::parse(text)?, options, Some(origin))
    }

    fn add_with(
        &self,
        name: &str,
        pipeline: Pipeline,
        options: TaskOptions,
        origin: Option<TaskOrigin>,
    ) -> Result<(), TaskError> {
        let shared = &self.shared;
        check_name(name)?;
        if !cfg!(feature = "tls") {
            refuse_tls(&pipeline)?;
        }
        shared.options.alert_logs.check(&pipeline)?;
        known_endpoints(&pipeline, &shared.options.endpoints)?;
        let mut tasks = shared.tasks.write();
        if shared.closed.load(Ordering::SeqCst) {
            return Err(TaskError::Closed);
        }
        if tasks.contains_key(name) {
            return Err(TaskError::Duplicate(name.into()));
        }
        if tasks.len() >= shared.options.max_tasks {
            return Err(TaskError::TooMany(tasks.len()));
        }
        let saved = shared.saved_for(name, &pipeline, origin.as_ref().map(|origin| origin.since));
        let origin = origin.unwrap_or_else(|| TaskOrigin {
            // A task with a saved state takes all later writes of the log; any other task takes no logged writes.
            since: if saved.is_some() { 0 } else { u64::MAX },
            created: crate::now::now(),
            files: file_lengths(&pipeline),
        });
        let (task, plan) = plan::plan(shared, name, pipeline, &options, &origin, saved);
        // From here on the task is visible, so its nodes must be started: nothing below may await, or a
        // caller that is dropped would leave a task without nodes.
        tasks.insert(name.into(), task.clone());
        // Points that are written before the task's nodes have started wait on its first edges.
        shared.subscribe(&task);
        shared.commands.give(Command::Start(plan));
        Ok(())
    }

    /// Returns the creation time and the routes of a task, to be stored with its text.
    pub(crate) fn origin(&self, name: &str) -> Option<TaskOrigin> {
        let task = self.shared.tasks.read().get(name).cloned()?;
        Some(TaskOrigin {
            since: task.since.load(Ordering::Relaxed),
            ..task.origin.clone()
        })
    }

    /// Returns the creation time of a task in nanoseconds since 1970.
    pub(crate) fn created(&self, name: &str) -> Option<i64> {
        let tasks = self.shared.tasks.read();
        tasks.get(name).map(|task| task.origin.created)
    }

    /// Deletes a task: the contents of its edges are dropped, and the task gets no more points. Returns when all nodes
    /// of the task have ended; a request of an `http_post` node may take longer.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub async fn delete(&self, name: &str) -> Result<(), TaskError> {
        let shared = &self.shared;
        let task = {
            let mut tasks = shared.tasks.write();
            tasks.remove(name).inspect(|task| shared.unsubscribe(task))
        };
        let Some(task) = task else {
            return Err(self.unknown(name));
        };
        task.abort();
        task.ended().await;
        Ok(())
    }

    /// Returns the status of a task.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub fn status(&self, name: &str) -> Result<TaskStatus, TaskError> {
        self.task(name).map(|task| task.status())
    }

    /// Returns the status of all tasks, by name.
    pub fn statuses(&self) -> Vec<TaskStatus> {
        let tasks = self.shared.tasks();
        tasks.iter().map(|task| task.status()).collect()
    }

    /// Returns the statuses of at most `count` tasks, from this name on.
    pub fn statuses_from(&self, name: &str, count: usize) -> Vec<TaskStatus> {
        let tasks = self.shared.tasks.read();
        let from = (Bound::Included(name), Bound::Unbounded);
        let found = tasks.range::<str, _>(from).take(count);
        let found: Vec<Arc<Task>> = found.map(|(_, task)| task.clone()).collect();
        drop(tasks);
        found.iter().map(|task| task.status()).collect()
    }

    /// Returns the contents of an `http_out` of a task; `None` if there is no such endpoint.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub fn endpoint(&self, name: &str, endpoint: &str) -> Result<Option<LatestByGroup>, TaskError> {
        Ok(self.task(name)?.endpoint(endpoint).cloned())
    }

    /// Returns the contents of all `http_out` nodes of a task, by endpoint.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub fn endpoints(&self, name: &str) -> Result<Vec<(Arc<str>, LatestByGroup)>, TaskError> {
        Ok(self.task(name)?.endpoints())
    }

    /// Returns the totals of all writes: accepted lines, rejected lines, writes.
    pub fn totals(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &self.shared;
        (
            read(&shared.accepted),
            read(&shared.rejected),
            read(&shared.written),
        )
    }

    /// Returns the position in the write-ahead log of the last write that was given to tasks, and whether the log can
    /// still be written. `None` without a log.
    pub fn log_status(&self) -> Option<(u64, bool)> {
        let log = self.shared.write_log.get()?;
        Some((
            self.shared.position.load(Ordering::SeqCst),
            !log.has_failed(),
        ))
    }

    /// Returns the options with which the engine was started.
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    /// Returns when every point of the writes answered so far has passed through every task, or is stored in
    /// a node such as an incomplete window.
    pub async fn settle(&self) {
        self.shared.pending_writes.settle().await;
    }

    /// Closes the engine for writes, and returns when every accepted point has passed through every task and
    /// all nodes have ended. Tasks can still be inspected.
    pub async fn drain(&self) {
        let shared = &self.shared;
        shared.closed.store(true, Ordering::SeqCst);
        // Writes in progress hold their permits until their points are on edges.
        let all = u32::try_from(shared.options.writes.get()).unwrap_or(u32::MAX);
        let permits = shared.writes.acquire_many(all).await;
        let routes = {
            // Tasks that were added before the engine closed have subscribed by now.
            let _tasks = shared.tasks.write();
            shared.take_routes()
        };
        routes.close();
        for task in shared.tasks() {
            task.ended().await;
        }
        shared.log.drained().await;
        drop(permits);
    }

    /// Closes the engine for writes, and stops it. Points on the edges are processed, but points in incomplete windows
    /// stay there and are saved. Output that has not been delivered by the deadline, for example because a receiver
    /// hangs, is saved too.
    ///
    /// Pass the result to [`Engine::restore`]. After the deadline, the call still waits until nodes have processed the
    /// contents of their edges.
    pub async fn suspend(&self, deadline: Duration) -> EngineSnapshot {
        let shared = &self.shared;
        shared.suspended.store(true, Ordering::SeqCst);
        {
            let mut drained = std::pin::pin!(self.drain());
            let in_time = tokio::time::timeout(deadline, &mut drained).await;
            if in_time.is_err() {
                self.hurry();
                // Sinks no longer wait for their receivers, so nodes no longer wait for sinks.
                drained.await;
            }
        }
        let mut tasks = std::mem::take(&mut *shared.saved.lock());
        for task in shared.tasks() {
            let saved = SavedTask {
                text: task.pipeline.to_string(),
                created: task.origin.created,
                nodes: std::mem::take(&mut *task.kept.lock()),
            };
            tasks.insert(task.name.to_string(), saved);
        }
        EngineSnapshot {
            tasks,
            log: shared.log.rest(),
            place: shared.place(),
            sources: shared.sources.lock().clone(),
            took: Duration::ZERO,
        }
    }

    /// Makes [`Engine::suspend`] behave as if its deadline had passed.
    pub fn hurry(&self) {
        for task in self.shared.tasks() {
            task.queues().for_each(Queue::keep);
        }
        self.shared.log.keep();
    }

    /// Sets the saved state of tasks that are added after this call with the same name and text.
    pub fn restore(&self, saved: EngineSnapshot) {
        let shared = &self.shared;
        shared.log.refill(saved.log, &Counts::default());
        shared.saved.lock().extend(saved.tasks);
        shared
            .position
            .store(saved.place.position, Ordering::SeqCst);
        shared.raise_generation(saved.place.generation);
        *shared.sources.lock() = saved.sources;
        *shared.restored.lock() = saved.place;
    }

    /// Drains the engine like [`Engine::drain`], and ends the run. `None` if it was closed before.
    ///
    /// # Errors
    /// See [`corsair::run`].
    pub async fn close(&self) -> Option<Result<Report, RunError>> {
        self.drain().await;
        self.shared.commands.give(Command::End);
        let run = self.shared.run.lock().take()?;
        let shared = self.shared.clone();
        // The run and its threads end soon, so this wait is short.
        let joined = tokio::task::spawn_blocking(move || {
            if let Some(log) = shared.write_log.get() {
                log.close(&shared);
            }
            run.join()
        })
        .await;
        match joined {
            Ok(Ok(report)) => Some(report),
            _ => None,
        }
    }

    fn task(&self, name: &str) -> Result<Arc<Task>, TaskError> {
        let task = self.shared.tasks.read().get(name).cloned();
        task.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> TaskError {
        let tasks = self.shared.tasks();
        let near = tasks
            .iter()
            .map(|task| (strsim::damerau_levenshtein(task.name(), name), task.name()))
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, near)| near.to_string());
        TaskError::Unknown {
            name: name.into(),
            near,
        }
    }
}
