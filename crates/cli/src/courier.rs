//! `corsair courier`: the messaging service, and the load that it is measured with.

mod bench;
mod serve;
mod tables;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};

/// The flags of `corsair courier`.
#[derive(Args, Clone, Debug)]
pub struct CourierArgs {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Run a node: HTTP and WebSockets
    Serve(serve::ServeArgs),
    /// Load a node, or one made for it, and print how long messages took
    Bench(bench::BenchArgs),
}

/// Runs the command.
///
/// # Errors
/// If the node does not start, or the load does not come through.
pub fn run(args: &CourierArgs) -> Result<ExitCode> {
    raise_open_files();
    match &args.command {
        Command::Serve(args) => runtime()?.block_on(serve::run(args)),
        Command::Bench(args) => runtime()?.block_on(bench::run(args)),
    }
}

/// Allows as many open files as the system lets this process have: every connection is one. Where
/// it does not, the limit stays, and connections beyond it wait.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start tokio")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CourierArgs,
    }

    fn accepts(line: &str) -> bool {
        let words = std::iter::once("courier").chain(line.split_whitespace());
        Line::try_parse_from(words).is_ok()
    }

    #[test]
    fn the_published_lines_are_accepted() {
        for line in [
            "serve",
            "serve --listen 127.0.0.1:0 --data d --nats nats://127.0.0.1:4222 --rate 5",
            "bench --kind 1on1",
            "bench --kind 1onAll --workers 8 --messages 100 --users 50 --rate 1000",
            "bench --kind 1onAny --url http://127.0.0.1:8080 --format json",
            "bench --idle 100",
        ] {
            assert!(accepts(line), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_not() {
        for line in [
            "",
            "deliver",
            "serve --rate 0",
            "serve --connections 0",
            "bench --kind 2on1",
            "bench --workers 0",
            "bench --messages 0",
            "bench --rate 0",
            "bench --rate fast",
            "bench --text -1",
        ] {
            assert!(!accepts(line), "{line}");
        }
    }
}
