//! One process of a run over several.

use crate::console::{Console, complain};
use crate::fsm::Pirates;
use crate::interrupt;
use crate::options::{Options, What, failed};
use crate::progress::{Bar, Measure};
use crate::summary::{ProcessSummary, Summary};
use anyhow::{Result, anyhow, bail};
use corsair::cluster::{Part, conclude_parts};
use corsair::fsm::{self, Form, Msg};
use corsair::{Outcome, Report};
use corsair_cluster::{Hosts, Limits, Membership, ProcessEnd, Secret};
use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which process this is, and what it needs to find the others.
#[derive(Debug)]
pub struct Member {
    pub hosts: Hosts,
    pub process: usize,
    /// How many workers each process has.
    pub workers: NonZeroUsize,
    pub secret: Secret,
    pub listener: Option<TcpListener>,
    pub parent: Option<u32>,
    pub limits: Limits,
}

/// Whether what is to be run can be on several processes.
///
/// # Errors
/// If not, why.
pub fn check(options: &Options) -> Result<&crate::options::PirateOptions> {
    match &options.what {
        What::Pirates(pirates) if pirates.form == Form::Handler => Ok(pirates),
        What::Pirates(_) => bail!(
            "--form async and several processes do not go together: an async body cannot be sent to another process; leave it out"
        ),
        What::Services(_) => bail!(
            "{} cannot be on several processes: only pirates can, as in -a fsm -p 1000000; many runs of it can, by `corsair sweep --shard`",
            options.arch
        ),
    }
}

/// Runs the part of this process.
///
/// # Errors
/// Why the processes do not run together, or how the run failed.
pub fn run(options: &Options, member: Member) -> Result<ExitCode> {
    let pirates = check(options)?;
    let processes = member.hosts.len();
    let shared = match member.parent {
        // All of them are on this machine.
        Some(_) => 1,
        None => processes as u32,
    };
    let scenario = Pirates::new_shared(options, pirates, shared)?.into_scenario();
    let part = Part {
        process: member.process,
        processes: NonZeroUsize::new(processes).unwrap_or(NonZeroUsize::MIN),
        workers: member.workers,
    };
    let course = fsm::course(&options.config, &scenario);
    let membership = Membership {
        hosts: member.hosts,
        process: member.process,
        workers: member.workers.get(),
        secret: member.secret,
        program: format!("corsair {}", env!("CARGO_PKG_VERSION")),
        configuration: corsair_cluster::hash(&course),
        listener: member.listener,
        parent: member.parent,
        limits: member.limits,
    };
    interrupt::on_ctrl_c(options.config.cut.clone());
    let (builders, cluster) = membership.meet()?.connect()?;
    cluster.supervisor().on_hang(|why| {
        complain(why);
        std::process::exit(crate::cli::REFUSED.into());
    });
    let console = Arc::new(Console::new(!options.json));
    let first = part.process == 0;
    let bar =
        first.then(|| Bar::begin(&console, Measure::Virtual(options.config.progress.clone())));
    let carriers = builders.into_iter().map(|builder| move || builder.build());
    let began = Instant::now();
    let ran = fsm::run_part(&options.config, part, &scenario, carriers.collect());
    let wall = began.elapsed();
    drop(bar);
    let (told, tally) = ran.map_err(|error| anyhow!("{error}"))?;
    let ends = cluster.end(told)?;
    if !first {
        return Ok(code(options.config.cut.is_cut()));
    }
    let summary = |report: &Report, processes: Vec<ProcessSummary>| {
        let subject = crate::fsm::summary::PiratesSummary::new(
            Form::Handler,
            scenario.count(),
            report,
            None,
            tally,
        );
        Summary::new(options, report, subject, Vec::new()).over(processes)
    };
    let parts: Vec<Vec<u8>> = ends.iter().map(|end| end.part.clone()).collect();
    let report = conclude_parts::<Msg>(&fsm::config(options.config.clone()), part, &parts, wall);
    let report = report.map_err(|error| failed(&error, &error, &console))?;
    let processes = ends.iter().map(|end| process(end, wall, part.workers));
    let summary = summary(&report, processes.collect());
    console.print(|out| {
        if options.json {
            serde_json::to_writer(&mut *out, &summary).map_err(io::Error::from)?;
            return writeln!(out);
        }
        write!(out, "{summary}")
    });
    Ok(code(report.outcome == Outcome::Cut))
}

fn code(is_cut: bool) -> ExitCode {
    if is_cut {
        ExitCode::from(interrupt::EXIT_CODE)
    } else {
        ExitCode::SUCCESS
    }
}

/// What one process had to do with others, on the average of its workers.
fn process(end: &ProcessEnd, wall: Duration, workers: NonZeroUsize) -> ProcessSummary {
    let share = |time: Duration| {
        let all = wall.as_secs_f64() * workers.get() as f64;
        if all > 0.0 {
            time.as_secs_f64() / all
        } else {
            0.0
        }
    };
    let exchange = &end.exchange;
    ProcessSummary {
        exchange_share: share(exchange.time.total),
        waiting_share: share(exchange.time.waiting),
        sent_bytes: exchange.sent,
        received_bytes: exchange.received,
        peak_memory_bytes: end.peak_memory,
    }
}
