//! Checkpoints of a run over several processes: every process writes the parts of its workers, and the first one completes
//! the checkpoint when all parts are written.

use crate::console::complain;
use crate::exit_code;
use crate::options::Checkpoints;
use anyhow::{Result, anyhow};
use corsair::Time;
use corsair::cluster::{SavedPart, Saving};
use corsair_cluster::{Mailbox, Topic};
use corsair_observe::checkpoint::{
    self as stored, CheckpointError, Draft, HEAD, RECORDER, RunId, SavedFile, Staging, part_name,
};
use corsair_observe::run::{Checkpointing, Pace, Policy, SaveEvent};
use corsair_observe::{Recorder, SavedOutputs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The interval between two checks of whether a checkpoint is due.
const LOOK: Duration = Duration::from_millis(20);

/// The report of a process about its part of a checkpoint, sent to the first process.
#[derive(Debug, Serialize, Deserialize)]
struct WrittenFiles {
    number: u64,
    /// True if the checkpoint was requested explicitly in this process.
    asked: bool,
    /// The files that the process has written, or the reason for its failure.
    files: Result<Vec<(String, u64, u32)>, String>,
}

/// A message to the thread that writes.
enum Event {
    /// All workers of this process have saved their parts.
    Saved(Set),
    /// A process has written its files, or has failed to write them.
    Written(usize, WrittenFiles),
}

/// The saved parts of this process's workers, and in the first process also the head of the snapshot.
struct Set {
    number: u64,
    time: Time,
    asked: bool,
    paused: Duration,
    parts: Vec<(usize, Vec<u8>)>,
    head: Option<Vec<u8>>,
    outputs: SavedOutputs,
}

/// The parts saved by workers so far.
#[derive(Default)]
struct Pausing {
    parts: Vec<SavedPart>,
    since: Option<Instant>,
}

/// Saves the part of this process; its workers report to this saver.
pub struct PartSaver<'a> {
    writing: &'a Writing<'a>,
    workers: usize,
    pausing: Mutex<Pausing>,
    shared: Arc<SavingState>,
    events: Mutex<Sender<Event>>,
}

struct SavingState {
    /// The request that [`Saving::wanted`] returns.
    wanted: AtomicU64,
    /// The number of checkpoints that this process has saved.
    number: AtomicU64,
    /// True if the next checkpoint was requested explicitly.
    asked: AtomicBool,
    /// True while a checkpoint is being written.
    is_writing: AtomicBool,
    is_over: AtomicBool,
}

/// The directory and contents of a process's checkpoints.
pub struct Writing<'a> {
    pub policy: &'a Policy,
    pub owner: &'a (dyn Checkpointing + Sync),
    pub run: RunId,
    pub recorder: Recorder,
    pub process: usize,
    pub processes: usize,
    /// A number that is equal in all processes of this run.
    pub session: u64,
}

/// The threads that write checkpoints. They live longer than the run of this process.
pub struct Writer<'scope, 'env> {
    writing: &'env Writing<'env>,
    shared: Arc<SavingState>,
    events: Sender<Event>,
    scope: &'scope Scope<'scope, 'env>,
    files: ScopedJoinHandle<'scope, ()>,
    over: Over,
}

/// A guard that ends the watching thread when the guard is dropped.
struct Over(Arc<SavingState>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl<'scope, 'env> Writer<'scope, 'env> {
    /// Starts to watch the clock, the files and the signal. Reports go to the first process through `mailbox`.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(
        scope: &'scope Scope<'scope, 'env>,
        writing: &'env Writing<'env>,
        mailbox: Mailbox,
    ) -> io::Result<Writer<'scope, 'env>> {
        let shared = Arc::new(SavingState {
            wanted: AtomicU64::new(0),
            number: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            is_writing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let (events, received) = channel();
        let files = Files {
            writing,
            shared: Arc::clone(&shared),
        };
        let watched = Arc::clone(&shared);
        let write = move || files.write_all(&received, &mailbox);
        let writer = Writer {
            writing,
            shared,
            events,
            scope,
            files: named("checkpoint").spawn_scoped(scope, write)?,
            over: Over(Arc::clone(&watched)),
        };
        named("checkpoints").spawn_scoped(scope, move || watch(&watched, writing))?;
        Ok(writer)
    }

    /// Receives the reports of the other processes, in the first process.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn listen(&self, reports: Receiver<(usize, Vec<u8>)>) -> io::Result<()> {
        let events = self.events.clone();
        let listen = move || {
            for (from, report) in reports {
                let files = serde_json::from_slice(&report).unwrap_or_else(|error| WrittenFiles {
                    number: 0,
                    asked: false,
                    files: Err(format!(
                        "the report of process {from} cannot be read: {error}"
                    )),
                });
                // The writing thread outlives this thread, so the send cannot fail.
                let _ = events.send(Event::Written(from, files));
            }
        };
        named("reports").spawn_scoped(self.scope, listen)?;
        Ok(())
    }

    /// Returns the saver of the workers of this process.
    pub fn part_saver(&self, workers: usize) -> PartSaver<'env> {
        PartSaver {
            writing: self.writing,
            workers,
            pausing: Mutex::default(),
            shared: Arc::clone(&self.shared),
            events: Mutex::new(self.events.clone()),
        }
    }

    /// Stops saving in this process, and waits until everything is written.
    pub fn finish(self) {
        drop(self.over);
        drop(self.events);
        if let Err(panic) = self.files.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Requests the next checkpoint when it is due.
fn watch(shared: &SavingState, writing: &Writing<'_>) {
    // Only the first process watches the clock and the files.
    let every = writing.policy.every.filter(|_| writing.process == 0);
    let mut pace = Pace::new(every, &writing.recorder);
    let mut seen = 0;
    while !shared.is_over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        let number = shared.number.load(Ordering::Relaxed);
        if number != seen {
            seen = number;
            pace.saved();
        }
        let is_asked = writing.owner.is_asked();
        let is_due = pace.is_due() && !shared.is_writing.load(Ordering::Relaxed);
        if is_asked {
            shared.asked.store(true, Ordering::Relaxed);
        }
        if is_asked || is_due {
            shared.wanted.store(number + 1, Ordering::Relaxed);
        }
    }
}

impl Saving for PartSaver<'_> {
    fn wanted(&self) -> u64 {
        self.shared.wanted.load(Ordering::Relaxed)
    }

    fn times(&self) -> &[Time] {
        &self.writing.policy.at
    }

    fn save(&self, saved: SavedPart) {
        let lock = || self.pausing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pausing = lock();
        let since = *pausing.since.get_or_insert_with(Instant::now);
        pausing.parts.push(saved);
        // The other workers of this process wait for the last worker, so that no record is made in between.
        if pausing.parts.len() < self.workers {
            return;
        }
        let parts = std::mem::take(&mut *pausing).parts;
        drop(pausing);
        if let Err(error) = self.hand_over(parts, since) {
            complain(format_args!("the run cannot be saved: {error:#}"));
            // Exiting also ends the other processes.
            std::process::exit(exit_code::REFUSED.into());
        }
    }
}

impl PartSaver<'_> {
    fn hand_over(&self, saved: Vec<SavedPart>, since: Instant) -> Result<()> {
        let first = &saved[0];
        let (number, time) = (first.number, first.time);
        let asked = first.is_at_its_time || self.shared.asked.swap(false, Ordering::Relaxed);
        let outputs = self.writing.recorder.save(time)?;
        let mut head = None;
        let mut parts = Vec::new();
        for part in saved {
            head = head.or(part.head);
            parts.push((part.worker, part.part?));
        }
        parts.sort_by_key(|(worker, _)| *worker);
        self.shared.is_writing.store(true, Ordering::Relaxed);
        self.shared.number.store(number, Ordering::Relaxed);
        let set = Set {
            number,
            time,
            asked,
            paused: since.elapsed(),
            parts,
            head,
            outputs,
        };
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = events.send(Event::Saved(set));
        sent.map_err(|_| anyhow!("the thread that writes checkpoints has failed"))
    }
}

/// Writes the files of a process.
struct Files<'a> {
    writing: &'a Writing<'a>,
    shared: Arc<SavingState>,
}

/// A checkpoint that is not complete yet, in the first process.
#[derive(Default)]
struct Open {
    own: Option<Set>,
    files: BTreeMap<usize, Vec<SavedFile>>,
    failed: Option<String>,
    /// True if any process requested the checkpoint explicitly.
    asked: bool,
}

impl Files<'_> {
    fn write_all(&self, events: &Receiver<Event>, mailbox: &Mailbox) {
        let mut open: BTreeMap<u64, Open> = BTreeMap::new();
        for event in events {
            let (from, written) = match event {
                Event::Saved(mut set) => {
                    let number = set.number;
                    let files = self.write(&mut set).map_err(|error| error.to_string());
                    let asked = set.asked;
                    let written = WrittenFiles {
                        number,
                        asked,
                        files,
                    };
                    if self.writing.process > 0 {
                        self.shared.is_writing.store(false, Ordering::Relaxed);
                        let report = serde_json::to_vec(&written).unwrap_or_default();
                        mailbox.post(Topic::Checkpoints, &report);
                        continue;
                    }
                    open.entry(number).or_default().own = Some(set);
                    (0, written)
                }
                Event::Written(from, written) => (from, written),
            };
            let WrittenFiles {
                number,
                asked,
                files,
            } = written;
            let one = open.entry(number).or_default();
            one.asked |= asked;
            let files = match files {
                Ok(files) => files,
                Err(why) => {
                    one.failed.get_or_insert(why);
                    Vec::new()
                }
            };
            let file = |(name, bytes, crc32)| SavedFile { name, bytes, crc32 };
            one.files
                .insert(from, files.into_iter().map(file).collect());
            let all = open
                .get(&number)
                .is_some_and(|one| one.files.len() == self.writing.processes && one.own.is_some());
            if all && let Some(one) = open.remove(&number) {
                self.complete(number, one);
                self.shared
                    .is_writing
                    .store(!open.is_empty(), Ordering::Relaxed);
            }
        }
        // Checkpoints for which some process has not written its files are removed.
        for number in open.into_keys() {
            self.staging(number).remove();
        }
    }

    fn staging(&self, number: u64) -> Staging {
        let Writing {
            policy, session, ..
        } = self.writing;
        Staging::new(&policy.directory, &format!("{session:016x}-{number}"))
    }

    /// Writes the files of this process into the temporary directory of the checkpoint.
    fn write(&self, set: &mut Set) -> Result<Vec<(String, u64, u32)>> {
        let staging = self.staging(set.number);
        staging.create()?;
        let head = set.head.take().map(|head| (HEAD.to_owned(), head));
        let part = |(worker, part)| (part_name(worker), part);
        let parts = std::mem::take(&mut set.parts).into_iter().map(part);
        // The process that has the head writes the recorder's state.
        let is_first = head.is_some();
        let outputs = &mut set.outputs;
        let state = is_first.then(|| (RECORDER.to_owned(), std::mem::take(&mut outputs.state)));
        let copies = std::mem::take(&mut outputs.copies);
        let mut files = Vec::new();
        for (name, contents) in head.into_iter().chain(parts).chain(state).chain(copies) {
            let SavedFile { name, bytes, crc32 } = staging.write(name, &contents)?;
            files.push((name, bytes, crc32));
        }
        Ok(files)
    }

    /// Completes a checkpoint for which all processes have written their files.
    fn complete(&self, number: u64, one: Open) {
        let Open {
            own,
            files,
            failed,
            asked,
        } = one;
        let Some(set) = own else { return };
        let files: Vec<SavedFile> = files.into_values().flatten().collect();
        let size: u64 = files.iter().map(|file| file.bytes).sum();
        let owner = self.writing.owner;
        let draft = Draft {
            program: owner.program(),
            run: self.writing.run,
            time: set.time.as_nanos(),
            asked,
            details: owner.details(),
            files: Vec::new(),
            outputs: set.outputs.files,
        };
        let staging = self.staging(number);
        let written = match failed {
            Some(why) => Err(CheckpointError::Part(why)),
            None => staging.complete(files, draft),
        };
        owner.report(match written {
            Ok(place) => SaveEvent::Saved {
                place,
                time: set.time,
                bytes: size,
                paused: set.paused,
            },
            Err(error) => {
                staging.remove();
                SaveEvent::Failed(error)
            }
        });
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

/// Finds the newest checkpoint of a run.
#[derive(Clone, Debug)]
pub struct NewestCheckpoint {
    directory: PathBuf,
    /// The newest checkpoint that existed before the run.
    before: Option<PathBuf>,
    /// The checkpoint from which the run was resumed.
    from: Option<PathBuf>,
}

impl NewestCheckpoint {
    /// Creates the record for a run that starts now.
    pub fn since_now(checkpoints: &Checkpoints) -> NewestCheckpoint {
        NewestCheckpoint {
            before: stored::find(&checkpoints.directory).ok(),
            directory: checkpoints.directory.clone(),
            from: checkpoints.from.as_ref().map(|from| from.directory.clone()),
        }
    }

    /// Returns the end of the sentence about a failed run: the checkpoint from which it can be resumed.
    pub fn advice(&self) -> String {
        let found = stored::find(&self.directory).ok();
        let found = found.filter(|found| Some(found) != self.before.as_ref());
        match found.or_else(|| self.from.clone()) {
            Some(place) => format!(
                "; the last checkpoint is {}, resume from it with `corsair resume {0}`",
                place.display()
            ),
            None => "; nothing was saved before".to_owned(),
        }
    }
}
