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
mod checkpointing;
mod endpoints;
mod entrance;
mod options;
mod plan;
mod routes;
mod saved;
mod sources;
mod status;
mod task;
mod write;
mod write_log;

pub(crate) use endpoints::Endpoint;
pub use endpoints::{EndpointError, Endpoints};
pub use options::{AlertLogs, EngineOptions, SinkDisk, TaskOptions};
pub use saved::{EngineSnapshot, SavedError};
pub(crate) use status::escaped;
pub use status::{EdgeStatus, NodeStatus, TaskState, TaskStatus};
pub use write::{BadLine, Write, WriteError, WriteReport};
pub use write_log::{Durability, LogError};

use crate::language::{self, LanguageError};
use crate::node::latest::LatestByGroup;
use crate::node::queue::{Counts, Queue};
use crate::nodes::log;
use crate::pending::PendingWrites;
use crate::pipeline::Pipeline;
use actors::{Command, Commands};
use corsair::{Executor, Report, RunError};
use parking_lot::{Mutex, RwLock};
use routes::Routes;
use saved::{LogPlace, SavedTask};
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use task::Task;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use write_log::WriteLog;

/// An engine that runs tasks. Clones share one engine.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<EngineState>,
}

#[derive(Debug)]
struct EngineState {
    options: EngineOptions,
    routes: RwLock<Arc<Routes>>,
    tasks: RwLock<BTreeMap<Arc<str>, Arc<Task>>>,
    commands: Commands,
    pending_writes: PendingWrites,
    /// Held for reading while a write is given to tasks, and for writing while a barrier is sent.
    order: RwLock<()>,
    /// Permits for concurrent writes.
    writes: Arc<Semaphore>,
    write_log: OnceLock<WriteLog>,
    /// True once the log has been read; new tasks then take all writes.
    live: AtomicBool,
    /// The position in the log of the last write that was given to tasks; changed while `order` is held.
    position: AtomicU64,
    /// The log position of the restored state.
    restored: Mutex<LogPlace>,
    /// The position at which each source continues; changed while `order` is held.
    sources: Mutex<BTreeMap<String, i64>>,
    closed: AtomicBool,
    /// True if nodes save their state when their inputs end.
    suspended: Arc<AtomicBool>,
    /// The saved states of tasks that have not been started yet.
    saved: Mutex<BTreeMap<String, SavedTask>>,
    /// The lines that all `log` nodes have written.
    log: Queue,
    accepted: AtomicU64,
    rejected: AtomicU64,
    written: AtomicU64,
    run: Mutex<Option<JoinHandle<Result<Report, RunError>>>>,
    /// The runtime in which elements wait for capacity on the first edge of a task.
    io: Handle,
}

/// The origin of a stored task, which a process needs to restart it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TaskOrigin {
    /// The generation of the engine's routes from which on the task takes points of the log.
    since: u64,
    /// The creation time in nanoseconds since 1970.
    created: i64,
    /// The lengths of the files of its alerts, by path.
    files: BTreeMap<String, u64>,
}

/// The reasons why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Virtual time cannot run tasks, because tasks wait for edges.
    #[error(
        "streams run on the wall clock, and the executor `virtual` has none; use tokio, threads or pool"
    )]
    Virtual,
    /// The system refused a thread.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] io::Error),
}

/// A task could not be started or found.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task's text is not a valid pipeline.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// A node posts to a URL that needs TLS, and this build has no TLS.
    #[error(
        "`{node}` posts to {url}, and this build has no TLS; build with `--features corsair-stream/tls`, or post to a plain http URL"
    )]
    Tls {
        /// The name of the node.
        node: Arc<str>,
        /// The URL.
        url: Arc<str>,
    },
    /// A node posts to an endpoint that the server does not have.
    #[error(
        "`{node}` posts to the endpoint '{endpoint}', and there is none; define it in the file of `--endpoints FILE`"
    )]
    Endpoint {
        /// The name of the node.
        node: Arc<str>,
        /// The name of the endpoint.
        endpoint: Arc<str>,
    },
    /// The name of a task cannot be part of a URL.
    #[error(
        "`{0}` is not a name for a task; use 1 to 128 letters, digits, `-`, `_` and `.`, and begin with a letter or digit"
    )]
    Name(String),
    /// A task with this name exists.
    #[error("there is a task `{0}` already; delete it first, or take another name")]
    Duplicate(Arc<str>),
    /// No task has this name.
    #[error("there is no task `{name}`{}", did_you_mean(.near))]
    Unknown {
        /// The unknown name.
        name: String,
        /// The nearest existing name.
        near: Option<String>,
    },
    /// An alert writes to a file that is not allowed.
    #[error(
        "`{node}` writes alerts to {path}, and tasks may write none there; name the directory for them (`--alert-logs DIR`)"
    )]
    AlertLog {
        /// The name of the node.
        node: Arc<str>,
        /// The path of the refused file.
        path: Arc<str>,
    },
    /// The number of tasks is at its limit.
    #[error("there are {0} tasks already, as many as there may be; delete one first")]
    TooMany(usize),
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    Closed,
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
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
        let (commands, received) = actors::commands();
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
                log.close();
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

impl EngineState {
    fn tasks(&self) -> Vec<Arc<Task>> {
        self.tasks.read().values().cloned().collect()
    }

    fn routes(&self) -> Arc<Routes> {
        self.routes.read().clone()
    }

    /// Returns the position in the log behind the last write that tasks have received.
    fn place(&self) -> LogPlace {
        LogPlace {
            position: self.position.load(Ordering::SeqCst),
            generation: self.routes.read().generation,
            identity: self.write_log.get().map(|log| log.identity),
        }
    }

    /// Continues the generations of routes of an earlier process.
    fn raise_generation(&self, least: u64) {
        if self.routes.read().generation < least {
            let mut routes = self.routes.write();
            let generation = routes.generation.max(least);
            Arc::make_mut(&mut routes).generation = generation;
        }
    }

    /// Records that the log has been read: new tasks take every write from now on.
    fn began_now(&self) {
        self.live.store(true, Ordering::SeqCst);
        let generation = self.routes.read().generation;
        for task in self.tasks() {
            let _ = task.since.compare_exchange(
                u64::MAX,
                generation,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Returns the saved state of the task `name`, unless its text has changed or the task was added after the state was
    /// saved.
    fn saved_for(&self, name: &str, pipeline: &Pipeline, since: Option<u64>) -> Option<SavedTask> {
        let saved = self.saved.lock().remove(name)?;
        if since.is_some_and(|since| since > self.restored.lock().generation) {
            return None;
        }
        if saved.text == pipeline.to_string() {
            return Some(saved);
        }
        tracing::warn!("task {name}: its text has changed; what was saved of it is left out");
        None
    }

    fn subscribe(&self, task: &Arc<Task>) {
        let mut routes = self.routes.write();
        Arc::make_mut(&mut routes).add(task);
        if self.live.load(Ordering::SeqCst) {
            task.since.store(routes.generation, Ordering::Relaxed);
        }
    }

    fn unsubscribe(&self, task: &Arc<Task>) {
        Arc::make_mut(&mut self.routes.write()).remove(task);
    }

    fn take_routes(&self) -> Arc<Routes> {
        std::mem::take(&mut self.routes.write())
    }
}

/// Refuses a pipeline that posts to an https URL.
fn refuse_tls(pipeline: &Pipeline) -> Result<(), TaskError> {
    let secure = |url: &str| {
        url.get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    };
    for node in pipeline.nodes() {
        let mut urls = node.what.definition().urls().into_iter();
        if let Some(url) = urls.find(|url| secure(url)) {
            let (node, url) = (node.name.clone(), url.clone());
            return Err(TaskError::Tls { node, url });
        }
    }
    Ok(())
}

/// Refuses a pipeline that posts to an endpoint that the server does not have.
fn known_endpoints(pipeline: &Pipeline, endpoints: &Endpoints) -> Result<(), TaskError> {
    for node in pipeline.nodes() {
        for name in node.what.definition().receivers() {
            if endpoints.get(name).is_none() {
                let (node, endpoint) = (node.name.clone(), name.clone());
                return Err(TaskError::Endpoint { node, endpoint });
            }
        }
    }
    Ok(())
}

/// Returns the lengths of the files to which a pipeline appends.
fn file_lengths(pipeline: &Pipeline) -> BTreeMap<String, u64> {
    let nodes = pipeline.nodes().iter();
    let files = nodes.flat_map(|node| node.what.definition().files());
    let length = |path: &str| std::fs::metadata(path).map_or(0, |data| data.len());
    files.map(|path| (path.to_string(), length(path))).collect()
}

/// Refuses a name that no task can have.
pub(crate) fn check_name(name: &str) -> Result<(), TaskError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(TaskError::Name(name.into())),
    }
}

/// True if a name needs no escaping in a URL.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
}
