//! A run that is saved while it goes on: when, and where to.

pub(crate) mod signal;

use crate::console::{Console, complain};
use crate::options::checkpoints::{Checkpoints, Every};
use crate::text::{self, GoDuration};
use anyhow::{Context, Result};
use corsair::{Config, Message, Simulation, Snapshot, SnapshotError, Time};
use corsair_observe::checkpoint::{
    self, Checkpoint, CheckpointError, Claim, Draft, Program, RunId,
};
use corsair_observe::{Population, Recorder, Resumed};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use signal::Signals;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program that writes checkpoints, and the build that reads them.
pub const PROGRAM: Program = Program {
    name: "corsair",
    version: env!("CARGO_PKG_VERSION"),
    build: env!("CORSAIR_BUILD"),
};

/// What a checkpoint calls the state of what writes a run's files.
pub const RECORDER: &str = "recorder.json";

/// The saved run in a checkpoint.
///
/// # Errors
/// If it is none.
pub fn snapshot_of(checkpoint: &Checkpoint) -> Result<Snapshot> {
    let snapshot = checkpoint.snapshot();
    snapshot.with_context(|| checkpoint.directory.display().to_string())
}

/// Where what the run has written goes on. `population` is what its populations are, if it has any.
pub fn resumed(checkpoint: &Checkpoint, population: Option<Arc<dyn Population>>) -> Resumed {
    let mut files = checkpoint.files.iter();
    let state = files.find(|(name, _)| name == RECORDER);
    Resumed {
        directory: checkpoint.directory.clone(),
        state: state.map(|(_, state)| state.clone()).unwrap_or_default(),
        population,
    }
}

/// What a workload has saved of its own.
///
/// # Errors
/// If it is something else.
pub fn details<T: DeserializeOwned>(checkpoint: &Checkpoint) -> Result<T> {
    let details = checkpoint.manifest.details.get("run").cloned();
    serde_json::from_value(details.unwrap_or_default())
        .with_context(|| checkpoint.directory.display().to_string())
}

/// How a run that is saved has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All that is left is to finish it.
    Over,
    /// It has come to where it was to stop.
    Until,
}

/// A slice of the run takes about so long, by the clock, between two looks at it.
const SLICE: Duration = Duration::from_millis(20);

/// Runs a simulation up to its end, or to where it is to stop, and saves it as it goes. `details` is what
/// else is saved, and is asked for each time.
///
/// # Errors
/// If it cannot be saved.
pub fn run<M: Message>(
    simulation: &mut Simulation<M>,
    (checkpoints, run): (&Checkpoints, RunId),
    config: &Config,
    console: &Console,
    recorder: &Recorder,
    mut details: impl FnMut() -> Result<Value>,
) -> Result<Ended> {
    let _claim = Claim::new(&checkpoints.directory, run)?;
    let signals = Signals::new();
    let mut keeper = Keeper::new(checkpoints, run, console, recorder);
    let mut at = checkpoints.at.iter().copied().peekable();
    while at.next_if(|&time| time <= simulation.now()).is_some() {}
    let stop = checkpoints.until.unwrap_or(Time::MAX);
    let end = config.end;
    // A pause within a window parts it, which costs what its events cost; so slices end with windows.
    let lookahead = config.lookahead.unwrap_or(config.latency.min());
    let window = u64::try_from(lookahead.as_nanos()).unwrap_or(u64::MAX);
    let window = 1_u64 << window.max(1).ilog2();
    let shortest = Duration::from_nanos(window);
    let mut slice = shortest;
    let ended = loop {
        let now = simulation.now();
        if now >= stop {
            break Ended::Until;
        }
        if end.is_some_and(|end| now >= end) {
            break Ended::Over;
        }
        let asked = at.peek().copied().unwrap_or(Time::MAX);
        let last = Time::from_nanos(now.after(slice).as_nanos() | (window - 1));
        let next = last.min(stop).min(asked).min(end.unwrap_or(Time::MAX));
        let begun = Instant::now();
        if !simulation.run_until(next) {
            break Ended::Over;
        }
        let took = begun.elapsed();
        if took < SLICE / 2 {
            slice = slice.saturating_mul(2);
        } else if took > SLICE * 2 {
            slice = (slice / 2).max(shortest);
        }
        // Much virtual time has passed in none: there may be nothing left to happen.
        if took < SLICE / 20 && simulation.next().is_none() {
            break Ended::Over;
        }
        let asked = at.next_if(|&time| time <= simulation.now()).is_some()
            || signals.asked_for(checkpoints);
        if asked || keeper.is_due() {
            keeper.save(simulation, asked, details()?)?;
        }
    };
    keeper.finish();
    if ended == Ended::Over {
        report_times_after_the_end(at, simulation.now());
    }
    Ok(ended)
}

/// Warns of checkpoints that were asked for at times that the run did not reach.
pub fn report_times_after_the_end(missed: impl Iterator<Item = Time>, end: Time) {
    let shown = |time: Time| GoDuration(time.elapsed()).to_string();
    let missed: Vec<String> = missed.map(shown).collect();
    if !missed.is_empty() {
        complain(format_args!(
            "--checkpoint-at {}: nothing was saved then, because the run ended at {}; give an earlier time, or a longer -d",
            missed.join(","),
            shown(end)
        ));
    }
}

/// When a run is to be saved again.
pub struct Pace {
    every: Option<Every>,
    recorder: Recorder,
    /// When that was done last, and how much had been written to files by then.
    last: (Instant, u64),
}

impl Pace {
    /// So often from here on.
    pub fn new(every: Option<Every>, recorder: &Recorder) -> Pace {
        Pace {
            every,
            last: (Instant::now(), recorder.written()),
            recorder: recorder.clone(),
        }
    }

    /// Whether it is time.
    pub fn is_due(&self) -> bool {
        let (at, written) = self.last;
        match self.every {
            Some(Every::Time(time)) => at.elapsed() >= time,
            Some(Every::Bytes(bytes)) => self.recorder.written() - written >= bytes,
            None => false,
        }
    }

    /// It has been saved just now.
    pub fn saved(&mut self) {
        self.last = (Instant::now(), self.recorder.written());
    }
}

/// Writes checkpoints beside the run, one at a time.
struct Keeper<'a> {
    checkpoints: &'a Checkpoints,
    run: RunId,
    console: &'a Console,
    recorder: &'a Recorder,
    pace: Pace,
    writing: Option<JoinHandle<Result<PathBuf, CheckpointError>>>,
    /// What is said of it when it is written.
    about: String,
}

impl<'a> Keeper<'a> {
    fn new(
        checkpoints: &'a Checkpoints,
        run: RunId,
        console: &'a Console,
        recorder: &'a Recorder,
    ) -> Keeper<'a> {
        Keeper {
            checkpoints,
            run,
            console,
            recorder,
            pace: Pace::new(checkpoints.every, recorder),
            writing: None,
            about: String::new(),
        }
    }

    /// Whether it is time for the next one. It is not while one is being written.
    fn is_due(&mut self) -> bool {
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish();
        }
        self.writing.is_none() && self.pace.is_due()
    }

    fn save<M: Message>(
        &mut self,
        simulation: &mut Simulation<M>,
        asked: bool,
        details: Value,
    ) -> Result<()> {
        self.finish();
        let begun = Instant::now();
        let (snapshot, time) = (simulation.snapshot(), simulation.now());
        let snapshot = match snapshot {
            Err(SnapshotError::Over) => return Ok(()),
            other => other?,
        };
        let outputs = self.recorder.save(time)?;
        let paused = GoDuration::rounded(begun.elapsed());
        let size = text::bytes(snapshot.bytes());
        self.about = format!("at {time}: {size}, a pause of {paused}");
        let flags = Value::Object(self.checkpoints.flags.clone());
        let mut files = checkpoint::files_of(snapshot)?;
        files.push((RECORDER.to_owned(), outputs.state));
        files.extend(outputs.copies);
        let draft = Draft {
            program: PROGRAM,
            run: self.run,
            time: time.as_nanos(),
            asked,
            details: json!({ "flags": flags, "run": details }),
            files,
            outputs: outputs.files,
        };
        self.pace.saved();
        let directory = self.checkpoints.directory.clone();
        let write = move || checkpoint::write(&directory, draft);
        let thread = std::thread::Builder::new().name("checkpoint".to_owned());
        self.writing = Some(thread.spawn(write).context("--checkpoint-dir")?);
        Ok(())
    }

    /// Waits for the one that is being written. One that cannot be is complained of, and the run goes on.
    fn finish(&mut self) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        match writing.join() {
            Ok(Ok(place)) => self.console.line(format_args!(
                "corsair: saved to {} {}",
                place.display(),
                self.about
            )),
            Ok(Err(error)) => complain(format_args!("--checkpoint-dir: {error}")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The checkpoint that a path means.
///
/// # Errors
/// If there is none, if a file of it differs, or if another build has written it.
pub fn read(path: &Path) -> Result<Checkpoint> {
    Ok(checkpoint::read(&checkpoint::find(path)?, PROGRAM)?)
}
