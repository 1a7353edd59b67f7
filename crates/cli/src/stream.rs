//! `corsair stream`: points over HTTP or from a file, through tasks.

mod bench;
mod replay;
mod serve;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use corsair::Executor;
use corsair::edge::Overflow;
use corsair_stream::engine::{Engine, EngineOptions, TaskOptions};
use corsair_stream::line::Precision;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

/// The flags of `corsair stream`.
#[derive(Debug, Args)]
pub struct StreamArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Serve POST /write, /tasks and /metrics until Ctrl-C
    Serve(serve::ServeArgs),
    /// Send a recording of lines through tasks
    Replay(replay::ReplayArgs),
    /// Time one POST /write through many tasks until all have drained
    Bench(bench::BenchArgs),
}

/// Where the nodes of tasks run.
#[derive(Debug, Args)]
struct EngineArgs {
    /// What runs the nodes
    #[arg(long, value_enum, default_value_t = On::Tokio)]
    executor: On,
    /// Worker threads for the nodes [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

/// The tasks to begin with.
#[derive(Debug, Args)]
struct TaskArgs {
    /// A file with a task; its name without the extension is the task's. May be given again
    #[arg(long = "task", value_name = "FILE", num_args = 1..)]
    tasks: Vec<PathBuf>,
    /// How many batches an edge of these tasks holds
    #[arg(long, value_name = "N", default_value = "64")]
    capacity: NonZeroUsize,
    /// What happens to a batch for a full edge: block, drop_newest, drop_oldest or abort
    #[arg(long, value_name = "POLICY", default_value_t = Overflow::Block)]
    overflow: Overflow,
}

/// Executors of wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// A tokio task per node
    Tokio,
    /// An OS thread per node
    Threads,
    /// All nodes on a fixed pool of OS threads
    Pool,
}

/// Does what was asked for.
///
/// # Errors
/// One sentence about what is wrong.
pub fn run(args: &StreamArgs) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Serve(args) => serve::run(args),
        What::Replay(args) => replay::run(args),
        What::Bench(args) => bench::run(args),
    }
}

impl EngineArgs {
    fn options(&self) -> EngineOptions {
        let default = EngineOptions::default();
        EngineOptions {
            executor: match self.executor {
                On::Tokio => Executor::Tokio,
                On::Threads => Executor::Threads,
                On::Pool => Executor::Pool,
            },
            workers: self.workers.unwrap_or(default.workers),
            ..default
        }
    }
}

impl TaskArgs {
    /// Starts them all.
    async fn start(&self, engine: &Engine) -> anyhow::Result<()> {
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

/// A runtime for what surrounds the engine.
fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .thread_name("corsair-http")
        .enable_all()
        .build()
        .context("no threads for the server")
}

/// For clap: a unit of timestamps.
fn precision(text: &str) -> Result<Precision, String> {
    text.parse().map_err(|error| format!("{error}"))
}
