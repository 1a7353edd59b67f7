//! Runs tasks: every node an actor, every arrow an edge.
//!
//! An engine is one run of the core, on a thread of its own. Its root actor starts the nodes of
//! tasks and learns when they end. Writes do not pass through any actor: whoever calls
//! [`Engine::write`] parses the lines, looks up which tasks want them, and puts a batch on the first
//! edge of each.
//!
//! **Nothing accepted is lost.** When a write is answered, its points lie on the edges of all tasks
//! that want them. [`Engine::close`] lets no more in, and returns when all of them have gone their
//! way. Only [`Engine::delete`], a failing node and an overflow policy of a task drop points.

mod actors;
mod options;
mod plan;
mod routes;
mod status;
mod task;
mod write;

pub use options::{EngineOptions, TaskOptions};
pub use status::{EdgeStatus, NodeStatus, TaskState, TaskStatus};
pub use write::{BadLine, Write, WriteError, Written};

use crate::language::{self, LanguageError};
use crate::node::sink::Latest;
use crate::passage::Passages;
use crate::pipeline::{Pipeline, What};
use actors::{Command, Commands};
use corsair::{Executor, Report, RunError};
use routes::Routes;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use task::Task;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Runs tasks. Clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: EngineOptions,
    routes: RwLock<Arc<Routes>>,
    tasks: RwLock<BTreeMap<Arc<str>, Arc<Task>>>,
    commands: Commands,
    passages: Passages,
    /// A permit per write that may be under way.
    writes: Semaphore,
    closed: AtomicBool,
    accepted: AtomicU64,
    rejected: AtomicU64,
    written: AtomicU64,
    run: Mutex<Option<JoinHandle<Result<Report, RunError>>>>,
    /// Where requests of `http_post` block.
    io: Handle,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Tasks wait for edges, which virtual time knows nothing of.
    #[error(
        "streams run on the wall clock, and the executor `virtual` has none; use tokio, threads or pool"
    )]
    Virtual,
    /// There is no thread for it.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] io::Error),
}

/// Why a task is not started or found.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Its text is no pipeline.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// It posts to a URL for which this build has no TLS.
    #[error(
        "`{node}` posts to {url}, and this build has no TLS; build with `--features corsair-stream/tls`, or post to a plain http URL"
    )]
    Tls {
        /// The node.
        node: Arc<str>,
        /// The URL.
        url: Arc<str>,
    },
    /// A name that cannot be part of a URL.
    #[error(
        "`{0}` is no name for a task; use 1 to 128 letters, digits, `-`, `_` and `.`, and begin with a letter or digit"
    )]
    Name(String),
    /// There is one of this name.
    #[error("there is a task `{0}` already; delete it first, or take another name")]
    Duplicate(Arc<str>),
    /// There is none of this name.
    #[error("there is no task `{name}`{}", did_you_mean(.near))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
    },
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
    /// Outside of a tokio runtime: `http_post` uses the calling one's threads that may block.
    pub fn start(options: EngineOptions) -> Result<Engine, StartError> {
        if options.executor == Executor::Virtual {
            return Err(StartError::Virtual);
        }
        let (commands, received) = actors::commands();
        let shared = Arc::new(Shared {
            writes: Semaphore::new(options.writes.get()),
            routes: RwLock::default(),
            tasks: RwLock::default(),
            commands,
            passages: Passages::default(),
            closed: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            written: AtomicU64::new(0),
            run: Mutex::new(None),
            io: Handle::current(),
            options,
        });
        let run = actors::run(&shared, received)?;
        *lock(&shared.run) = Some(run);
        Ok(Engine { shared })
    }

    /// Starts a task from its text.
    ///
    /// # Errors
    /// See [`TaskError`]; nothing is started then.
    pub async fn add(&self, name: &str, text: &str, options: TaskOptions) -> Result<(), TaskError> {
        self.add_pipeline(name, language::parse(text)?, options)
            .await
    }

    /// Starts a task.
    ///
    /// # Errors
    /// See [`TaskError`]; nothing is started then.
    pub async fn add_pipeline(
        &self,
        name: &str,
        pipeline: Pipeline,
        options: TaskOptions,
    ) -> Result<(), TaskError> {
        let shared = &self.shared;
        if !is_name(name) {
            return Err(TaskError::Name(name.into()));
        }
        if !cfg!(feature = "tls") {
            refuse_tls(&pipeline)?;
        }
        let (task, plan) = plan::plan(shared, name, pipeline, &options);
        {
            let mut tasks = shared.tasks.write().unwrap_or_else(PoisonError::into_inner);
            if shared.closed.load(Ordering::SeqCst) {
                return Err(TaskError::Closed);
            }
            if tasks.contains_key(name) {
                return Err(TaskError::Duplicate(name.into()));
            }
            tasks.insert(name.into(), task.clone());
            // What is written before its nodes have started waits on its first edges.
            shared.subscribe(&task);
        }
        shared.commands.give(Command::Start(plan)).await;
        Ok(())
    }

    /// Deletes a task: what lies on its edges is dropped, and it gets nothing more. Returns when all
    /// its nodes have ended, which takes as long as the requests that its `http_post` nodes have
    /// begun.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub async fn delete(&self, name: &str) -> Result<(), TaskError> {
        let shared = &self.shared;
        let task = {
            let mut tasks = shared.tasks.write().unwrap_or_else(PoisonError::into_inner);
            tasks.remove(name).inspect(|task| shared.unsubscribe(task))
        };
        let Some(task) = task else {
            return Err(self.unknown(name));
        };
        task.abort();
        task.ended().await;
        Ok(())
    }

    /// How a task is getting on.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub fn status(&self, name: &str) -> Result<TaskStatus, TaskError> {
        self.task(name).map(|task| task.status())
    }

    /// How all tasks are getting on, by name.
    pub fn statuses(&self) -> Vec<TaskStatus> {
        let tasks = self.shared.tasks();
        tasks.iter().map(|task| task.status()).collect()
    }

    /// What an `http_out` of a task shows; `None`: it has no such endpoint.
    ///
    /// # Errors
    /// [`TaskError::Unknown`].
    pub fn endpoint(&self, name: &str, endpoint: &str) -> Result<Option<Latest>, TaskError> {
        Ok(self.task(name)?.endpoint(endpoint).cloned())
    }

    /// The totals of all writes: lines accepted, lines rejected, writes.
    pub fn totals(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &self.shared;
        (
            read(&shared.accepted),
            read(&shared.rejected),
            read(&shared.written),
        )
    }

    /// The options with which it was started.
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    /// Returns when every point of the writes answered so far has gone its way through every task, as
    /// far as it goes: into a window that is not full, say.
    pub async fn settle(&self) {
        self.shared.passages.settle().await;
    }

    /// Lets nothing more in, and returns when every point that was accepted has gone its way
    /// through every task, and all nodes have ended. Tasks can still be looked at.
    pub async fn drain(&self) {
        let shared = &self.shared;
        shared.closed.store(true, Ordering::SeqCst);
        // Writes under way hold their permits until their points lie on edges.
        let all = u32::try_from(shared.options.writes.get()).unwrap_or(u32::MAX);
        let permits = shared.writes.acquire_many(all).await;
        let routes = {
            // Whoever has found the engine open has subscribed by now.
            let _tasks = shared.tasks.write().unwrap_or_else(PoisonError::into_inner);
            shared.take_routes()
        };
        routes.close().await;
        for task in shared.tasks() {
            task.ended().await;
        }
        drop(permits);
    }

    /// [`Engine::drain`], and the end of the run. `None` if somebody has closed it before.
    ///
    /// # Errors
    /// Those of [`corsair::run`].
    pub async fn close(&self) -> Option<Result<Report, RunError>> {
        self.drain().await;
        self.shared.commands.give(Command::End).await;
        let run = lock(&self.shared.run).take()?;
        // It ends at once; only its thread has to.
        let joined = tokio::task::spawn_blocking(move || run.join()).await;
        match joined {
            Ok(Ok(report)) => Some(report),
            _ => None,
        }
    }

    fn task(&self, name: &str) -> Result<Arc<Task>, TaskError> {
        let tasks = self.shared.tasks.read();
        let tasks = tasks.unwrap_or_else(PoisonError::into_inner);
        let task = tasks.get(name).cloned();
        drop(tasks);
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

impl Shared {
    fn tasks(&self) -> Vec<Arc<Task>> {
        let tasks = self.tasks.read().unwrap_or_else(PoisonError::into_inner);
        tasks.values().cloned().collect()
    }

    fn routes(&self) -> Arc<Routes> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        routes.clone()
    }

    fn subscribe(&self, task: &Arc<Task>) {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut routes).add(task);
    }

    fn unsubscribe(&self, task: &Arc<Task>) {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut routes).remove(task);
    }

    fn take_routes(&self) -> Arc<Routes> {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut routes)
    }
}

/// Refuses a pipeline that posts to an https URL.
fn refuse_tls(pipeline: &Pipeline) -> Result<(), TaskError> {
    let secure = |url: &str| {
        url.get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    };
    for node in pipeline.nodes() {
        if let What::HttpPost { url } = &node.what
            && secure(url)
        {
            let (node, url) = (node.name.clone(), url.clone());
            return Err(TaskError::Tls { node, url });
        }
    }
    Ok(())
}

/// Locks what is in order even if somebody panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a name can stand in a URL as it is.
fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
}
