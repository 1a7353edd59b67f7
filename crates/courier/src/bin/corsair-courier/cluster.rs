//! `corsair-courier members`, `remove`, `leave`, `transfer` and `recover`, and the flags of a member of a cluster.

use crate::data::say;
use anyhow::{Result, bail};
use clap::Args;
use corsair_courier::{MemberRequest, Options, change_members, recover};
use std::path::PathBuf;
use std::process::ExitCode;

/// The flags of `serve` for a member of a cluster.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// A file with the key that the nodes of a cluster have in common; with it, this node is a member
    #[arg(long, value_name = "FILE")]
    cluster_key: Option<PathBuf>,
    /// The address of any member of the cluster to join, if --data is empty [default: begin a cluster]
    #[arg(long, value_name = "HOST:PORT", requires = "cluster_key")]
    join: Option<String>,
    /// The address at which other members reach this node [default: --listen]
    #[arg(long, value_name = "HOST:PORT", requires = "cluster_key")]
    advertise: Option<String>,
    /// Certificates, as PEM, of the authority of all members; members then use mutual TLS among themselves
    #[arg(
        long,
        value_name = "FILE",
        requires = "cluster_key",
        requires = "tls_cert"
    )]
    pub cluster_ca: Option<PathBuf>,
    /// Removed: members need no server beside them
    #[arg(long, hide = true, value_name = "URL")]
    nats: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_key: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_stream: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_replicas: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_credentials: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_ca: Option<String>,
    /// Removed, see --nats
    #[arg(long, hide = true, value_name = "VALUE")]
    nats_snapshot: Option<String>,
}

impl ClusterArgs {
    /// Sets the options for these flags, for a node that listens on an address.
    pub fn set(&self, options: &mut Options, listen: &str) -> Result<()> {
        let removed = [
            (
                &self.nats,
                "--nats",
                "--cluster-key FILE, and --join HOST:PORT at all nodes but the first",
            ),
            (&self.nats_key, "--nats-key", "--cluster-key"),
            (
                &self.nats_stream,
                "--nats-stream",
                "a --cluster-key for each cluster",
            ),
            (
                &self.nats_replicas,
                "--nats-replicas",
                "--join: every member has a copy",
            ),
            (
                &self.nats_credentials,
                "--nats-credentials",
                "--cluster-key",
            ),
            (&self.nats_ca, "--nats-ca", "--cluster-ca"),
            (
                &self.nats_snapshot,
                "--nats-snapshot",
                "nothing: members copy the index when they need to",
            ),
        ];
        for (value, flag, instead) in removed {
            if value.is_some() {
                bail!(
                    "{flag} was removed, because nodes need no NATS server any more; use {instead}"
                );
            }
        }
        if let Some(join) = &self.join {
            check("--join", join)?;
        }
        options.cluster_key.clone_from(&self.cluster_key);
        options.join.clone_from(&self.join);
        options.cluster_ca.clone_from(&self.cluster_ca);
        if self.cluster_key.is_some() {
            let address = self.advertise.as_deref().unwrap_or(listen);
            check("--advertise", address)?;
            let host = address.rsplit_once(':').map_or("", |(host, _)| host);
            if matches!(host, "" | "0.0.0.0" | "[::]") || address.ends_with(":0") {
                bail!(
                    "other members cannot reach {address}; give the address of this node as --advertise HOST:PORT"
                );
            }
            options.advertise = Some(address.to_owned());
        }
        Ok(())
    }
}

/// Checks the form of an address.
fn check(flag: &str, address: &str) -> Result<()> {
    const LONGEST: usize = 255;
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none() || address.len() > LONGEST {
        bail!("{flag} {address:?} is not an address; expected HOST:PORT");
    }
    Ok(())
}

/// The flags of `corsair-courier members` and `leave`.
#[derive(Args, Clone, Debug)]
pub struct MemberArgs {
    /// Directory of the data of a running member
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// The flags of `corsair-courier remove`.
#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// Directory of the data of a running member
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The id of the member to remove
    #[arg(long, value_name = "ID", value_parser = id)]
    node: u64,
}

/// The flags of `corsair-courier transfer`.
#[derive(Args, Clone, Debug)]
pub struct TransferArgs {
    /// Directory of the data of the leader
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The id of the next leader [default: the most advanced member]
    #[arg(long, value_name = "ID", value_parser = id)]
    node: Option<u64>,
}

/// Parses the id of a member.
fn id(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| format!("'{text}' is not an id; `corsair-courier members` lists them"))
}

impl MemberArgs {
    /// Prints the members as a line of JSON.
    pub async fn list(&self) -> Result<ExitCode> {
        use std::io::Write;
        let members = change_members(&self.data, MemberRequest::List).await?;
        // A closed pipe is ignored.
        let _ = writeln!(std::io::stdout(), "{members}");
        Ok(ExitCode::SUCCESS)
    }

    /// Removes the node from its cluster.
    pub async fn leave(&self) -> Result<ExitCode> {
        change_members(&self.data, MemberRequest::Leave).await?;
        say("this node has left the cluster; stop it, and remove its data");
        Ok(ExitCode::SUCCESS)
    }

    /// Makes a member a single node.
    pub async fn recover(&self) -> Result<ExitCode> {
        let last = recover(&self.data).await?;
        let data = self.data.display();
        say(&format!(
            "{data} is a single node now, up to entry {last}; start it with --cluster-key to begin a new cluster, and the others with empty directories and --join"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

impl RemoveArgs {
    /// Removes a member.
    pub async fn run(&self) -> Result<ExitCode> {
        change_members(&self.data, MemberRequest::Remove(self.node)).await?;
        say(&format!("the member {:016x} was removed", self.node));
        Ok(ExitCode::SUCCESS)
    }
}

impl TransferArgs {
    /// Moves the leadership.
    pub async fn run(&self) -> Result<ExitCode> {
        change_members(&self.data, MemberRequest::Transfer(self.node)).await?;
        say("another member leads now");
        Ok(ExitCode::SUCCESS)
    }
}
