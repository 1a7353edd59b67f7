//! `corsair-courier serve`: a node of the messaging service.

mod cluster;
mod data;
mod refusal;
mod serve;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use corsair_courier::process;
use std::ffi::OsString;
use std::process::ExitCode;
use tokio::runtime::Builder;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A messaging service: send with POST, receive over WebSockets, lose nothing
#[derive(Debug, Parser)]
#[command(name = "corsair-courier", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node: HTTP and WebSockets
    Serve(Box<serve::ServeArgs>),
    /// Copy the data of a node, running or not, into one file
    Backup(data::BackupArgs),
    /// Restore a backup into a new directory
    Restore(data::RestoreArgs),
    /// Write the data of a node, running or not, as lines of JSON
    Export(data::ExportArgs),
    /// Build the data of a new node from an export
    Import(data::ImportArgs),
    /// List the members of the cluster, as JSON
    Members(cluster::MemberArgs),
    /// Remove a member from the cluster
    Remove(cluster::RemoveArgs),
    /// Remove this node from the cluster
    Leave(cluster::MemberArgs),
    /// Let another member lead, for example before a stop
    Transfer(cluster::TransferArgs),
    /// Make a stopped member a single node, if a majority of its cluster is lost forever
    Recover(cluster::MemberArgs),
    /// Return the disk space of removed messages to the system; works on a running or stopped node
    Compact(data::CompactArgs),
}

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    execute(std::env::args_os())
}

/// Runs a command line, whose first word is the name of the program, and returns its exit code.
pub fn execute(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(line) {
        Ok(arguments) => arguments,
        Err(error) => return refusal::answer(&error),
    };
    log_to_stderr(&arguments.command);
    corsair_courier::hush_guarded_panics();
    process::raise_open_files();
    run(&arguments).unwrap_or_else(|error| {
        refusal::complain(&format!("{error:#}"));
        ExitCode::from(refusal::REFUSED)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start tokio")?;
    match &arguments.command {
        Command::Serve(args) => runtime.block_on(serve::run(args)),
        Command::Backup(args) => runtime.block_on(args.run()),
        Command::Restore(args) => runtime.block_on(args.run()),
        Command::Export(args) => runtime.block_on(args.run()),
        Command::Import(args) => runtime.block_on(args.run()),
        Command::Members(args) => runtime.block_on(args.list()),
        Command::Remove(args) => runtime.block_on(args.run()),
        Command::Leave(args) => runtime.block_on(args.leave()),
        Command::Transfer(args) => runtime.block_on(args.run()),
        Command::Recover(args) => runtime.block_on(args.recover()),
        Command::Compact(args) => runtime.block_on(args.run()),
    }
}

/// Logs events of the library to stderr, one line for each.
fn log_to_stderr(command: &Command) {
    let (level, access_log) = match command {
        Command::Serve(args) => (args.log.into(), args.access_log),
        _ => (LevelFilter::WARN, false),
    };
    let access = match access_log {
        true => LevelFilter::INFO,
        false => LevelFilter::OFF,
    };
    let events = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let filter = Targets::new()
        .with_default(level)
        .with_target("access", access);
    tracing_subscriber::registry()
        .with(events.with_filter(filter))
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(line: &str) -> bool {
        let words = std::iter::once("courier").chain(line.split_whitespace());
        Arguments::try_parse_from(words).is_ok()
    }

    #[test]
    fn the_documented_lines_are_accepted() {
        for line in [
            "serve",
            "serve --listen 127.0.0.1:8080 --data d --cluster-key k --join other:8080 --rate 5",
        ] {
            assert!(accepts(line), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["", "deliver", "serve --rate 0", "serve --connections 0"] {
            assert!(!accepts(line), "{line}");
        }
    }
}
