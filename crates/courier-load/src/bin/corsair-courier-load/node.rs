//! Nodes that are started for a load.

use crate::flags::NodeArg;
use anyhow::{Context, Result};
use clap::ValueEnum;
use corsair_courier::{Limits, Node, Options, Serving, serve};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// A low cost of password hashing, because it is not part of the measurement.
const PASSWORD_MEMORY: u32 = 8;

/// Returns the default limits, except the limits of logins.
fn limited() -> Limits {
    Limits {
        strangers: NonZeroU32::MAX,
        address_connections: Limits::default().connections,
        password_memory: PASSWORD_MEMORY,
        ..Limits::default()
    }
}

/// Starts a node in this process, with limits that a load does not reach.
pub async fn in_this_process(data: Option<&Path>) -> Result<Serving> {
    let limits = Limits {
        rate: NonZeroU32::MAX,
        fanout: NonZeroU32::MAX,
        ..limited()
    };
    start(data, limits).await
}

async fn start(data: Option<&Path>, limits: Limits) -> Result<Serving> {
    let node = Node::start(Options {
        data: data.map(Path::to_owned),
        limits,
        ..Options::default()
    });
    Ok(serve(node.await?, "127.0.0.1:0").await?)
}

/// Starts a node in a separate process, whose memory contains nothing else.
pub async fn in_another_process(which: NodeArg) -> Result<(Child, String)> {
    let which = which.to_possible_value().context("a node without a name")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut child = Command::new(program)
        .args(["--node", which.get_name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start a node")?;
    let stdout = child.stdout.take().context("a node without stdout")?;
    let line = BufReader::new(stdout).lines().next_line().await;
    let host = line.context("the node has ended")?;
    Ok((child, host.context("the node does not print its address")?))
}

/// Runs the node that [`in_another_process`] starts: prints its address, and serves until stdin ends.
pub async fn until_stdin_ends(which: NodeArg) -> Result<()> {
    let name = format!("corsair-courier-{}", std::process::id());
    let data = std::env::temp_dir().join(name);
    let serving = match which {
        NodeArg::Idle => in_this_process(None).await?,
        NodeArg::Limited => start(Some(&data), limited()).await?,
    };
    writeln!(std::io::stdout(), "{}", serving.address())?;
    let mut rest = Vec::new();
    let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    serving.stop().await;
    if which == NodeArg::Limited {
        // If the removal fails, the system cleans its temporary directory.
        let _ = std::fs::remove_dir_all(&data);
    }
    Ok(())
}
