//! `corsair-stream serve`: the engine behind a socket.

use crate::REFUSED;
use crate::arguments::{EngineArgs, TaskArgs, runtime};
use crate::interrupt;
use crate::terminal::{complain, say};
use anyhow::Context;
use corsair_stream::engine::{Engine, TaskState};
use corsair_stream::http::router;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use tokio::net::TcpListener;

/// The flags of `corsair-stream serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9092")]
    addr: SocketAddr,
    /// The largest body of a write in bytes, after unpacking
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_body: usize,
    /// The longest line in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_line: usize,
    /// How many writes may be under way at once
    #[arg(long, value_name = "N", default_value = "256")]
    max_writes: NonZeroUsize,
    /// The retention policy of writes that name none
    #[arg(long, value_name = "NAME", default_value = "autogen")]
    default_rp: String,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    tasks: TaskArgs,
}

/// Serves until Ctrl-C; then lets what was accepted go its way, and says what became of it.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let mut options = args.engine.options();
    options.max_body = args.max_body;
    options.max_line = args.max_line;
    options.writes = args.max_writes;
    options.default_policy = args.default_rp.clone();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(args.addr)
            .await
            .with_context(|| format!("cannot listen at {}", args.addr))?;
        let engine = Engine::start(options)?;
        args.tasks.start(&engine).await?;
        let at = listener.local_addr().unwrap_or(args.addr);
        say(format_args!("corsair-stream: listening at http://{at}"));
        axum::serve(listener, router(engine.clone()))
            .with_graceful_shutdown(interrupt::asked_to_end())
            .await
            .context("the server failed")?;
        say("corsair-stream: ending, what was accepted goes its way");
        close(&engine).await
    })
}

/// Closes the engine, and says how it went.
pub(crate) async fn close(engine: &Engine) -> anyhow::Result<ExitCode> {
    engine.drain().await;
    let mut code = ExitCode::SUCCESS;
    for task in engine.statuses() {
        let from_writes = task.edges.iter().filter(|edge| edge.from == "stream");
        let points: u64 = from_writes.map(|edge| edge.statistics.emitted).sum();
        match &task.state {
            TaskState::Failed { node, reason } => {
                complain(format_args!("task {}: {node} failed: {reason}", task.name));
                code = ExitCode::from(REFUSED);
            }
            _ => say(format_args!("task {}: {points} points", task.name)),
        }
    }
    if let Some(report) = engine.close().await {
        report?;
    }
    Ok(code)
}
