//! Which process of a run this is: the one that starts the others, or one of them.

use super::member::{self, Member};
use crate::console::complain;
use crate::flags::values::Values;
use crate::interrupt;
use crate::options::Options;
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use corsair::Cut;
use corsair_cluster::{Hosts, Inherited, Limits, LocalProcesses, MOST_PROCESSES, Secret};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

/// See [`super::run`].
pub fn run(values: &Values, options: &Options, args: &[OsString]) -> Result<ExitCode> {
    let limits = limits(values)?;
    if let Some(inherited) = Inherited::take()? {
        let inherited_processes = inherited.hosts.len();
        let member = Member {
            hosts: inherited.hosts,
            process: inherited.process,
            secret: inherited.secret,
            listener: inherited.listener,
            parent: Some(inherited.parent),
            workers: workers(values, inherited_processes),
            limits,
        };
        return member::run(options, member);
    }
    let most = MOST_PROCESSES as u64;
    let processes = values.read("processes", |text| text::whole(text, 1, most))?;
    let process = values.read("process", |text| text::whole(text, 0, most - 1))?;
    let (hosts, secret) = (values.given("hosts"), values.given("secret-file"));
    if let Some(processes) = processes {
        if hosts.is_some() || process.is_some() || secret.is_some() {
            bail!(
                "--processes starts all processes on this machine, and --hosts, --process and --secret-file are for one of many; leave out the one or the others"
            );
        }
        member::check(options)?;
        return start(processes as usize, args);
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
        parent: None,
        workers: workers(values, 1),
        limits,
    };
    member::run(options, member)
}

/// How many workers each process has: those of this machine are shared by so many of them.
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

/// Starts processes of this machine, and ends as they end.
fn start(processes: usize, args: &[OsString]) -> Result<ExitCode> {
    let program = std::env::current_exe()
        .map_err(|error| anyhow!("cannot find this program again: {error}"))?;
    // Ctrl-C reaches them, too, and ends the run; who waits for them has only to outlive them.
    interrupt::on_ctrl_c(Cut::default());
    let ended = LocalProcesses::start(program, args, processes)?.wait();
    for complaint in ended.complaints {
        complain(complaint.strip_prefix("corsair: ").unwrap_or(&complaint));
    }
    Ok(ExitCode::from(ended.code))
}
