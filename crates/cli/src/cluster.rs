//! `--hosts` and `--processes`: one run over several processes.

#[cfg(feature = "cluster")]
pub mod member;
#[cfg(feature = "cluster")]
mod start;

use crate::flags::named;
use crate::flags::values::Values;
use crate::options::Options;
use anyhow::{Result, bail};
use corsair::Executor;
use std::ffi::OsString;
use std::process::ExitCode;

/// Flags that only runs over several processes have.
const FLAGS: [&str; 6] = [
    "hosts",
    "process",
    "processes",
    "secret-file",
    "meet-within",
    "window-within",
];

/// Flags that save the run, hold it or write what actors tell, for which all actors must be in one process.
const ONE_PROCESS: [&str; 18] = [
    "checkpoint-every",
    "checkpoint-at",
    "checkpoint-dir",
    "ui",
    "replay",
    "graphjson",
    "msglog",
    "graphml",
    "neo4j",
    "collect",
    "kafka",
    "flow-format",
    "otlp",
    "zipkin",
    "metrics",
    "timeline",
    "per-actor",
    "cpuprofile",
];

/// Starts the processes or joins the others, if the flags ask for that; then this is what the process ends with.
///
/// # Errors
/// The first flag that is wrong or does not go with another, and how the run failed.
pub fn run(values: &Values, options: &Options, args: &[OsString]) -> Result<Option<ExitCode>> {
    let asked = FLAGS.iter().find(|name| values.given(name).is_some());
    let Some(asked) = asked.and_then(|name| named(name)) else {
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
            "{} and {} do not go together: what it needs is on several processes; leave one of them out",
            flag.spelled(),
            asked.spelled()
        );
    }
    #[cfg(feature = "cluster")]
    return start::run(values, options, args).map(Some);
    #[cfg(not(feature = "cluster"))]
    {
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        bail!(
            "this build runs in one process; type: cargo run --features cluster -- {}",
            words.join(" ")
        );
    }
}
