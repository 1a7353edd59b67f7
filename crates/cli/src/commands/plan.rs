//! `corsair plan`: estimates the speed of a run over several machines.

#[cfg(feature = "mpi")]
mod model;

use crate::commands::variants::RunArgs;
use crate::format::Format;
use crate::options::{chat, latency};
use crate::text;
use anyhow::Result;
use clap::Args;
use corsair::Latency;
use std::time::Duration;

/// The flags of `corsair plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// fsm, or the name of an architecture
    #[arg(long, short, value_name = "NAME", default_value = "fsm")]
    pub arch: String,
    /// Number of machines
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub hosts: u32,
    /// Period at which pirates send messages, for example chat:10ms
    #[arg(long, value_name = "KEY:VALUE", value_parser = chat)]
    pub kv: Option<Duration>,
    /// Latency of messages between pirates: 2ms, 1ms..5ms
    #[arg(long, value_name = "TIME|MIN..MAX", value_parser = latency)]
    pub latency: Option<Latency>,
    /// Round-trip time between the machines
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = text::duration)]
    pub round_trip: Duration,
    #[command(flatten)]
    pub run: RunArgs,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Measures a part of the run and the cost of an exchange, and prints the estimate.
///
/// # Errors
/// If the flags are invalid, or if the part cannot be run.
pub fn run(args: &PlanArgs) -> Result<()> {
    #[cfg(feature = "mpi")]
    return match corsair_cluster::is_started() {
        true => model::measure(),
        false => model::print_estimate(args),
    };
    #[cfg(not(feature = "mpi"))]
    Err(crate::cluster::not_built(&[
        "plan".into(),
        "-a".into(),
        args.arch.clone().into(),
        "--hosts".into(),
        args.hosts.to_string().into(),
    ]))
}
