//! `corsair-stream-load write`: measures clients that write over sockets.

use crate::{print, runtime};
use anyhow::Context;
use corsair_stream::engine::{Engine, TaskOptions};
use corsair_stream::flags::EngineArgs;
use corsair_stream::http::{Limits, router, serve};
use corsair_stream_load::writers::{Writers, write};
use std::time::Duration;
use tokio::net::TcpListener;

/// The flags of `corsair-stream-load write`.
#[derive(Debug, clap::Args)]
pub(crate) struct WriteArgs {
    /// Address of a server [default: a server is started in this process]
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: Option<String>,
    /// Token of the server, if it requires one
    #[arg(long, value_name = "TOKEN", requires = "server")]
    token: Option<String>,
    /// Number of clients that write at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    writers: usize,
    /// Number of lines in a write
    #[arg(long, value_name = "N", default_value_t = 5000)]
    lines: usize,
    /// Number of different hosts in the points
    #[arg(long, value_name = "N", default_value_t = 100)]
    hosts: usize,
    /// Number of measurements
    #[arg(long, value_name = "N", default_value_t = 1)]
    measurements: usize,
    /// Number of tasks of the server that this process starts; each counts the points of a
    /// measurement
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "server")]
    tasks: usize,
    /// Duration of the writing, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds: u64,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Writes, and prints how much the server accepted.
pub(crate) fn run(args: &WriteArgs) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let mut writers = Writers {
        address: String::new(),
        token: args.token.clone(),
        writers: args.writers,
        lines: args.lines,
        hosts: args.hosts,
        measurements: args.measurements.max(1),
        time: Duration::from_secs(args.seconds),
    };
    let wrote = runtime.block_on(async {
        if let Some(server) = &args.server {
            writers.address = server.clone();
            return anyhow::Ok(write(&writers).await?);
        }
        let engine = Engine::start(args.engine.options())?;
        for task in 0..args.tasks {
            let measurement = task % writers.measurements;
            let text = format!(
                "stream | from().measurement('m{measurement}') | window(100s, every 100s) | count(value)"
            );
            let name = format!("task{task}");
            engine.add(&name, &text, TaskOptions::default()).await?;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writers.address = listener.local_addr()?.to_string();
        let served = router(engine.clone());
        let stop = std::future::pending();
        tokio::spawn(serve(listener, served, Limits::default(), stop));
        let wrote = write(&writers).await?;
        engine.settle().await;
        Ok(wrote)
    });
    let wrote = wrote.context("the writers stopped")?;
    let seconds = wrote.time.as_secs_f64();
    print(&format!(
        "{} lines in {seconds:.2} s: {:.0} lines/s, {:.1} MB/s; {} writes were answered 503 and repeated\n",
        wrote.lines,
        wrote.lines as f64 / seconds,
        wrote.bytes as f64 / 1e6 / seconds,
        wrote.busy,
    ));
    Ok(())
}
