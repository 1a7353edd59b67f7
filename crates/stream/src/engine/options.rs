//! How an engine and its tasks are to run.

use crate::node::sink::LogTarget;
use corsair::Executor;
use corsair::edge::Overflow;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// How an engine is to run. Every field has a useful default.
#[derive(Clone)]
pub struct EngineOptions {
    /// Where the nodes run; not [`Executor::Virtual`].
    pub executor: Executor,
    /// Worker threads of it.
    pub workers: NonZeroUsize,
    /// So many writes may be under way at once; one more is refused.
    pub writes: NonZeroUsize,
    /// The largest body of a write, in bytes, after unpacking.
    pub max_body: usize,
    /// The longest line of a write, in bytes.
    pub max_line: usize,
    /// The retention policy of writes that name none.
    pub default_policy: String,
    /// Where the `log` nodes write.
    pub log: LogTarget,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            executor: Executor::Tokio,
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            writes: NonZeroUsize::new(256).expect("256 is not 0"),
            max_body: 32 << 20,
            max_line: 1 << 20,
            default_policy: "autogen".into(),
            log: Arc::new(Mutex::new(std::io::stderr())),
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

/// How the edges of a task are made.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// How many batches or windows an edge holds.
    pub capacity: NonZeroUsize,
    /// What happens to a batch for a full edge.
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
