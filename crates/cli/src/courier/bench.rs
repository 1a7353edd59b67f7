//! `corsair courier bench`.

use super::serve::at_least_one;
use super::tables;
use crate::interrupt;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use corsair_courier::load::{self, Comparison, Idle, Kind, Measured, Plan, Progress};
use corsair_courier::{Limits, Node, Options, Serving, serve};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Posters of the comparison with a handler that stores nothing.
const POSTERS: usize = 64;
/// Rounds of it, of each side.
const ROUNDS: usize = 5;
/// Hashing the passwords of a load is not what is measured.
const PASSWORD_MEMORY: u32 = 8;

/// The flags of `corsair courier bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// To how many each message goes
    #[arg(long, value_enum, default_value = "1on1")]
    kind: KindArg,
    /// Who post, each over a connection of its own
    #[arg(long, value_name = "NUMBER", default_value = "8", value_parser = at_least_one)]
    workers: usize,
    /// Messages of each worker
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = at_least_one)]
    messages: usize,
    /// Users online [default: twice the workers, 16 at least]
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    users: Option<usize>,
    /// POSTs per second of all workers together, whatever the answers take
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    rate: Option<f64>,
    /// Bytes of a text
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = at_least_one)]
    text: usize,
    /// A node that runs already, as http://HOST:PORT; its --rate has to allow the load
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Compare POSTs with a handler that stores nothing, for so long a round
    #[arg(long, value_name = "TIME", value_parser = crate::text::duration)]
    compare: Option<Duration>,
    /// Open so many sockets instead, and print what each costs a node of its own process
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    idle: Option<usize>,
    /// From which recipients are drawn
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Tables, or one JSON object
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// To how many a message goes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArg {
    /// To one
    #[value(name = "1on1")]
    One,
    /// To two
    #[value(name = "1on2")]
    Two,
    /// To five
    #[value(name = "1on5")]
    Five,
    /// To some, from one to everybody
    #[value(name = "1onAny")]
    Any,
    /// To everybody online
    #[value(name = "1onAll")]
    All,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables
    Text,
    /// One JSON object
    Json,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Results {
    /// The load.
    pub load: Option<(Plan, Measured)>,
    /// Durable beside bare.
    pub comparison: Option<Comparison>,
    /// Sockets that say nothing.
    pub idle: Option<Idle>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("give a number above 0, as 1000".to_owned()),
    }
}

/// Makes the load and prints what was measured. Ctrl-C ends it, and takes the data of a node that
/// was made for it along.
pub async fn run(args: &BenchArgs) -> Result<ExitCode> {
    let results = match (args.idle, &args.url) {
        (Some(sockets), Some(url)) => idle(&host(url)?, sockets).await?,
        (Some(sockets), None) => {
            let (mut child, host) = node_of_its_own().await?;
            let results = idle(&host, sockets).await;
            child.kill().await.context("cannot end the node")?;
            results?
        }
        (None, Some(url)) => {
            if args.compare.is_some() {
                bail!(
                    "--compare needs a node in the process of the handler that stores nothing; leave out --url"
                );
            }
            measure(args, &host(url)?).await?
        }
        (None, None) => {
            let data = std::env::temp_dir().join(format!("corsair-courier-{}", std::process::id()));
            let end = interrupt::asked_to_end();
            let serving = node(&data).await?;
            let host = serving.address().to_string();
            let results = tokio::select! {
                results = measure(args, &host) => Some(results),
                () = end => None,
            };
            serving.stop().await;
            // What is left there is of no use to anybody, and the system tidies up, too.
            let _ = std::fs::remove_dir_all(&data);
            match results {
                Some(results) => results?,
                None => return Ok(ExitCode::from(interrupt::EXIT_CODE)),
            }
        }
    };
    let text = match args.format {
        Format::Text => tables::text(&results),
        Format::Json => tables::json(&results)?,
    };
    crate::console::Console::new(true).print(|out| out.write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}

/// The `host:port` of a URL.
fn host(url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("http://") else {
        bail!("--url {url}: a node speaks plain HTTP; write it as http://HOST:PORT");
    };
    let host = rest.trim_end_matches('/');
    if host.is_empty() || host.contains('/') {
        bail!("--url {url}: write it as http://HOST:PORT, without a path");
    }
    Ok(match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:80"),
    })
}

/// A node in this process, with limits that a load does not meet.
async fn node(data: &std::path::Path) -> Result<Serving> {
    let limits = Limits {
        rate: NonZeroU32::MAX,
        strangers: NonZeroU32::MAX,
        password_memory: PASSWORD_MEMORY,
        ..Limits::default()
    };
    let node = Node::start(Options {
        data: Some(data.to_owned()),
        limits,
        ..Options::default()
    });
    Ok(serve(node.await?, "127.0.0.1:0").await?)
}

/// A node in another process, whose memory is its own.
async fn node_of_its_own() -> Result<(Child, String)> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let most = u32::MAX.to_string();
    let mut child = Command::new(program)
        .args(["courier", "serve", "--listen", "127.0.0.1:0"])
        .args(["--rate", &most, "--strangers", &most])
        .args(["--password-memory", &PASSWORD_MEMORY.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a node")?;
    let stdout = child.stdout.take().context("a node without stdout")?;
    let line = BufReader::new(stdout).lines().next_line().await;
    let line = line.context("the node has ended")?.unwrap_or_default();
    let host = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split([',', ' ']).next())
        .context("the node does not say where it listens")?;
    Ok((child, host.to_owned()))
}

async fn idle(host: &str, sockets: usize) -> Result<Results> {
    let idle = Some(load::idle(host, sockets).await?);
    Ok(Results {
        idle,
        ..Results::default()
    })
}

async fn measure(args: &BenchArgs, host: &str) -> Result<Results> {
    let kind = match args.kind {
        KindArg::One => Kind::OneOnOne,
        KindArg::Two => Kind::OneOnTwo,
        KindArg::Five => Kind::OneOnFive,
        KindArg::Any => Kind::OneOnAny,
        KindArg::All => Kind::OneOnAll,
    };
    let plan = Plan {
        kind,
        workers: args.workers,
        messages: args.messages,
        users: args.users.unwrap_or(args.workers.saturating_mul(2).max(16)),
        rate: args.rate,
        text: args.text,
        seed: args.seed,
    };
    let progress = Progress::default();
    let bar = tokio::spawn(draw(progress.clone(), plan.total()));
    let measured = load::run(host, &plan, &progress).await;
    bar.abort();
    let _ = bar.await;
    let comparison = match args.compare {
        Some(time) => Some(load::compare(host, POSTERS, ROUNDS, time).await?),
        None => None,
    };
    Ok(Results {
        load: Some((plan, measured?)),
        comparison,
        idle: None,
    })
}

/// Draws a bar of what was posted, if stderr is a terminal, until it is aborted.
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

/// A bar that goes when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_a_host_and_a_port() {
        for (url, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://node:1/", "node:1"),
            ("http://node", "node:80"),
        ] {
            assert_eq!(host(url).unwrap(), expected);
        }
        for wrong in ["node:1", "https://node", "http://", "http://node/path"] {
            let said = host(wrong).unwrap_err().to_string();
            assert!(said.contains("--url"), "{said}");
        }
    }
}
