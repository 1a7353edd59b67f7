//! The flags that all programs of streams have.

use crate::engine::EngineOptions;
use clap::ValueEnum;
use corsair::Executor;
use std::num::NonZeroUsize;

/// The executor of the nodes.
#[derive(Debug, clap::Args)]
pub struct EngineArgs {
    /// Executor of the nodes
    #[arg(long, value_enum, default_value_t = On::Tokio)]
    executor: On,
    /// Worker threads for the nodes [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

/// Executors of wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// A tokio task per node
    Tokio,
    /// An OS thread per node
    Threads,
    /// All nodes on a fixed pool of OS threads
    Pool,
}

impl EngineArgs {
    /// Returns the default options of an engine, changed by the flags.
    pub fn options(&self) -> EngineOptions {
        let default = EngineOptions::default();
        EngineOptions {
            executor: match self.executor {
                On::Tokio => Executor::Tokio,
                On::Threads => Executor::Threads,
                On::Pool => Executor::Pool,
            },
            workers: self.workers.unwrap_or(default.workers),
            ..default
        }
    }
}
