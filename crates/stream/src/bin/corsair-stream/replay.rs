//! `corsair-stream replay`: sends a recording through tasks.

use crate::REFUSED;
use crate::tasks::{TaskArgs, close, runtime};
use crate::terminal::{complain, say};
use anyhow::Context;
use corsair::edge::Overflow;
use corsair_stream::engine::{AlertLogs, Engine, Write};
use corsair_stream::flags::EngineArgs;
use corsair_stream::line::Precision;
use corsair_stream::replay::{Pace, replay, replay_recording};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The flags of `corsair-stream replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Lines of the line protocol, or a recording of kapacitor's (.srpl); `-`: lines from standard input
    file: PathBuf,
    /// Database of the lines
    #[arg(long, value_name = "NAME", default_value = "replay")]
    db: String,
    /// Retention policy of the lines
    #[arg(long, value_name = "NAME", default_value = "autogen")]
    rp: String,
    /// Unit of the timestamps: n, u, ms, s, m or h
    #[arg(long, value_name = "UNIT", default_value = "n", value_parser = precision)]
    precision: Precision,
    /// Write the lines at the speed of their timestamps, multiplied by this factor [default: at once]
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_missing_value = "1", value_parser = speed)]
    own_time: Option<f64>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    tasks: TaskArgs,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(times) if times > 0.0 && f64::is_finite(times) => Ok(times),
        _ => Err("give a number greater than 0, like 10 for ten times as fast".into()),
    }
}

/// Parses a unit of timestamps for clap.
fn precision(text: &str) -> Result<Precision, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Replays a recording and reports the results. Points of `log` nodes are printed to standard output.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let from = open(&args.file)?;
    let mut options = args.engine.options();
    options.log = Arc::new(Mutex::new(io::stdout()));
    // A replay waits for the readers of its output and drops nothing.
    options.log_overflow = Overflow::Block;
    options.patience = Duration::MAX;
    options.alert_logs = AlertLogs::Anywhere;
    let pace = args.own_time.map_or(Pace::Fast, Pace::Own);
    let to = Write {
        database: args.db.as_str().into(),
        policy: Some(args.rp.as_str().into()),
        precision: args.precision,
    };
    runtime()?.block_on(async {
        let engine = Engine::start(options)?;
        args.tasks.start(&engine).await?;
        let begun = Instant::now();
        let recording = args.file.extension().is_some_and(|end| end == "srpl");
        let replayed = match recording {
            true => replay_recording(&engine, args.precision, from, pace).await?,
            false => replay(&engine, &to, from, pace).await?,
        };
        let code = close(&engine).await?;
        for task in engine.statuses() {
            for (endpoint, latest) in engine.endpoints(&task.name)? {
                let json = String::from_utf8_lossy(&latest.json()).into_owned();
                say(format_args!("{}/{endpoint}: {json}", task.name));
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        for error in &replayed.errors {
            complain(format_args!("line {}: {}", error.line, error.message));
        }
        let (accepted, rejected) = (replayed.accepted, replayed.rejected);
        let megabytes = replayed.bytes as f64 / 1e6;
        say(format_args!(
            "{accepted} lines, {megabytes:.1} MB in {seconds:.3} s: {:.0} lines/s, {:.1} MB/s",
            accepted as f64 / seconds,
            megabytes / seconds
        ));
        if rejected > 0 {
            complain(format_args!(
                "{rejected} lines are no points and were left out"
            ));
            return Ok(ExitCode::from(REFUSED));
        }
        Ok(code)
    })
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Box::new(file))
}
