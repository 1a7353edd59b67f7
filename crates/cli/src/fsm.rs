//! `corsair -a fsm`: builds the run that the options ask for, runs it, and writes what it left.

mod exports;
mod graph_file;
mod message_log;
mod names;
mod observer;
mod record;

use crate::console::{Console, complain};
use crate::options::Options;
use crate::profile::Profile;
use crate::progress::{Bar, Measure};
use crate::summary::{Delivery, Summary};
use crate::{interrupt, memory, observed, per_actor};
use anyhow::{Context, Result, anyhow};
use corsair::fsm::{self, Fsm, FsmError};
use corsair::{Executor, Outcome, Report};
use corsair_observe::Replacement;
use corsair_observe::graph::Header;
use exports::Exports;
use jiff::Timestamp;
use names::Names;
use observer::{Observer, Told};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs pirates as the options say. `args` are the flags, as files quote them.
///
/// # Errors
/// What is wrong before the run begins, how it failed, or which file could not be written.
pub fn run(options: &Options, args: &str) -> Result<ExitCode> {
    let network = options
        .reload
        .as_deref()
        .map(graph_file::network)
        .transpose()?;
    let listed = network.as_ref().map(|network| Arc::clone(network.names()));
    let scenario = Fsm {
        arch: options.arch.clone(),
        population: options.population,
        talk: options.talk,
        form: options.form,
        network,
        chat: options.chat,
        watch: (),
    };
    scenario.check().map_err(|wrong| match wrong {
        FsmError::Chat(_) => anyhow!("-kv: {wrong}"),
        _ => anyhow!("-p: {wrong}"),
    })?;
    let pirates = scenario.count();
    let changes = options.graph.is_some() || options.graph_ml || options.neo4j;
    let record = changes || options.messages;
    memory::check(options.executor, record, pirates).context("-p")?;

    // Whatever cannot be written is told before the run, not after it.
    let graph = options
        .graph
        .as_deref()
        .map(Replacement::begin)
        .transpose()
        .context("-j")?;
    let per_actor = options
        .per_actor
        .as_deref()
        .map(Replacement::begin)
        .transpose();
    let per_actor = per_actor.context("--per-actor")?;
    let profile = options.profile.as_deref().map(Profile::begin).transpose()?;
    let epoch = options.epoch.unwrap_or(match options.executor {
        Executor::Virtual => Timestamp::UNIX_EPOCH,
        _ => Timestamp::now(),
    });

    let exports = Exports::begin(options, args, epoch)?;
    let console = Arc::new(Console::new(!options.json));
    let observer = Observer::install(Arc::clone(&console), changes, options.messages);
    interrupt::on_ctrl_c(options.config.cut.clone());
    let bar = Bar::begin(
        &console,
        match options.executor {
            Executor::Virtual => Measure::Virtual(options.config.progress.clone()),
            _ => Measure::Clock,
        },
    );
    let ran = if record {
        fsm::run(
            options.executor,
            &options.config,
            scenario.watched_by(Told::<true>),
        )
    } else {
        fsm::run(
            options.executor,
            &options.config,
            scenario.watched_by(Told::<false>),
        )
    };
    drop(bar);
    if let Some(profile) = profile {
        profile.end()?;
    }

    let names = Names::new(&options.arch, listed, observer.pirates());
    if options.messages {
        let (messages, delivered) = (observer.messages(), observer.delivered());
        let ended = observer.tally().is_some();
        console.print(|mut out| message_log::write(&mut out, &messages, &names, delivered, ended));
    }
    let report = match &ran {
        Ok((report, _)) => report,
        Err(error) => return Err(failed(error, &console)),
    };
    let mut files = Vec::new();
    let changes = observer.changes();
    if let (Some(file), Some(path)) = (graph, &options.graph) {
        let header = Header {
            arch: &options.arch,
            args,
            date: epoch,
        };
        let events = graph_file::write(file, &header, &names, &changes).context("-j")?;
        files.push(format!("{} ({events} events)", path.display()));
    }
    if let Some(exports) = exports {
        files.extend(observed::tell(&exports.write(&names, &changes)?));
    }
    if let (Some(file), Some(path)) = (per_actor, &options.per_actor) {
        let totals = &report.per_actor;
        let called = totals.iter().map(|totals| names.of(totals.who));
        per_actor::write(file, called, totals).context("--per-actor")?;
        files.push(path.display().to_string());
    }
    files.extend(
        options
            .profile
            .iter()
            .map(|path| path.display().to_string()),
    );
    let delivered = observer.delivered().map(|delivered| Delivery {
        messages: delivered.messages,
        seconds: delivered.wall.as_secs_f64(),
    });
    let summary = Summary::new(options, report, pirates, delivered, observer.tally(), files);
    tell(&console, report, &summary, options.json);
    Ok(match report.outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Cut => ExitCode::from(interrupt::EXIT_CODE),
    })
}

/// Prints how the run ended, and the summary.
fn tell(console: &Console, report: &Report, summary: &Summary, json: bool) {
    for panic in &report.panics {
        complain(panic);
    }
    if json {
        console.print(|out| {
            serde_json::to_writer(&mut *out, summary).map_err(io::Error::from)?;
            writeln!(out)
        });
        return;
    }
    console.line(match report.outcome {
        Outcome::Completed => "corsair: complete",
        Outcome::Cut => "corsair: cut short by Ctrl-C",
    });
    console.print(|out| write!(out, "{summary}"));
}

/// How a run failed, as an error. What it had done is told first.
fn failed(error: &FsmError, console: &Console) -> anyhow::Error {
    if let FsmError::Run(run) = error
        && let Some(report) = run.report()
    {
        console.line(format_args!(
            "corsair: failed at {} after {} messages",
            report.time,
            report.delivered()
        ));
    }
    anyhow!("{}", error.to_string().trim_end())
}
