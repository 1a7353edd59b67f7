//! The program `corsair-host run FILE`, which runs programs of this machine as hosts of a deterministic simulation.
#![allow(clippy::print_stdout, reason = "prints results")]

mod file;
#[cfg(feature = "ui")]
mod view;

use clap::{Parser, Subcommand};
use corsair::network::{Fifo, Jitter, Lossy};
use corsair_host::{Fault, HostId, Sim, SimError, simulate};
use file::{FaultAt, File, Host, Link};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Runs programs as hosts of a deterministic simulation.
#[derive(Parser)]
#[command(name = "corsair-host", version)]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run the simulation that a TOML or JSON file describes
    Run(Run),
}

#[derive(clap::Args)]
struct Run {
    /// The file: hosts, programs, files, links and faults
    file: PathBuf,
    /// The first seed; overrides the seed in the file
    #[arg(long)]
    seed: Option<u64>,
    /// The number of seeds to run; overrides the number in the file
    #[arg(long)]
    seeds: Option<u64>,
    /// Worker threads of the engine; results do not depend on them
    #[arg(long, default_value = "1")]
    workers: NonZeroUsize,
    /// Control the simulation of the first seed from a page in the browser, at this address [default: any free port of
    /// 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    ui: Option<SocketAddr>,
    /// The simulated kernel as a shared object; by default the one in the directory of this program
    #[arg(long)]
    preload: Option<PathBuf>,
}

/// Directories that hold shared libraries.
const LIBRARIES: [&str; 4] = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache"];

fn main() -> ExitCode {
    if let Err(error) = corsair_host::init() {
        eprintln!("corsair-host: {error}");
        return ExitCode::from(2);
    }
    let Action::Run(run) = Cli::parse().command;
    match seeds(&run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("corsair-host: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs all seeds. Returns false if one fails.
fn seeds(run: &Run) -> Result<bool, String> {
    let file = file::read(&run.file)?;
    let preload = match &run.preload {
        Some(path) => path.clone(),
        None => beside()?,
    };
    let preload = preload
        .canonicalize()
        .map_err(|error| format!("{} cannot be read: {error}", preload.display()))?;
    let first = run.seed.unwrap_or(file.seed);
    let count = run.seeds.unwrap_or(file.seeds);
    let directory = run.file.parent().unwrap_or(Path::new("."));
    let contents = contents(&file, directory)?;
    if let Some(address) = run.ui {
        return watched(run, &file, first, address, |sim| {
            build(sim, &file, directory, &contents, &preload)
        });
    }
    for seed in first..first.saturating_add(count) {
        let (failure, digest) = simulate(seed, run.workers, |sim| {
            build(sim, &file, directory, &contents, &preload)?;
            let result = sim.run_until(file.until.0);
            if count == 1 && result.is_ok() {
                print!("{}", sim.log());
            }
            result
        })
        .map_err(|error| error.to_string())?;
        match failure {
            Some(failure)
                if ["the simulation cannot begin", "'"]
                    .iter()
                    .any(|start| failure.starts_with(start)) =>
            {
                return Err(failure);
            }
            Some(failure) => {
                println!("seed {seed}: {failure}");
                println!("run this seed alone with --seed {seed} --seeds 1");
                return Ok(false);
            }
            None => println!("seed {seed}: digest {digest:016x}"),
        }
    }
    Ok(true)
}

/// Runs one seed under the control of a page.
#[cfg(feature = "ui")]
fn watched(
    run: &Run,
    file: &File,
    seed: u64,
    address: SocketAddr,
    build: impl Fn(&mut Sim) -> Result<Vec<(Duration, String)>, SimError>,
) -> Result<bool, String> {
    let title = run.file.file_stem().unwrap_or_default();
    let title = title.to_string_lossy().into_owned();
    let (failure, _) = simulate(seed, run.workers, |sim| {
        let faults = build(sim).map_err(|error| error.to_string())?;
        view::serve(sim, title.clone(), file.until.0, faults, address)
    })
    .map_err(|error| error.to_string())?;
    failure.map_or(Ok(true), Err)
}

#[cfg(not(feature = "ui"))]
fn watched(
    _: &Run,
    _: &File,
    _: u64,
    _: SocketAddr,
    _: impl Fn(&mut Sim) -> Result<Vec<(Duration, String)>, SimError>,
) -> Result<bool, String> {
    Err(
        "this build has no page; build it with: cargo build -p corsair-host-run --features ui"
            .to_string(),
    )
}

/// Returns the path of the shared object in the directory of this program.
fn beside() -> Result<PathBuf, String> {
    const NAME: &str = "libcorsair_host_preload.so";
    let directory = corsair_host::program().parent().unwrap_or(Path::new("."));
    let places = [directory.join(NAME), directory.join("deps").join(NAME)];
    let found = places.iter().find(|path| path.exists());
    found.cloned().ok_or_else(|| {
        format!(
            "{NAME} is not in {}; name it with --preload",
            directory.display()
        )
    })
}

/// Returns the files of all hosts: the index of the host, the path and the contents.
fn contents(file: &File, directory: &Path) -> Result<Vec<(usize, String, Vec<u8>)>, String> {
    let mut all = vec![];
    for (index, host) in file.hosts.iter().enumerate() {
        for (path, from) in &host.files {
            if !path.starts_with('/') {
                return Err(format!(
                    "host {}: the path {path} is not absolute",
                    host.name
                ));
            }
            let from = directory.join(from);
            let bytes = std::fs::read(&from);
            let bytes =
                bytes.map_err(|error| format!("{} cannot be read: {error}", from.display()))?;
            all.push((index, path.clone(), bytes));
        }
    }
    Ok(all)
}

fn network(link: &Link) -> Result<Lossy<Jitter>, SimError> {
    let settings = |error: &dyn std::fmt::Display| SimError::Settings(error.to_string());
    let [least, most] = link.latency.map(|span| span.0);
    let jitter = Jitter::new(least, most).map_err(|error| settings(&error))?;
    Lossy::new(jitter, link.loss).map_err(|error| settings(&error))
}

/// Adds the hosts, links and faults of a file to a simulation. Returns the times and names of the faults.
fn build(
    sim: &mut Sim,
    file: &File,
    directory: &Path,
    contents: &[(usize, String, Vec<u8>)],
    preload: &Path,
) -> Result<Vec<(Duration, String)>, SimError> {
    sim.preemption(file.preemption);
    if let Some(link) = &file.network {
        sim.network(Fifo(network(link)?));
    }
    let mut hosts = BTreeMap::new();
    for (index, host) in file.hosts.iter().enumerate() {
        let id = add(sim, host, directory, preload)?;
        for (_, path, bytes) in contents.iter().filter(|entry| entry.0 == index) {
            sim.file(&id, path, bytes.clone());
        }
        hosts.insert(host.name.as_str(), id);
    }
    let find = |name: &String| {
        let id = hosts.get(name.as_str()).copied();
        id.ok_or_else(|| SimError::Settings(format!("there is no host '{name}'")))
    };
    for link in &file.links {
        let [one, other] = &link.between;
        sim.link(&find(one)?, &find(other)?, network(&link.link)?);
    }
    let mut faults = vec![];
    for entry in &file.faults {
        let (name, fault) = fault(entry, find)?;
        sim.at(entry.at.0, fault);
        faults.push((entry.at.0, name));
    }
    Ok(faults)
}

fn add(sim: &mut Sim, host: &Host, directory: &Path, preload: &Path) -> Result<HostId, SimError> {
    let settings = |text: String| SimError::Settings(format!("host {}: {text}", host.name));
    let Some(program) = host.run.first() else {
        return Err(settings("`run` names no program".to_string()));
    };
    let path = directory.join(program);
    let path = path
        .canonicalize()
        .map_err(|error| settings(format!("{} cannot be read: {error}", path.display())))?;
    let id = sim.executable(&host.name, &path, preload);
    sim.args(&id, host.run.iter().cloned());
    let libraries = LIBRARIES.iter().map(PathBuf::from);
    for readable in libraries.chain(host.read.iter().cloned()).chain([path]) {
        sim.readable(&id, readable);
    }
    sim.readable(&id, preload);
    for (name, value) in &host.env {
        sim.env_of(&id, name, value);
    }
    Ok(id)
}

/// Returns the fault of an entry and its name.
fn fault(
    entry: &FaultAt,
    find: impl Fn(&String) -> Result<HostId, SimError>,
) -> Result<(String, Fault), SimError> {
    let group = |names: &Vec<String>| names.iter().map(&find).collect::<Result<Vec<_>, _>>();
    let mut faults = vec![];
    for (what, name, make) in [
        ("kill", &entry.kill, Fault::kill as fn(&HostId) -> Fault),
        ("power loss of", &entry.power_loss, Fault::power_loss),
        ("start", &entry.start, Fault::start),
        ("terminate", &entry.terminate, |host| {
            Fault::signal(host, 15)
        }),
        ("pause", &entry.pause, Fault::pause),
        ("resume", &entry.resume, Fault::resume),
        ("names fail on", &entry.names_fail, Fault::names_fail),
        ("names work on", &entry.names_work, Fault::names_work),
    ] {
        if let Some(name) = name {
            faults.push((format!("{what} {name}"), make(&find(name)?)));
        }
    }
    for (what, step, make) in [
        (
            "clock forward on",
            &entry.clock_forward,
            Fault::clock_forward as fn(&HostId, Duration) -> Fault,
        ),
        ("clock back on", &entry.clock_back, Fault::clock_back),
    ] {
        if let Some((name, by)) = step {
            faults.push((format!("{what} {name}"), make(&find(name)?, by.0)));
        }
    }
    if let Some((name, rate)) = &entry.clock_rate {
        faults.push((
            format!("clock rate {rate} on {name}"),
            Fault::clock_rate(&find(name)?, *rate),
        ));
    }
    if let Some([one, other]) = &entry.partition {
        let name = format!("partition {} from {}", one.join(", "), other.join(", "));
        faults.push((name, Fault::partition(&group(one)?, &group(other)?)));
    }
    if let Some([from, to]) = &entry.partition_one_way {
        let name = format!("partition {} to {}", from.join(", "), to.join(", "));
        faults.push((name, Fault::partition_one_way(&group(from)?, &group(to)?)));
    }
    if let Some([one, other]) = &entry.heal {
        let name = format!("heal {} and {}", one.join(", "), other.join(", "));
        faults.push((name, Fault::heal(&group(one)?, &group(other)?)));
    }
    match (faults.pop(), faults.is_empty()) {
        (Some(fault), true) => Ok(fault),
        _ => Err(SimError::Settings(
            "a fault is one of kill, power_loss, start, terminate, pause, resume, clock_forward, clock_back, clock_rate, \
             names_fail, names_work, partition, partition_one_way and heal"
                .to_string(),
        )),
    }
}
