//! Checkpoints of a running simulation: their times, their directory and their contents.

use super::{DriveError, PausedRun, Workload};
use crate::checkpoint::{self, CheckpointError, Claim, Draft, Program, RECORDER, RunId};
use crate::{Recorder, SavedOutputs};
use corsair::{SnapshotError, Time};
use serde_json::Value;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The times and the directory of checkpoints.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The interval between checkpoints.
    pub every: Option<Every>,
    /// Points of virtual time, in order.
    pub at: Vec<Time>,
    /// The directory that contains the checkpoints.
    pub directory: PathBuf,
}

/// The interval at which a run is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// An interval of the wall clock.
    Time(Duration),
    /// A number of bytes that the run has written to its files since the last checkpoint.
    Bytes(u64),
}

/// The program that saves a run. It provides data for checkpoints and reports their progress.
pub trait Checkpointing {
    /// Returns the identity of the program and its build.
    fn program(&self) -> Program;

    /// Returns the data that the program needs to resume the run. This method is called for each checkpoint.
    fn details(&self) -> Value;

    /// Returns additional files for a checkpoint with these outputs.
    fn files(&self, outputs: &SavedOutputs) -> Vec<(String, Vec<u8>)> {
        let _ = outputs;
        Vec::new()
    }

    /// True if a checkpoint was requested explicitly since the last call. This method is called about fifty times per
    /// second.
    fn is_asked(&self) -> bool {
        false
    }

    /// Reports an event of a checkpoint.
    fn report(&self, event: SaveEvent<'_>);
}

/// An event of a checkpoint.
#[derive(Debug)]
pub enum SaveEvent<'a> {
    /// A checkpoint is on disk.
    Saved {
        /// The directory of the checkpoint.
        place: PathBuf,
        /// The time of the saved state.
        time: Time,
        /// The size of the checkpoint in bytes.
        bytes: u64,
        /// The wall-clock time for which the run was paused.
        paused: Duration,
    },
    /// A checkpoint could not be written. The run continues.
    Failed(CheckpointError),
    /// The run ended at `end`, before these times, which were requested for checkpoints.
    Missed {
        /// The times that were not reached.
        times: &'a [Time],
        /// The last instant of the run.
        end: Time,
    },
}

/// The wall-clock time between two checks of whether a checkpoint is due.
const SLICE: Duration = Duration::from_millis(20);

/// Decides when a run is next saved.
pub struct Pace {
    every: Option<Every>,
    recorder: Recorder,
    /// The wall-clock time of the last checkpoint, and the bytes written to files by then.
    last: (Instant, u64),
}

impl Pace {
    /// Starts the interval now.
    pub fn new(every: Option<Every>, recorder: &Recorder) -> Pace {
        Pace {
            every,
            last: (Instant::now(), recorder.written()),
            recorder: recorder.clone(),
        }
    }

    /// Returns true if a checkpoint is due.
    pub fn is_due(&self) -> bool {
        let (at, written) = self.last;
        match self.every {
            Some(Every::Time(time)) => at.elapsed() >= time,
            Some(Every::Bytes(bytes)) => self.recorder.written() - written >= bytes,
            None => false,
        }
    }

    /// Starts the next interval, because the run has been saved.
    pub fn saved(&mut self) {
        self.last = (Instant::now(), self.recorder.written());
    }
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

/// A checkpoint that a thread is writing.
struct Writing {
    thread: JoinHandle<Result<PathBuf, CheckpointError>>,
    time: Time,
    bytes: u64,
    paused: Duration,
}

/// Runs a simulation to the end and saves checkpoints, one at a time.
pub(super) struct Saver<'a> {
    policy: &'a Policy,
    owner: &'a dyn Checkpointing,
    run: RunId,
    recorder: Recorder,
    pace: Pace,
    writing: Option<Writing>,
    _claim: Claim,
}

impl<'a> Saver<'a> {
    pub(super) fn new(
        policy: &'a Policy,
        owner: &'a dyn Checkpointing,
        run: RunId,
        recorder: Recorder,
    ) -> Result<Saver<'a>, CheckpointError> {
        Ok(Saver {
            _claim: Claim::new(&policy.directory, run)?,
            pace: Pace::new(policy.every, &recorder),
            policy,
            owner,
            run,
            recorder,
            writing: None,
        })
    }

    /// Runs to the end of the run, or to `until` if that is earlier. Returns true if the run is over.
    pub(super) fn drive<W: Workload>(
        &mut self,
        held: &mut PausedRun<W>,
        until: Option<Time>,
    ) -> Result<bool, DriveError<W::Error>> {
        let config = held.workload().config();
        let end = config.end.unwrap_or(Time::MAX);
        let mut slices = Slices::new(config.lookahead.unwrap_or(config.latency.min()));
        let stop = until.unwrap_or(Time::MAX);
        let now = held.simulation.now();
        let mut at = self.policy.at.iter().copied().peekable();
        while at.next_if(|&time| time <= now).is_some() {}
        let is_over = loop {
            let now = held.simulation.now();
            if now >= stop || now >= end {
                break now >= end;
            }
            let next = slices.end(now).min(stop).min(end);
            let next = at.peek().map_or(next, |&time| next.min(time));
            let simulation = &mut held.simulation;
            if !slices.take(|| simulation.run_until(next)) {
                break true;
            }
            // Slices without any wall-clock time may mean that no events are left.
            if slices.are_idle() && simulation.next().is_none() {
                break true;
            }
            let asked = at.next_if(|&time| time <= simulation.now()).is_some();
            let asked = asked | self.owner.is_asked();
            if asked || self.is_due() {
                self.save(held, asked)?;
            }
        };
        self.finish_writing();
        let missed: Vec<Time> = at.collect();
        if is_over && !missed.is_empty() {
            let end = held.simulation.now();
            let times = &missed;
            self.owner.report(SaveEvent::Missed { times, end });
        }
        Ok(is_over)
    }

    /// Returns true if the next checkpoint is due and no other is being written.
    fn is_due(&mut self) -> bool {
        let is_written = |writing: &Writing| writing.thread.is_finished();
        if self.writing.as_ref().is_some_and(is_written) {
            self.finish_writing();
        }
        self.writing.is_none() && self.pace.is_due()
    }

    fn save<W: Workload>(
        &mut self,
        held: &mut PausedRun<W>,
        asked: bool,
    ) -> Result<(), DriveError<W::Error>> {
        self.finish_writing();
        let begun = Instant::now();
        let simulation = &mut held.simulation;
        let time = simulation.now();
        let snapshot = match simulation.snapshot() {
            Err(SnapshotError::Over) => return Ok(()),
            other => other?,
        };
        let outputs = self.recorder.save(time)?;
        let paused = begun.elapsed();
        let bytes = snapshot.bytes();
        let mut files = checkpoint::files_of(snapshot)?;
        files.extend(self.owner.files(&outputs));
        files.push((RECORDER.to_owned(), outputs.state));
        files.extend(outputs.copies);
        let draft = Draft {
            program: self.owner.program(),
            run: self.run,
            time: time.as_nanos(),
            asked,
            details: self.owner.details(),
            files,
            outputs: outputs.files,
        };
        self.pace.saved();
        let directory = self.policy.directory.clone();
        let write = move || checkpoint::write(&directory, draft);
        let thread = std::thread::Builder::new().name("checkpoint".to_owned());
        let thread = thread.spawn(write).map_err(DriveError::Thread)?;
        self.writing = Some(Writing {
            thread,
            time,
            bytes,
            paused,
        });
        Ok(())
    }

    /// Waits for the checkpoint that is being written, and reports it.
    fn finish_writing(&mut self) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        let Writing {
            thread,
            time,
            bytes,
            paused,
        } = writing;
        let event = match thread.join() {
            Ok(Ok(place)) => SaveEvent::Saved {
                place,
                time,
                bytes,
                paused,
            },
            Ok(Err(error)) => SaveEvent::Failed(error),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        self.owner.report(event);
    }
}

impl Drop for Saver<'_> {
    fn drop(&mut self) {
        self.finish_writing();
    }
}

/// Divides a run into slices of virtual time, each of which takes about [`SLICE`] on the wall clock. A slice ends at
/// the end of a window, because a pause within a window costs as much as all events of the window.
struct Slices {
    window: u64,
    length: Duration,
    took: Duration,
}

impl Slices {
    fn new(lookahead: Duration) -> Slices {
        let nanos = u64::try_from(lookahead.as_nanos()).unwrap_or(u64::MAX);
        let window = 1 << nanos.max(1).ilog2();
        Slices {
            window,
            length: Duration::from_nanos(window),
            took: SLICE,
        }
    }

    /// Returns the last instant of the slice that begins at `now`.
    fn end(&self, now: Time) -> Time {
        Time::from_nanos(now.after(self.length).as_nanos() | (self.window - 1))
    }

    /// Runs a slice, and adapts the length of the next one.
    fn take(&mut self, run: impl FnOnce() -> bool) -> bool {
        let begun = Instant::now();
        let goes_on = run();
        self.took = begun.elapsed();
        if self.took < SLICE / 2 {
            self.length = self.length.saturating_mul(2);
        } else if self.took > SLICE * 2 {
            self.length = (self.length / 2).max(Duration::from_nanos(self.window));
        }
        goes_on
    }

    fn are_idle(&self) -> bool {
        self.took < SLICE / 20
    }
}
