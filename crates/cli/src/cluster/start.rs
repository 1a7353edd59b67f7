//! `--processes` starts `mpirun`; `--mpi` is one of the processes that it starts.

use super::member;
use super::saving::NewestCheckpoint;
use crate::console::complain;
use crate::flags::values::Values;
use crate::options::Options;
use crate::{exit_code, interrupt, text};
use anyhow::{Result, bail};
use corsair_cluster::{Mpi, Watch, is_started};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

/// The largest number of processes that are started on one machine.
const MOST_PROCESSES: u64 = 1024;
/// The default of `--window-within`.
const PATIENCE: Duration = Duration::from_secs(300);

/// Starts the processes, or runs as one of them; see [`super::run`].
pub fn run(values: &Values, options: Options, args: &[OsString]) -> Result<ExitCode> {
    let processes = values.read("processes", |text| text::whole(text, 1, MOST_PROCESSES))?;
    let limit = values.read("window-within", |text| match text::duration(text)? {
        time if time.is_zero() => Err(format!(
            "'{text}' is not a waiting time; give for example 300s"
        )),
        time => Ok(time),
    })?;
    let is_mpi = values.switch("mpi")?;
    let processes = processes.map(|processes| processes as usize);
    match (processes, is_mpi || is_started()) {
        (Some(_), true) if !is_started() => bail!(
            "--processes starts mpirun, and --mpi is for what mpirun has started; leave out one of them"
        ),
        (Some(processes), false) => {
            member::check(&options)?;
            let status = corsair_cluster::start(processes, args)?;
            Ok(match status.success() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(exit_code::REFUSED),
            })
        }
        (None, false) => bail!(
            "--window-within is for a run over several processes; give --mpi, or --processes N to try it out"
        ),
        (processes, true) => {
            let limit = limit.unwrap_or(PATIENCE);
            over_mpi(options, values, processes, limit)
        }
    }
}

/// Runs as one of the processes that MPI has started.
fn over_mpi(
    options: Options,
    values: &Values,
    started: Option<usize>,
    limit: Duration,
) -> Result<ExitCode> {
    let mpi = Mpi::begin()?;
    let mut member = mpi.member();
    let process = member.process();
    let newest = options
        .checkpoints
        .as_ref()
        .map(NewestCheckpoint::since_now);
    let advice = move || {
        newest
            .as_ref()
            .map_or_else(String::new, NewestCheckpoint::advice)
    };
    if process < 2 {
        // mpirun and SLURM send this signal to the remaining processes when a process is lost. At least one of the
        // first two processes remains.
        let advice = advice.clone();
        interrupt::on_terminate(move || {
            let said = "the run was ended (SIGTERM), because a process was lost or the scheduler stopped it";
            complain(format_args!("process {process}: {said}{}", advice()));
            std::process::exit(exit_code::REFUSED.into());
        });
    }
    let _watch = {
        let advice = advice.clone();
        Watch::start(member.arrivals(), limit, move |overdue| {
            complain(format_args!("{overdue}{}", advice()));
            std::process::exit(exit_code::REFUSED.into());
        })?
    };
    let setting = member::Setting {
        described: values.described(),
        configuration: member::configuration(values, &options),
        workers: workers(values, started),
        is_local: is_started(),
    };
    let ended = member::run(&options, &setting, member);
    ended.or_else(|error| {
        complain(format_args!("{}{error:#}{}", prefix(process), advice()));
        // Other processes may wait for this one, so they must be ended, too.
        mpi.abort(exit_code::REFUSED)
    })
}

fn prefix(process: usize) -> String {
    match process {
        0 => String::new(),
        process => format!("process {process}: "),
    }
}

/// Returns the number of workers of each process, if the user or the number of processes determines it.
fn workers(values: &Values, started: Option<usize>) -> Option<NonZeroUsize> {
    let given = ["workers", "cpus"]
        .into_iter()
        .find_map(|name| values.given(name));
    // The text was validated before, so it is a number.
    let given = given.and_then(|text| text.parse().ok());
    given.or_else(|| {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        started.map(|processes| NonZeroUsize::new(cores / processes).unwrap_or(NonZeroUsize::MIN))
    })
}
