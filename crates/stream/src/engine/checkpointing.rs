//! A checkpoint of a running engine.

use super::Engine;
use super::saved::{EngineSnapshot, SavedTask};
use super::write_log::WriteLog;
use crate::checkpoint::Barrier;
use crate::node::queue::Queue;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

impl Engine {
    /// Saves the state of all tasks at one position in the sequence of writes, while they run: the saved state
    /// contains the points of a write either in all tasks or in none. Returns when all nodes have reported, which
    /// depends on the points on the edges of the slowest task. A task that fails or ends before it has reported is
    /// left out.
    ///
    /// A task whose overflow policy drops points takes no points while its nodes report. The points wait at the task's
    /// entrance, up to the memory of the task. So the policy cannot drop the barrier.
    ///
    /// Pass the result to [`Engine::restore`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use corsair_stream::engine::{Engine, EngineOptions, TaskOptions, Write};
    /// use corsair_stream::line::Precision;
    ///
    /// let engine = Engine::start(EngineOptions::default())?;
    /// let text = "stream | from('m') | window(10s) | count(v) | http_out('counts')";
    /// engine.add("counts", text, TaskOptions::default()).await?;
    /// let to = Write { database: "db".into(), policy: None, precision: Precision::Seconds };
    /// engine.write(&to, b"m v=1 1\nm v=1 2\n").await?;
    /// let saved = engine.checkpoint().await;
    /// assert_eq!(saved.points(), 2);
    /// # engine.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn checkpoint(&self) -> EngineSnapshot {
        let shared = &self.shared;
        let (barrier, reports) = Barrier::new();
        let (tasks, place, sources) = {
            let _order = shared.order.write();
            // Read before the list of tasks, because a task that replaces another one later has a later generation.
            let place = shared.place();
            let tasks = shared.tasks();
            for task in &tasks {
                let barrier = barrier.of_task();
                for entrance in &task.entrances {
                    entrance.give_barrier(barrier.clone(), &shared.io);
                }
            }
            (tasks, place, shared.sources.lock().clone())
        };
        drop(barrier);
        let reports = reports.await.unwrap_or_default();
        let mut saved: BTreeMap<String, SavedTask> = BTreeMap::new();
        for task in tasks.iter().filter(|task| task.is_running()) {
            let text = task.pipeline.to_string();
            let (created, nodes) = (task.origin.created, Vec::new());
            let name = task.name.to_string();
            saved.insert(
                name,
                SavedTask {
                    text,
                    created,
                    nodes,
                },
            );
        }
        let mut took = Duration::ZERO;
        for report in reports {
            took += report.took;
            if let (Some(task), Some(state)) = (saved.get_mut(&*report.task), report.state) {
                task.nodes.push((report.place, state));
            }
        }
        for task in saved.values_mut() {
            task.nodes.sort_unstable_by_key(|(place, _)| *place);
        }
        EngineSnapshot {
            tasks: saved,
            log: shared.log.rest(),
            place,
            sources,
            took,
        }
    }

    /// Returns the number of bytes that were written to the log since it was opened.
    pub fn logged_bytes(&self) -> u64 {
        self.shared.write_log.get().map_or(0, WriteLog::bytes)
    }

    /// Waits until the log, and the files to which tasks append, are on disk, because a saved state must not be ahead
    /// of them. Blocks the thread.
    ///
    /// # Errors
    /// A file cannot be synced.
    pub fn sync_files(&self) -> io::Result<()> {
        if let Some(log) = self.shared.write_log.get() {
            log.sync()?;
        }
        let tasks = self.shared.tasks();
        let mut queues = tasks.iter().flat_map(|task| task.queues());
        queues.try_for_each(Queue::sync)
    }

    /// Removes the parts of the log and of the disk buffers that a checkpoint makes superfluous. Call it when the
    /// checkpoint is on disk.
    pub fn discard_log(&self, position: u64) {
        for task in self.shared.tasks() {
            task.queues().for_each(Queue::discard_saved);
        }
        if let Some(log) = self.shared.write_log.get() {
            log.discard_through(position);
        }
    }
}
