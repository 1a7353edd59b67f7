//! Executes a run from its options to its summary, for any workload.

use crate::chosen::{Purpose, with_workload};
use crate::console::Console;
use crate::driver::Local;
use crate::ending::Ending;
use crate::options::Options;
use crate::profile::Profile;
use crate::progress::{Bar, Measure};
use crate::workload::Workload;
use crate::{interrupt, observed};
use anyhow::{Context, Result};
use corsair::Executor;
use corsair_observe::{Clock, GraphFormat, Observer, Replacement, ResumePoint, Settings};
use jiff::Timestamp;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the simulation that the options describe. `args` are the flags, as quoted in files.
///
/// # Errors
/// If the run cannot start, fails, or its output cannot be written.
pub fn run(options: &Options, args: &str) -> Result<ExitCode> {
    let ended = with_workload(options, 1, Simulate { options, args });
    ended.map_err(|error| observed::with_flag(options, error))
}

/// The purpose of a run in this process.
struct Simulate<'a> {
    options: &'a Options,
    args: &'a str,
}

impl Purpose for Simulate<'_> {
    type Output = Result<ExitCode>;

    fn fulfil<W: Workload>(self, workload: Result<W>) -> Result<ExitCode> {
        simulate(self.options, self.args, workload?)
    }
}

fn simulate(options: &Options, args: &str, workload: impl Workload) -> Result<ExitCode> {
    // Opening the outputs here reports unwritable files and unreachable systems before the run.
    let settings = settings(options, args, &workload)?;
    let profile = options.profile.as_deref().map(Profile::begin).transpose()?;
    let per_actor = options.per_actor.as_deref().map(Replacement::begin);
    let per_actor = per_actor.transpose().context("--per-actor")?;
    let logged = settings.resumed.as_ref().filter(|_| options.messages);
    let logged = logged.map(ResumePoint::lines).transpose()?;
    let observer = Observer::start(settings)?;
    let console = Arc::new(Console::new(!options.json));
    if let Some(lines) = logged {
        console.line(format_args!(
            "corsair: the log of messages continues after its line {lines}"
        ));
    }
    if let Some(address) = observer.metrics_address() {
        console.line(format_args!(
            "corsair: serving times at http://{address}/metrics"
        ));
    }
    interrupt::on_ctrl_c(options.config.cancel.clone());
    let measure = match options.executor {
        Executor::Virtual => Measure::Virtual(options.config.progress.clone()),
        _ => Measure::Clock,
    };
    // The page shows more than a progress bar.
    let has_page = (options.session.as_ref()).is_some_and(|session| session.has_page());
    let bar = (!has_page).then(|| Bar::begin(&console, measure));
    let mut driver = Local {
        options,
        recorder: observer.recorder(),
        console: &console,
    };
    let ran = workload.run(options, observer.recorder(), &console, &mut driver);
    drop(bar);
    if let Some(profile) = profile {
        profile.end()?;
    }
    let (report, results) = match ran {
        Ok(Some(ran)) => ran,
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Err(failed) => {
            // Dropping the observer prints the log of messages up to the failure, and removes incomplete files.
            drop(observer);
            return Err(failed);
        }
    };
    let ending = Ending {
        observer,
        per_actor,
        processes: Vec::new(),
    };
    ending.finish(options, &console, &report, results)
}

/// Returns the settings of the run's output.
///
/// # Errors
/// If the workload's own settings are not available.
pub fn settings(options: &Options, args: &str, workload: &impl Workload) -> Result<Settings> {
    let clock = match options.executor {
        Executor::Virtual => Clock::Virtual(options.config.progress.clone()),
        _ => Clock::Wall,
    };
    let mut settings = Settings::new(options.arch.clone(), clock);
    settings.step = options.step;
    settings.args = args.to_owned();
    settings.out.clone_from(&options.out);
    settings.epoch = options.epoch.unwrap_or(match options.executor {
        Executor::Virtual => Timestamp::UNIX_EPOCH,
        _ => Timestamp::now(),
    });
    if options.graph_json {
        settings.graphs.push(GraphFormat::Json);
    }
    if options.graph_ml {
        settings
            .graphs
            .extend([GraphFormat::GraphMl, GraphFormat::Gexf]);
    }
    settings.neo4j.clone_from(&options.neo4j);
    settings.cancel = Some(options.config.cancel.clone());
    if options.messages {
        settings.messages = Some(Box::new(crate::console::Stdout::new()));
    }
    workload.describe(&mut settings)?;
    Ok(settings)
}
