//! Which process of a run this is: the one that starts the others, or one of them.

use super::lineage::Newest;
use super::member::{self, Member};
use crate::console::complain;
use crate::flags::values::Values;
use crate::options::Options;
use crate::{interrupt, text};
use anyhow::{Context, Result, anyhow, bail};
use corsair::CancelToken;
use corsair_cluster::{
    ClusterError, Hosts, Inherited, Limits, Lineage, LocalProcesses, MOST_PROCESSES, Mesh, Origin,
    Secret,
};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

/// See [`super::run`].
pub fn run(values: &Values, options: Options, args: &[OsString]) -> Result<ExitCode> {
    let (limits, described) = (limits(values)?, values.described());
    let lineage = Lineage::take();
    let origin = lineage.as_ref().and_then(|lineage| lineage.origin.clone());
    if let Some(inherited) = Inherited::take()? {
        let inherited_processes = inherited.hosts.len();
        let member = Member {
            hosts: inherited.hosts,
            process: inherited.process,
            secret: inherited.secret,
            listener: inherited.listener,
            parent: Some(inherited.parent),
            is_local: true,
            workers: workers(values, inherited_processes),
            limits,
            origin,
            connect: Mesh::connect,
        };
        return member::run(options, &described, member);
    }
    let most = MOST_PROCESSES as u64;
    let processes = values.read("processes", |text| text::whole(text, 1, most))?;
    let process = values.read("process", |text| text::whole(text, 0, most - 1))?;
    let restarts = values.read("restarts", |text| text::whole(text, 0, 1_000_000))?;
    if restarts.is_some() && options.checkpoints.is_none() {
        bail!(
            "--restarts goes on from checkpoints, and none is made; add --checkpoint-every 60s --checkpoint-dir DIR"
        );
    }
    if values.switch("mpi")? {
        let others = ["hosts", "process", "processes", "secret-file", "restarts"];
        if let Some(other) = others.into_iter().find(|name| values.given(name).is_some()) {
            bail!(
                "--mpi is for processes that mpirun or srun has started and will not start again; leave out --{other}"
            );
        }
        return over_mpi(values, options, &described, limits);
    }
    let (hosts, secret) = (values.given("hosts"), values.given("secret-file"));
    if let Some(processes) = processes {
        if hosts.is_some() || process.is_some() || secret.is_some() {
            bail!(
                "--processes starts all processes on this machine, and --hosts, --process and --secret-file are for one of many; leave out the one or the others"
            );
        }
        let start = |program: &Path, origin: Option<&Origin>| {
            LocalProcesses::start(program, args, processes as usize, origin)
        };
        return begin(&options, restarts, start);
    }
    let Some(hosts) = hosts else {
        bail!(
            "the hosts are missing; give --hosts FILE with a line for each process, or --processes N to try it out"
        );
    };
    let Some(process) = process else {
        bail!("which line of --hosts this process is, is missing; give --process 0 for the first");
    };
    let Some(secret) = secret else {
        bail!(
            "the secret that all processes share is missing; make one with `openssl rand -hex 32 > FILE` and give --secret-file FILE"
        );
    };
    let member = Member {
        hosts: Hosts::read(Path::new(hosts)).context("--hosts")?,
        process: process as usize,
        secret: Secret::read(Path::new(secret)).context("--secret-file")?,
        listener: None,
        parent: lineage.as_ref().map(|lineage| lineage.parent),
        is_local: false,
        workers: workers(values, 1),
        limits,
        origin,
        connect: Mesh::connect,
    };
    if restarts.is_some() && lineage.is_none() {
        return begin(&options, restarts, |program, origin| {
            LocalProcesses::one(program, args, origin)
        });
    }
    member::run(options, &described, member)
}

/// One of the processes that MPI has started.
#[cfg(feature = "mpi")]
fn over_mpi(
    values: &Values,
    options: Options,
    described: &str,
    limits: Limits,
) -> Result<ExitCode> {
    let mpi = corsair_cluster::Mpi::begin()?;
    let run = || {
        let introduction = mpi.introduce()?;
        let member = Member {
            hosts: introduction.hosts,
            process: introduction.process,
            secret: introduction.secret,
            listener: Some(introduction.listener),
            parent: None,
            is_local: introduction.is_local,
            // As many as MPI has left to this process.
            workers: workers(values, 1),
            limits,
            origin: None,
            connect: Mesh::connect_by_mpi,
        };
        member::run(options, described, member)
    };
    let ended = run();
    match ended {
        Ok(ExitCode::SUCCESS) => drop(mpi),
        _ => mpi.leave(),
    }
    ended
}

#[cfg(not(feature = "mpi"))]
fn over_mpi(_: &Values, _: Options, _: &str, _: Limits) -> Result<ExitCode> {
    bail!(
        "this build has no MPI; install an MPI library and libclang, and build it with --features mpi"
    );
}

/// Starts processes of this machine, and again if the run is lost and may go on; ends as they end.
fn begin(
    options: &Options,
    restarts: Option<u64>,
    start: impl Fn(&Path, Option<&Origin>) -> Result<LocalProcesses, ClusterError>,
) -> Result<ExitCode> {
    let program = std::env::current_exe()
        .map_err(|error| anyhow!("cannot find this program again: {error}"))?;
    // Ctrl-C reaches them, too, and ends the run; who waits for them has only to outlive them.
    let cancel = CancelToken::default();
    interrupt::on_ctrl_c(cancel.clone());
    let newest = options.checkpoints.as_ref().map(Newest::since_now);
    let all = restarts.unwrap_or(0);
    let mut origin = None;
    for restart in 1.. {
        let ended = start(&program, origin.as_ref())?.wait();
        for complaint in &ended.complaints {
            complain(complaint.strip_prefix("corsair: ").unwrap_or(complaint));
        }
        if !ended.is_lost || restart > all || cancel.is_cancelled() {
            return Ok(ExitCode::from(ended.code));
        }
        origin = newest.as_ref().and_then(Newest::origin);
        let from = match &origin {
            Some(origin) => format!("going on from {}", origin.place),
            None => "nothing was saved, beginning again".to_owned(),
        };
        complain(format_args!("{from} (restart {restart} of {all})"));
    }
    Ok(ExitCode::SUCCESS)
}

/// How many workers each process has: those of this machine are shared by all of them.
fn workers(values: &Values, processes: usize) -> NonZeroUsize {
    let given = ["workers", "cpus"]
        .into_iter()
        .find_map(|name| values.given(name));
    // A number, or it would have been refused before.
    if let Some(workers) = given.and_then(|text| text.parse().ok()) {
        return workers;
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / processes).unwrap_or(NonZeroUsize::MIN)
}

fn limits(values: &Values) -> Result<Limits> {
    let default = Limits::default();
    let time = |text: &str| match text::duration(text)? {
        time if time.is_zero() => Err(format!("{text} is no time to wait")),
        time => Ok(time),
    };
    Ok(Limits {
        rendezvous: values
            .read("meet-within", time)?
            .unwrap_or(default.rendezvous),
        stall: values.read("window-within", time)?.unwrap_or(default.stall),
        ..default
    })
}
