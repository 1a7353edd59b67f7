//! The flags `--processes` and `--mpi`: one run over several processes.

#[cfg(feature = "mpi")]
mod listening;
#[cfg(feature = "mpi")]
pub mod member;
#[cfg(feature = "mpi")]
mod saving;
#[cfg(feature = "mpi")]
mod start;

use crate::flags::values::Values;
use crate::flags::{Group, named};
use crate::options::Options;
use anyhow::{Result, bail};
use corsair::Executor;
use std::ffi::OsString;
use std::process::ExitCode;

/// Flags that control a run, or that inspect its process. They cannot be used in a distributed run.
const ONE_PROCESS: [&str; 4] = ["ui", "replay", "metrics", "cpuprofile"];

/// Runs over several processes if the flags request it, and returns the exit code.
///
/// # Errors
/// Returns the first flag that is wrong or does not fit another, or the error of the run.
pub fn run(values: &Values, options: &Options, args: &[OsString]) -> Result<Option<ExitCode>> {
    let mut flags = values.differing().map(|(flag, _)| flag);
    let Some(asked) = flags.find(|flag| flag.group == Group::Processes) else {
        return Ok(None);
    };
    if options.executor != Executor::Virtual {
        bail!(
            "{} needs virtual time, because only a run in virtual time can be distributed; leave out --executor {}",
            asked.spelled(),
            values.text("executor")
        );
    }
    let refused = |name: &str| values.differing().any(|(flag, _)| flag.name == name);
    let refused = ONE_PROCESS.into_iter().find(|name| refused(name));
    if let Some(flag) = refused.and_then(named) {
        bail!(
            "{} and {} do not go together, because the first one works only in a single process; leave one of them out",
            flag.spelled(),
            asked.spelled()
        );
    }
    #[cfg(feature = "mpi")]
    {
        let mut options = options.clone();
        if options.checkpoints.is_none() {
            options.checkpoints = crate::options::checkpoints::read(values, &options)?;
        }
        start::run(values, options, args).map(Some)
    }
    #[cfg(not(feature = "mpi"))]
    Err(not_built(args))
}

/// Returns the error of a build without MPI.
#[cfg(not(feature = "mpi"))]
pub fn not_built(args: &[OsString]) -> anyhow::Error {
    let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    anyhow::anyhow!(
        "this build runs in one process; install MPI and libclang, for example with `apt-get install libopenmpi-dev openmpi-bin libclang-dev`, and type: cargo run --features mpi -- {}",
        words.join(" ")
    )
}
