//! The initial tasks, the runtime, and the summary at the end.

use crate::REFUSED;
use crate::terminal::{complain, say};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use corsair::edge::Overflow;
use corsair_stream::engine::{Engine, TaskOptions, TaskState, TaskStatus};
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

/// The tasks to begin with.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// File with a task; the file name without the extension is the name of the task. May be
    /// repeated
    #[arg(long = "task", value_name = "FILE", num_args = 1..)]
    tasks: Vec<PathBuf>,
    /// Number of batches that an edge of these tasks holds
    #[arg(long, value_name = "N", default_value = "64")]
    capacity: NonZeroUsize,
    /// Action for a batch on a full edge: block, drop_newest, drop_oldest or abort
    #[arg(long, value_name = "POLICY", default_value_t = Overflow::Block)]
    overflow: Overflow,
}

impl TaskArgs {
    /// Starts all tasks.
    pub(crate) async fn start(&self, engine: &Engine) -> anyhow::Result<()> {
        for path in &self.tasks {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read the task {}", path.display()))?;
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                bail!("{} has no name that a task could have", path.display());
            };
            let options = TaskOptions {
                capacity: self.capacity,
                overflow: self.overflow,
            };
            let added = engine.add(name, &text, options).await;
            added.map_err(|error| anyhow!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// Creates the runtime for all work outside of the engine.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("corsair-http")
        .enable_all()
        .build()
        .context("no threads for the server")
}

/// Returns the exit code, which depends on whether a task has failed.
pub(crate) fn failed(engine: &Engine) -> ExitCode {
    let failed = |task: &TaskStatus| matches!(task.state, TaskState::Failed { .. });
    match engine.statuses().iter().any(failed) {
        true => ExitCode::from(REFUSED),
        false => ExitCode::SUCCESS,
    }
}

/// Waits until all points have been processed, ends the engine, and reports the result.
pub(crate) async fn close(engine: &Engine) -> anyhow::Result<ExitCode> {
    engine.drain().await;
    let code = tell(engine);
    end(engine).await?;
    Ok(code)
}

/// Ends the engine.
pub(crate) async fn end(engine: &Engine) -> anyhow::Result<()> {
    match engine.close().await {
        Some(report) => report.map(drop).map_err(Into::into),
        None => Ok(()),
    }
}

/// Reports the result of each task.
pub(crate) fn tell(engine: &Engine) -> ExitCode {
    for task in engine.statuses() {
        let from_writes = task.edges.iter().filter(|edge| edge.from == "stream");
        let points: u64 = from_writes.map(|edge| edge.statistics.received).sum();
        if let TaskState::Failed { node, reason } = &task.state {
            complain(format_args!("task {}: {node} failed: {reason}", task.name));
            continue;
        }
        say(format_args!("task {}: {points} points", task.name));
        for node in &task.nodes {
            let errors = node.counters.iter().find(|(name, _)| *name == "errors");
            if let (Some((_, errors)), Some(reason)) = (errors, &node.last_error) {
                complain(format_args!(
                    "task {}: {} left out {errors} points; the last one because {reason}",
                    task.name, node.name
                ));
            }
        }
    }
    failed(engine)
}
