//! Options and limits of an engine and its tasks.

use super::error::TaskError;
use crate::node::endpoint::Endpoints;
use crate::node::series::Limits;
use crate::node::spill::SinkDisk;
use crate::nodes::log::LogTarget;
use crate::pipeline::Pipeline;
use corsair::Executor;
use corsair::edge::Overflow;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The options of an engine. Every field has a useful default.
#[derive(Clone)]
pub struct EngineOptions {
    /// The executor of the nodes; not [`Executor::Virtual`].
    pub executor: Executor,
    /// The number of worker threads of the engine.
    pub workers: NonZeroUsize,
    /// The maximum number of concurrent writes; further ones are refused.
    pub writes: NonZeroUsize,
    /// The time that a write waits for capacity in a task, or for memory, before it is refused.
    pub patience: Duration,
    /// The largest body of a write, in bytes, after unpacking.
    pub max_body: usize,
    /// The maximum bytes of all bodies that are being read or parsed.
    pub body_memory: usize,
    /// The longest line of a write, in bytes.
    pub max_line: usize,
    /// The bytes of writes on the edges of a task at which it accepts no more.
    pub task_memory: usize,
    /// The maximum bytes in the queue of an `http_post`, and in the queue of the log.
    pub sink_memory: usize,
    /// The disk buffers of sinks. With `None` a queue is limited to the memory above, and posts to a receiver that is
    /// down are lost.
    pub sink_disk: Option<SinkDisk>,
    /// Receivers that tasks name.
    pub endpoints: Endpoints,
    /// The time limit for the receiver of an `http_post`.
    pub post_timeout: Duration,
    /// The maximum number of groups that a node remembers.
    pub max_series: usize,
    /// The maximum number of points that a node retains in windows, or until their partners arrive.
    pub max_points: usize,
    /// The maximum bytes that a node retains: groups, and points in windows or without a partner.
    pub node_memory: usize,
    /// The maximum number of tasks.
    pub max_tasks: usize,
    /// The time without points after which a group is removed.
    pub series_idle: Duration,
    /// The retention policy of writes that do not name one.
    pub default_policy: String,
    /// The target of `log` nodes.
    pub log: LogTarget,
    /// The files that alerts may write.
    pub alert_logs: AlertLogs,
    /// The overflow policy of the log, if it is not read fast enough.
    pub log_overflow: Overflow,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            executor: Executor::Tokio,
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            writes: NonZeroUsize::new(256).expect("256 is not 0"),
            patience: Duration::from_secs(2),
            max_body: 32 << 20,
            body_memory: 128 << 20,
            max_line: 1 << 20,
            task_memory: 64 << 20,
            sink_memory: 16 << 20,
            sink_disk: None,
            endpoints: Endpoints::default(),
            post_timeout: Duration::from_secs(10),
            max_series: 1_000_000,
            max_points: 10_000_000,
            node_memory: 512 << 20,
            max_tasks: 10_000,
            series_idle: Duration::from_secs(3600),
            default_policy: "autogen".into(),
            log: Arc::new(Mutex::new(std::io::stderr())),
            alert_logs: AlertLogs::Nowhere,
            log_overflow: Overflow::DropNewest,
        }
    }
}

impl EngineOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            series: self.max_series,
            idle: self.series_idle,
            points: self.max_points,
            bytes: self.node_memory,
        }
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("executor", &self.executor)
            .field("workers", &self.workers)
            .field("writes", &self.writes)
            .field("max_body", &self.max_body)
            .field("max_line", &self.max_line)
            .field("default_policy", &self.default_policy)
            .finish_non_exhaustive()
    }
}

/// The files that alerts may write. This is limited because anyone who may add a task chooses the file, which the text
/// of the task names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AlertLogs {
    /// Tasks whose alerts write files are refused.
    #[default]
    Nowhere,
    /// Files in this directory and its subdirectories.
    In(PathBuf),
    /// Any file that the process may write.
    Anywhere,
}

impl AlertLogs {
    /// Refuses a pipeline that writes to a file that is not allowed.
    pub(super) fn check(&self, pipeline: &Pipeline) -> Result<(), TaskError> {
        for node in pipeline.nodes() {
            let mut files = node.what.definition().files().iter();
            if let Some(path) = files.find(|path| !self.allow(path)) {
                let (node, path) = (node.name.clone(), path.clone());
                return Err(TaskError::AlertLog { node, path });
            }
        }
        Ok(())
    }

    fn allow(&self, path: &str) -> bool {
        let path = Path::new(path);
        let climbs = path.components().any(|part| part == Component::ParentDir);
        match self {
            AlertLogs::Nowhere => false,
            AlertLogs::In(directory) => !climbs && path.starts_with(directory),
            AlertLogs::Anywhere => true,
        }
    }
}

/// The options of a task's edges.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// The number of batches or windows that an edge holds.
    pub capacity: NonZeroUsize,
    /// The overflow policy of edges, and of the queue of an `http_post`.
    pub overflow: Overflow,
}

impl Default for TaskOptions {
    fn default() -> TaskOptions {
        TaskOptions {
            capacity: NonZeroUsize::new(64).expect("64 is not 0"),
            overflow: Overflow::Block,
        }
    }
}
