//! `corsair-courier-load`: puts load on a node, which it starts if none is given, and prints the latencies of messages.

mod flags;
mod node;
mod tables;

use anyhow::{Context, Result, bail};
use clap::Parser;
use clap::error::ErrorKind;
use corsair_courier::process::{self, INTERRUPTED, asked_to_end};
use corsair_courier_load::{Attack, Comparison, Idle, LoadReport, Plan, Progress, Victim};
use flags::{Flags, Format, NodeArg, host};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Builder;

/// The exit code if a request was refused or failed.
const REFUSED: u8 = 2;
/// The number of concurrent posters in the comparison with a handler that stores nothing.
const POSTERS: usize = 64;
/// The number of rounds for each side of the comparison.
const ROUNDS: usize = 5;

/// The measurements that were requested.
#[derive(Debug, Default)]
struct Results {
    /// The result of a load.
    load: Option<(Plan, LoadReport)>,
    /// The result of the comparison between durable and bare POSTs.
    comparison: Option<Comparison>,
    /// The memory of idle sockets.
    idle: Option<Idle>,
    /// The latencies of a user while others post to thousands.
    fanout: Option<(Attack, Victim)>,
}

fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            // A closed pipe is ignored.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            let text = error.to_string();
            // Below the first paragraph clap repeats the usage.
            let lines = text.lines().take_while(|line| !line.is_empty());
            let lines: Vec<&str> = lines.map(str::trim).collect();
            let line = lines.join(" ");
            let line = line.strip_prefix("error: ").unwrap_or(&line);
            return refuse(&format!("{line}; --help lists the flags"));
        }
    };
    process::raise_open_files();
    let runtime = Builder::new_multi_thread().enable_all().build();
    let done = runtime
        .context("cannot start tokio")
        .and_then(|runtime| runtime.block_on(run(&flags)));
    done.unwrap_or_else(|error| refuse(&format!("{error:#}")))
}

#[expect(clippy::print_stderr, reason = "a program says why it ends")]
fn refuse(sentence: &str) -> ExitCode {
    eprintln!("corsair-courier-load: {sentence}");
    ExitCode::from(REFUSED)
}

/// Runs the load and prints the measurements. Ctrl-C ends it, and removes the data of a node that was started for the
/// load.
async fn run(flags: &Flags) -> Result<ExitCode> {
    if let Some(which) = flags.node {
        node::until_stdin_ends(which).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(attackers) = flags.fanout {
        let results = attacked(flags, attackers).await?;
        return print(flags, &results);
    }
    let results = match (flags.idle, &flags.url) {
        (Some(sockets), Some(url)) => idle(&host(url)?, sockets).await?,
        (Some(sockets), None) => {
            let (mut child, host) = node::in_another_process(NodeArg::Idle).await?;
            let results = idle(&host, sockets).await;
            child.kill().await.context("cannot end the node")?;
            results?
        }
        (None, Some(url)) => {
            if flags.compare.is_some() {
                bail!(
                    "--compare needs a node in the process of the handler that stores nothing; leave out --url"
                );
            }
            measure(flags, &host(url)?).await?
        }
        (None, None) => {
            let name = format!("corsair-courier-{}", std::process::id());
            let data = std::env::temp_dir().join(name);
            let end = asked_to_end();
            let serving = node::in_this_process(Some(&data)).await?;
            let host = serving.address().to_string();
            let results = tokio::select! {
                results = measure(flags, &host) => Some(results),
                () = end => None,
            };
            serving.stop().await;
            // If the removal fails, the system cleans its temporary directory.
            let _ = std::fs::remove_dir_all(&data);
            match results {
                Some(results) => results?,
                None => return Ok(ExitCode::from(INTERRUPTED)),
            }
        }
    };
    print(flags, &results)
}

/// Measures the effect of fan-out on a victim, at a new node or at the node of `--url`.
async fn attacked(flags: &Flags, attackers: usize) -> Result<Results> {
    let attack = Attack::by(attackers);
    let victim = match &flags.url {
        Some(url) => corsair_courier_load::fanout(&host(url)?, &attack).await?,
        None => {
            let (mut child, host) = node::in_another_process(NodeArg::Limited).await?;
            let victim = corsair_courier_load::fanout(&host, &attack).await;
            // When its stdin is closed, the node ends and removes its data.
            drop(child.stdin.take());
            child.wait().await.context("cannot wait for the node")?;
            victim?
        }
    };
    Ok(Results {
        fanout: Some((attack, victim)),
        ..Results::default()
    })
}

fn print(flags: &Flags, results: &Results) -> Result<ExitCode> {
    let text = match flags.format {
        Format::Text => tables::text(results),
        Format::Json => tables::json(results)?,
    };
    // A closed pipe is ignored.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

async fn idle(host: &str, sockets: usize) -> Result<Results> {
    let idle = Some(corsair_courier_load::idle(host, sockets).await?);
    Ok(Results {
        idle,
        ..Results::default()
    })
}

async fn measure(flags: &Flags, host: &str) -> Result<Results> {
    let plan = flags.plan();
    let progress = Progress::default();
    let bar = tokio::spawn(draw(progress.clone(), plan.total()));
    let measured = corsair_courier_load::run(host, &plan, &progress).await;
    bar.abort();
    let _ = bar.await;
    let comparison = match flags.compare {
        Some(time) => Some(corsair_courier_load::compare(host, POSTERS, ROUNDS, time).await?),
        None => None,
    };
    Ok(Results {
        load: Some((plan, measured?)),
        comparison,
        ..Results::default()
    })
}

/// Draws a progress bar of posted messages, if stderr is a terminal, until it is aborted.
async fn draw(progress: Progress, total: u64) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let style = ProgressStyle::with_template("{elapsed} {wide_bar} {pos} of {len} messages");
    let bar = ProgressBar::new(total);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let bar = Cleared(bar);
    loop {
        bar.0.set_position(progress.posted());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A progress bar that disappears when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
