//! The parts of an engine that its clones, tasks and writes share.

use super::command::Commands;
use super::options::EngineOptions;
use super::routes::Routes;
use super::saved::{LogPlace, SavedTask};
use super::task::Task;
use super::write_log::WriteLog;
use crate::node::queue::Queue;
use crate::pending::PendingWrites;
use crate::pipeline::Pipeline;
use corsair::{Report, RunError};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

#[derive(Debug)]
pub(super) struct EngineState {
    pub(super) options: EngineOptions,
    pub(super) routes: RwLock<Arc<Routes>>,
    pub(super) tasks: RwLock<BTreeMap<Arc<str>, Arc<Task>>>,
    pub(super) commands: Commands,
    pub(super) pending_writes: PendingWrites,
    /// A lock that is held for reading while a write is passed to tasks, and for writing while a barrier is sent.
    pub(super) order: RwLock<()>,
    /// Permits for concurrent writes.
    pub(super) writes: Arc<Semaphore>,
    pub(super) write_log: OnceLock<WriteLog>,
    /// True when the log has been read. From then on new tasks take all writes.
    pub(super) live: AtomicBool,
    /// The position in the log of the last write that was passed to tasks. It changes only while `order` is held.
    pub(super) position: AtomicU64,
    /// The log position of the restored state.
    pub(super) restored: Mutex<LogPlace>,
    /// The position at which each source continues. It changes only while `order` is held.
    pub(super) sources: Mutex<BTreeMap<String, i64>>,
    pub(super) closed: AtomicBool,
    /// True if nodes save their state when their inputs end.
    pub(super) suspended: Arc<AtomicBool>,
    /// The saved states of tasks that have not been started yet.
    pub(super) saved: Mutex<BTreeMap<String, SavedTask>>,
    /// The lines that all `log` nodes have written.
    pub(super) log: Queue,
    pub(super) accepted: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) run: Mutex<Option<JoinHandle<Result<Report, RunError>>>>,
    /// The runtime in which elements wait for capacity on the first edge of a task.
    pub(super) io: Handle,
}

impl EngineState {
    pub(super) fn tasks(&self) -> Vec<Arc<Task>> {
        self.tasks.read().values().cloned().collect()
    }

    pub(super) fn routes(&self) -> Arc<Routes> {
        self.routes.read().clone()
    }

    /// Returns the position in the log after the last write that tasks have received.
    pub(super) fn place(&self) -> LogPlace {
        LogPlace {
            position: self.position.load(Ordering::SeqCst),
            generation: self.routes.read().generation,
            identity: self.write_log.get().map(|log| log.identity),
        }
    }

    /// Continues the generations of routes of an earlier process.
    pub(super) fn raise_generation(&self, least: u64) {
        if self.routes.read().generation < least {
            let mut routes = self.routes.write();
            let generation = routes.generation.max(least);
            Arc::make_mut(&mut routes).generation = generation;
        }
    }

    /// Records that the log has been read: new tasks take every write from now on.
    pub(super) fn began_now(&self) {
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
    pub(super) fn saved_for(
        &self,
        name: &str,
        pipeline: &Pipeline,
        since: Option<u64>,
    ) -> Option<SavedTask> {
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

    pub(super) fn subscribe(&self, task: &Arc<Task>) {
        let mut routes = self.routes.write();
        Arc::make_mut(&mut routes).add(task);
        if self.live.load(Ordering::SeqCst) {
            task.since.store(routes.generation, Ordering::Relaxed);
        }
    }

    pub(super) fn unsubscribe(&self, task: &Arc<Task>) {
        Arc::make_mut(&mut self.routes.write()).remove(task);
    }

    pub(super) fn take_routes(&self) -> Arc<Routes> {
        let mut routes = self.routes.write();
        let empty = routes.emptied();
        std::mem::replace(&mut routes, Arc::new(empty))
    }
}
