//! The program `corsair-stream-load`, which measures the speed of streams.

mod deliver;
mod write;

use anyhow::Context;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

/// Measures the speed at which tasks process points.
#[derive(Debug, Parser)]
#[command(name = "corsair-stream-load", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    what: LoadCommand,
}

#[derive(Debug, Subcommand)]
enum LoadCommand {
    /// Time one POST /write through many tasks until all have drained, without a socket
    Deliver(deliver::DeliverArgs),
    /// Write over sockets, as fast as a server accepts lines
    Write(write::WriteArgs),
}

fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().build().context("no threads")
}

fn main() -> ExitCode {
    let done = match Arguments::parse().what {
        LoadCommand::Deliver(args) => deliver::run(&args),
        LoadCommand::Write(args) => write::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corsair-stream-load: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints results. If a reader closes stdout early, only the printing ends.
fn print(text: &str) {
    use std::io::Write;
    drop(std::io::stdout().lock().write_all(text.as_bytes()));
}
