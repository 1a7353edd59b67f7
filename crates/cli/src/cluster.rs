//! `--hosts`, `--processes` and `--mpi`: one run over several processes.

#[cfg(feature = "cluster")]
mod lineage;
#[cfg(feature = "cluster")]
pub mod member;
#[cfg(feature = "cluster")]
mod saving;
#[cfg(feature = "cluster")]
mod start;

use crate::flags::values::Values;
use crate::flags::{Group, named};
use crate::options::Options;
use anyhow::{Result, bail};
use corsair::Executor;
use std::ffi::OsString;
use std::process::ExitCode;

/// Flags that hold the run, or look at the process in which it is.
const ONE_PROCESS: [&str; 4] = ["ui", "replay", "metrics", "cpuprofile"];

/// Starts the processes or joins the others, if the flags ask for that; then this is what the process ends with.
///
/// # Errors
/// The first flag that is wrong or does not go with another, and how the run failed.
pub fn run(values: &Values, options: &Options, args: &[OsString]) -> Result<Option<ExitCode>> {
    let mut flags = values.differing().map(|(flag, _)| flag);
    let Some(asked) = flags.find(|flag| flag.group == Group::Processes) else {
        return Ok(None);
    };
    if options.executor != Executor::Virtual {
        bail!(
            "{} is for virtual time, which can be on several processes; leave out --executor {}",
            asked.spelled(),
            values.text("executor")
        );
    }
    let refused = |name: &str| values.differing().any(|(flag, _)| flag.name == name);
    let refused = ONE_PROCESS.into_iter().find(|name| refused(name));
    if let Some(flag) = refused.and_then(named) {
        bail!(
            "{} and {} do not go together: what it looks at is in several processes; leave one of them out",
            flag.spelled(),
            asked.spelled()
        );
    }
    #[cfg(feature = "cluster")]
    {
        let mut options = options.clone();
        if options.checkpoints.is_none() {
            options.checkpoints = crate::options::checkpoints::read(values, &options)?;
        }
        start::run(values, options, args).map(Some)
    }
    #[cfg(not(feature = "cluster"))]
    {
        let feature = match values.switch("mpi")? {
            true => "mpi",
            false => "cluster",
        };
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        bail!(
            "this build runs in one process; type: cargo run --features {feature} -- {}",
            words.join(" ")
        );
    }
}
