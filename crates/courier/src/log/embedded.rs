//! The log of a single node: files that one thread appends to.
//!
//! **Group commit.** The thread takes all waiting commands, writes them, and makes them durable with one `fdatasync`;
//! commands that arrive during the write form the next group. So a single command waits for one sync and not for other
//! commands. Under load one sync serves all commands that arrived during the previous sync and a short pause.
//!
//! A group is one record of a [`Journal`], which holds the entries that the index may not have on disk yet. The log has
//! an identity, and the index stores it. So another log, or an empty one, is not mistaken for the log of the index. The
//! index is opened first, and its lock excludes other processes.

mod before;

use super::{Entry, Feed, Log, LogError, Reply};
use crate::command::Command;
use crate::error::StartError;
use crate::model::Millis;
use crate::seal::NEWEST;
use before::LegacyLog;
use corsair_journal::{Journal, JournalError, Record, Recovery, Tail};
use prometheus_client::metrics::counter::Counter;
use std::future::{Future, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the log's directory in the data directory.
const DIRECTORY: &str = "log";
/// The maximum number of commands that become durable in one group.
const LARGEST_GROUP: usize = 4096;
/// The number of bytes at which a group is complete.
const LARGEST_RECORD: usize = 1 << 20;
/// The size of a group after which the next one waits for [`PAUSE`], so that it is large, too. A sync costs as much
/// processor time as four POSTs.
const LARGE_GROUP: usize = 8;
const PAUSE: Duration = Duration::from_micros(60);
/// The maximum number of commands in progress.
const MOST_WAITING: usize = 1 << 16;

/// The log of a single node. See the [module](self).
pub(crate) struct Embedded {
    submissions: crossbeam_channel::Sender<Work>,
    state: Arc<LogState>,
}

enum Work {
    Submission(Submission),
    /// Ends the thread after all earlier commands.
    Close,
}

struct Submission {
    command: Command,
    reply: Reply,
}

#[derive(Debug, Default)]
struct LogState {
    waiting: AtomicUsize,
    /// The position up to which entries are no longer needed.
    forgotten: AtomicU64,
    durable: AtomicU64,
    failed: AtomicBool,
}

/// A log that was opened. Its thread is not running, and nothing has been written.
pub(crate) struct OpenedLog {
    place: LogSource,
    identity: u64,
    /// Entries that the index does not have yet.
    left: Vec<Entry>,
    last: u64,
    forgotten: u64,
}

/// The source of a log.
enum LogSource {
    Memory,
    Files(PathBuf, Recovery),
    /// The data directory has no log in the current format.
    Nothing(PathBuf),
}

impl OpenedLog {
    /// Opens the log in this directory, or one in memory, for an index that has applied everything up to `after`.
    ///
    /// # Errors
    /// If the log cannot be read, or lacks entries.
    pub fn open(data: Option<&Path>, after: u64) -> Result<OpenedLog, StartError> {
        let Some(data) = data else {
            return Ok(OpenedLog::empty(
                LogSource::Memory,
                random_identity()?,
                after,
            ));
        };
        let directory = data.join(DIRECTORY);
        let mut left = Vec::new();
        let read = |first, count, commands: &[u8]| decode(first, count, commands, after, &mut left);
        if let Some(found) = Recovery::read(&directory, after, Tail::Synced, read)? {
            return Ok(OpenedLog {
                identity: found.identity(),
                last: found.next() - 1,
                left,
                forgotten: after,
                place: LogSource::Files(data.to_owned(), found),
            });
        }
        let place = LogSource::Nothing(data.to_owned());
        match LegacyLog::read(data, after)? {
            None => Ok(OpenedLog::empty(place, random_identity()?, after)),
            Some(before) => {
                let commands = before.commands.into_iter();
                let left = (after + 1..).zip(commands);
                Ok(OpenedLog {
                    place,
                    identity: before.identity,
                    left: left.map(|(at, command)| entry(at, command)).collect(),
                    last: before.last,
                    forgotten: after,
                })
            }
        }
    }

    /// Creates an empty log.
    fn empty(place: LogSource, identity: u64, after: u64) -> OpenedLog {
        OpenedLog {
            place,
            identity,
            left: Vec::new(),
            last: after,
            forgotten: after,
        }
    }

    /// Returns the number that identifies the log.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the position of the last entry of the log. If the log has no entries, returns the position before the
    /// first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the entries that the index does not have yet.
    pub fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.left.into_iter()
    }

    /// Starts the thread of the log. The thread sends the entries that the index does not have yet to the feed, and
    /// then the submitted entries. It counts the groups that become durable. The thread ends when the log is closed or
    /// dropped.
    pub fn start(
        self,
        feed: Feed,
        groups: Counter,
    ) -> Result<(Embedded, JoinHandle<()>), StartError> {
        let OpenedLog {
            place,
            identity,
            left,
            last,
            forgotten,
        } = self;
        let files = match place {
            LogSource::Memory => None,
            LogSource::Files(data, found) => {
                let files = found.open(&data.join(DIRECTORY))?;
                before::remove(&data, identity);
                Some(files)
            }
            LogSource::Nothing(data) => {
                let directory = data.join(DIRECTORY);
                let records = encode(&left, identity).map_err(JournalError::at(&directory))?;
                let files = Journal::create(&directory, identity, forgotten + 1, &records)?;
                before::remove(&data, identity);
                Some(files)
            }
        };
        let (submissions, submitted) = crossbeam_channel::unbounded();
        let state = Arc::new(LogState {
            durable: AtomicU64::new(last),
            forgotten: AtomicU64::new(forgotten),
            ..LogState::default()
        });
        let writer = Writer {
            files,
            state: state.clone(),
            feed,
            groups,
            last,
        };
        let thread = std::thread::Builder::new()
            .name("courier log".to_owned())
            .spawn(move || {
                if !left.is_empty() && writer.feed.send(left).is_err() {
                    return;
                }
                writer.run(&submitted);
            })
            .map_err(StartError::Thread)?;
        let log = Embedded { submissions, state };
        Ok((log, thread))
    }
}

/// A bit that is set in the identity of an embedded log, and clear in the identity of a cluster.
/// Logs of earlier versions may lack it.
const OWN: u64 = 1 << 63;

/// True if the identity certainly belongs to an embedded log.
pub(crate) fn is_identity(identity: u64) -> bool {
    identity & OWN != 0
}

/// Returns a random identity for an embedded log.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn random_identity() -> Result<u64, StartError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        StartError::Setting(format!("the system cannot provide random numbers: {error}"))
    })?;
    Ok(u64::from_le_bytes(random) | OWN)
}

/// Decodes the commands of a record, and adds the entries after a position to `entries`.
fn decode(
    first: u64,
    count: u32,
    mut commands: &[u8],
    after: u64,
    entries: &mut Vec<Entry>,
) -> Result<(), String> {
    for position in first..first + u64::from(count) {
        let (command, rest) = postcard::take_from_bytes::<Command>(commands)
            .map_err(|error| format!("entry {position} cannot be read: {error}"))?;
        commands = rest;
        if position > after {
            entries.push(entry(position, command));
        }
    }
    match commands {
        [] => Ok(()),
        _ => Err(format!(
            "unexpected bytes follow the {count} entries from {first} on"
        )),
    }
}

/// Returns an entry that was durable before this process began.
fn entry(position: u64, command: Command) -> Entry {
    Entry {
        position,
        taken: command.time().unwrap_or_default(),
        command: Some(command),
        reply: None,
    }
}

/// Returns the records that contain these entries.
fn encode(entries: &[Entry], identity: u64) -> io::Result<Vec<u8>> {
    let (mut records, mut record) = (Vec::new(), Record::default());
    for some in entries.chunks(LARGEST_GROUP) {
        record.begin();
        for command in some.iter().filter_map(|entry| entry.command.as_ref()) {
            add(command, &mut record)?;
        }
        records.extend_from_slice(record.finish(identity, some[0].position, some.len() as u32));
    }
    Ok(records)
}

/// Appends a command to a record.
fn add(command: &Command, record: &mut Record) -> io::Result<()> {
    let bytes = record.bytes();
    *bytes = postcard::to_extend(command, std::mem::take(bytes)).map_err(io::Error::other)?;
    Ok(())
}

impl Log for Embedded {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        if self.state.waiting.fetch_add(1, Relaxed) >= MOST_WAITING {
            self.state.waiting.fetch_sub(1, Relaxed);
            return Err(LogError::Busy(MOST_WAITING));
        }
        let submission = Submission { command, reply };
        let sent = self.submissions.send(Work::Submission(submission));
        sent.map_err(|_| match self.state.failed.load(Relaxed) {
            true => {
                LogError::Failed("the disk has failed, and the log is being reopened".to_owned())
            }
            false => LogError::Closed,
        })
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>> {
        Box::pin(ready(Ok(self.state.durable.load(Acquire))))
    }

    fn forget(&self, position: u64) {
        self.state.forgotten.fetch_max(position, Release);
    }

    fn patience(&self) -> Option<Duration> {
        None
    }

    fn reads(&self) -> u8 {
        NEWEST
    }

    fn is_up(&self) -> bool {
        !self.state.failed.load(Relaxed)
    }

    fn has_stopped(&self) -> bool {
        false
    }

    fn close(&self) {
        // If the send fails, the thread has ended and the log is closed.
        let _ = self.submissions.send(Work::Close);
    }
}

/// The thread that writes.
struct Writer {
    /// The files; `None` if the log is in memory.
    files: Option<Journal>,
    state: Arc<LogState>,
    feed: Feed,
    groups: Counter,
    last: u64,
}

impl Writer {
    fn run(mut self, submitted: &crossbeam_channel::Receiver<Work>) {
        let mut record = Record::default();
        let (mut open, mut is_busy) = (true, false);
        while open {
            let mut group = Vec::new();
            let first = submitted.recv().ok();
            if is_busy {
                std::thread::sleep(PAUSE);
            }
            record.begin();
            let mut encoded = Ok(());
            for work in first.into_iter().chain(submitted.try_iter()) {
                match work {
                    Work::Submission(submission) => {
                        if self.files.is_some() {
                            encoded = add(&submission.command, &mut record);
                        }
                        group.push(submission);
                    }
                    Work::Close => open = false,
                }
                let is_full = group.len() == LARGEST_GROUP || record.len() >= LARGEST_RECORD;
                if !open || is_full || encoded.is_err() {
                    break;
                }
            }
            if group.is_empty() {
                break;
            }
            let first = self.last + 1;
            let taken = group.len();
            is_busy = taken >= LARGE_GROUP;
            let written = encoded.and_then(|()| self.write(&mut record, first, taken as u32));
            self.state.waiting.fetch_sub(taken, Relaxed);
            if let Err(error) = written {
                return self.fail(&error, group, submitted);
            }
            self.last += taken as u64;
            self.state.durable.store(self.last, Release);
            self.groups.inc();
            let taken = Millis::now();
            let entries = (first..).zip(group).map(|(position, submission)| Entry {
                position,
                taken: submission.command.time().unwrap_or(taken),
                command: Some(submission.command),
                reply: Some(submission.reply),
            });
            if self.feed.send(entries.collect()).is_err() {
                return;
            }
        }
        if let Some(files) = &mut self.files {
            files.trim();
        }
    }

    /// Handles a group that the disk has refused. Which part of it is durable is known only when the files are
    /// reopened, so nothing is appended after it.
    fn fail(
        &self,
        error: &io::Error,
        group: Vec<Submission>,
        submitted: &crossbeam_channel::Receiver<Work>,
    ) {
        self.state.failed.store(true, Relaxed);
        tracing::error!("the log cannot be written: {error}");
        let failed = LogError::Failed(error.to_string());
        let waiting = submitted.try_iter().filter_map(|work| match work {
            Work::Submission(submission) => Some(submission),
            Work::Close => None,
        });
        for submission in group.into_iter().chain(waiting) {
            let _ = submission.reply.send(Err(failed.clone()));
        }
    }

    /// Makes a group durable.
    fn write(&mut self, record: &mut Record, first: u64, count: u32) -> io::Result<()> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.append(record, first, count)?;
        files.sync()?;
        files.discard_through(self.state.forgotten.load(Acquire));
        Ok(())
    }
}

/// True if there is a log in the data directory.
pub(crate) fn is_in(data: &Path) -> bool {
    corsair_journal::exists(&data.join(DIRECTORY)) || data.join(before::FILE).exists()
}

/// Creates a log with this identity in a directory that has none, which continues after a position.
///
/// # Errors
/// If the log cannot be written.
pub(crate) fn begin(data: &Path, identity: u64, after: u64) -> Result<(), StartError> {
    Journal::create(&data.join(DIRECTORY), identity, after + 1, &[])?;
    Ok(())
}

/// Removes a log that was [begun](begin).
pub(crate) fn remove(data: &Path) {
    let _ = std::fs::remove_dir_all(data.join(DIRECTORY));
}

#[cfg(test)]
mod tests;
