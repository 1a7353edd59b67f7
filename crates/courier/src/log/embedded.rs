//! The log of a single node: a redb file, written by one thread.
//!
//! **Group commit.** The thread takes all commands that wait, writes them, and makes them durable
//! with one commit; those that come in meanwhile are the next group. So a lone command waits for
//! one `fsync`, and under load one `fsync` serves all that came in during the one before. A lone
//! command does not wait for others.
//!
//! A group is one row, so that it costs one insertion. The file holds what the index may not have on
//! disk yet. It consists of segments, tables of about 2^14 entries, because a table is dropped at
//! once where its rows would be removed one by one. The log has an identity, which the index knows:
//! another log, or an empty one, is not taken for the one that the index was made from.

use super::{Digest, Entry, Feed, Log, LogError, Reply};
use crate::command::Command;
use crate::database;
use crate::error::StartError;
use crate::guard::guard;
use crate::model::Millis;
use crate::seal::NEWEST;
use prometheus_client::metrics::counter::Counter;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use std::future::{Future, ready};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::JoinHandle;
use std::time::Duration;

/// The log's file in the directory of the data.
pub(crate) const FILE: &str = "log.redb";
/// The version of its layout.
const FORMAT: u32 = 2;
/// Format, identity, and the position after which it begins.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Bytes of a row's checksum.
const CHECK: usize = 4;
/// A segment has the rows that begin within 2^14 entries.
const SEGMENT_BITS: u32 = 14;
/// At most this many commands become durable together.
const LARGEST_GROUP: usize = 4096;
/// A row is full when it has this many bytes.
const LARGEST_ROW: usize = 1 << 20;
/// At most this many are under way.
const MOST_WAITING: usize = 1 << 16;
/// Pages that redb keeps in memory, in bytes: the log is written once and not read.
const CACHE: usize = 8 << 20;

/// See the [module](self).
pub(crate) struct Embedded {
    submissions: crossbeam_channel::Sender<Work>,
    state: Arc<LogState>,
}

enum Work {
    Submission(Submission),
    /// The last.
    Close,
}

struct Submission {
    command: Command,
    reply: Reply,
}

#[derive(Debug, Default)]
struct LogState {
    waiting: AtomicUsize,
    /// Entries up to here are not needed any more.
    forgotten: AtomicU64,
    durable: AtomicU64,
    failed: AtomicBool,
}

/// A log that was opened, before its thread runs.
pub(crate) struct Prepared {
    database: Database,
    identity: u64,
    /// What the index does not know yet.
    left: Vec<Entry>,
    last: u64,
    oldest: u64,
    forgotten: u64,
}

impl Prepared {
    /// Opens the log in this directory, or one in memory, for an index that has come to `after`.
    ///
    /// # Errors
    /// If it cannot be read, or lacks entries.
    pub fn open(dir: Option<&Path>, after: u64) -> Result<Prepared, StartError> {
        let (database, path) = database::open(dir, FILE, CACHE)?;
        let failed = |error| StartError::database(&path, error);
        let (format, identity) = guard(|| identity(&database)).map_err(failed)?;
        if format != FORMAT {
            return Err(StartError::Format {
                path,
                found: format,
                wanted: FORMAT,
            });
        }
        let Segments {
            entries,
            oldest,
            last,
        } = guard(|| read(&database, after)).map_err(failed)?;
        Ok(Prepared {
            database,
            identity,
            left: entries,
            last,
            oldest,
            forgotten: after,
        })
    }

    /// A number that another log does not have.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The position of its last entry; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Starts the log. Feeds what the index does not know yet, then what is submitted, and counts the
    /// groups that become durable. The thread ends when the log is closed or dropped.
    pub fn start(
        self,
        feed: Feed,
        groups: Counter,
    ) -> Result<(Embedded, JoinHandle<()>), StartError> {
        let Prepared {
            database,
            left,
            last,
            oldest,
            forgotten,
            ..
        } = self;
        let last = last.max(forgotten);
        let (submissions, submitted) = crossbeam_channel::unbounded();
        let state = Arc::new(LogState {
            durable: AtomicU64::new(last),
            forgotten: AtomicU64::new(forgotten),
            ..LogState::default()
        });
        let writer = Writer {
            database,
            state: state.clone(),
            feed,
            groups,
            last,
            oldest,
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

impl Log for Embedded {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        if self.state.waiting.fetch_add(1, Relaxed) >= MOST_WAITING {
            self.state.waiting.fetch_sub(1, Relaxed);
            return Err(LogError::Busy(MOST_WAITING));
        }
        let submission = Submission { command, reply };
        let sent = self.submissions.send(Work::Submission(submission));
        sent.map_err(|_| match self.state.failed.load(Relaxed) {
            true => LogError::Failed("it has failed, and is opened anew".to_owned()),
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
        // If the thread has ended, it is closed.
        let _ = self.submissions.send(Work::Close);
    }
}

/// The thread that writes.
struct Writer {
    database: Database,
    state: Arc<LogState>,
    feed: Feed,
    groups: Counter,
    last: u64,
    /// The oldest segment that may be there.
    oldest: u64,
}

impl Writer {
    fn run(mut self, submitted: &crossbeam_channel::Receiver<Work>) {
        let mut bytes = Vec::new();
        let mut open = true;
        while open {
            let mut group = Vec::new();
            let first = submitted.recv().ok();
            // On a busy machine those who are about to submit do so now; on an idle one this costs
            // nothing.
            std::thread::yield_now();
            for work in first.into_iter().chain(submitted.try_iter()) {
                match work {
                    Work::Submission(submission) => group.push(submission),
                    Work::Close => open = false,
                }
                if !open || group.len() == LARGEST_GROUP {
                    break;
                }
            }
            if group.is_empty() {
                return;
            }
            let taken = group.len();
            let written = guard(|| self.write(&group, &mut bytes));
            self.state.waiting.fetch_sub(taken, Relaxed);
            if let Err(error) = written {
                return self.fail(&error, group, submitted);
            }
            let first = self.last + 1;
            self.last += taken as u64;
            self.state.durable.store(self.last, Release);
            self.groups.inc();
            let taken = Millis::now();
            let entries = (first..).zip(group).map(|(position, submission)| Entry {
                position,
                taken: submission.command.time().unwrap_or(taken),
                command: Some(submission.command),
                digest: Digest::default(),
                reply: Some(submission.reply),
            });
            if self.feed.send(entries.collect()).is_err() {
                return;
            }
        }
    }

    /// The disk has refused a group. What became durable of it is known only when the file is opened
    /// anew, so nothing is appended after it.
    fn fail(
        &self,
        error: &redb::Error,
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
    fn write(&mut self, group: &[Submission], bytes: &mut Vec<u8>) -> Result<(), redb::Error> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(Durability::Immediate)
            .map_err(redb::Error::from)?;
        let mut next = self.last + 1;
        let mut group = group.iter().peekable();
        while group.peek().is_some() {
            let first = next;
            bytes.clear();
            bytes.extend_from_slice(&[0; CHECK]);
            while bytes.len() < LARGEST_ROW
                && let Some(submission) = group.next()
            {
                *bytes = postcard::to_extend(&submission.command, std::mem::take(bytes))
                    .map_err(|error| redb::Error::Corrupted(error.to_string()))?;
                next += 1;
            }
            let check = checksum(first, &bytes[CHECK..]);
            bytes[..CHECK].copy_from_slice(&check);
            let name = segment_name(first >> SEGMENT_BITS);
            txn.open_table(segment(&name))?
                .insert(first, bytes.as_slice())?;
        }
        // Of those that are not needed, whole segments go.
        let needed = needed(self.state.forgotten.load(Acquire));
        while self.oldest < needed {
            txn.delete_table(segment(&segment_name(self.oldest)))?;
            self.oldest += 1;
        }
        txn.commit()?;
        Ok(())
    }
}

/// The first segment that may hold something after this position: a row lies in the segment of its
/// first entry.
fn needed(position: u64) -> u64 {
    (position + 1).saturating_sub(LARGEST_GROUP as u64) >> SEGMENT_BITS
}

fn segment_name(number: u64) -> String {
    format!("log_{number}")
}

fn segment(name: &str) -> TableDefinition<'_, u64, &'static [u8]> {
    TableDefinition::new(name)
}

/// What a log holds.
struct Segments {
    /// After a position, in order.
    entries: Vec<Entry>,
    oldest: u64,
    /// The position of the last entry.
    last: u64,
}

/// The checksum of a row, which also says at which position it begins.
fn checksum(first: u64, row: &[u8]) -> [u8; CHECK] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(row);
    hasher.finalize().to_le_bytes()
}

/// Format and identity of the log; a new log gets its own.
fn identity(database: &Database) -> Result<(u32, u64), redb::Error> {
    let txn = database.begin_write()?;
    let is_old = txn.list_tables()?.any(|table| table.name() != META.name());
    let mut meta = txn.open_table(META)?;
    let known = meta.get("format")?.map(|row| row.value());
    let (format, identity) = match known {
        Some(format) => (format, meta.get("identity")?.map_or(0, |row| row.value())),
        // The first format had no such table.
        None if is_old => (1, 0),
        None => {
            let mut random = [0; 8];
            getrandom::fill(&mut random)
                .map_err(|error| redb::Error::Corrupted(error.to_string()))?;
            let identity = u64::from_le_bytes(random).max(1);
            meta.insert("format", u64::from(FORMAT))?;
            meta.insert("identity", identity)?;
            (u64::from(FORMAT), identity)
        }
    };
    drop(meta);
    match is_old && known.is_none() {
        true => txn.abort()?,
        false => txn.commit()?,
    }
    Ok((u32::try_from(format).unwrap_or(u32::MAX), identity))
}

/// Whether there is a log in this directory.
pub(crate) fn is_in(dir: &Path) -> bool {
    dir.join(FILE).exists()
}

/// Makes a log of this identity in a directory that has none, which goes on after a position.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn begin(dir: &Path, log: u64, after: u64) -> Result<(), StartError> {
    let (database, path) = database::open(Some(dir), FILE, CACHE)?;
    let begun = guard(|| {
        let txn = database.begin_write()?;
        {
            let mut meta = txn.open_table(META)?;
            meta.insert("format", u64::from(FORMAT))?;
            meta.insert("identity", log)?;
            meta.insert("base", after)?;
        }
        txn.commit()?;
        Ok(())
    });
    begun.map_err(|error| StartError::database(&path, error))
}

/// What the log holds after this position, and how far it goes.
fn read(database: &Database, after: u64) -> Result<Segments, redb::Error> {
    let txn = database.begin_read()?;
    let base = txn.open_table(META)?.get("base")?;
    let tables = txn.list_tables()?;
    let mut segments: Vec<u64> = tables
        .filter_map(|table| table.name().strip_prefix("log_")?.parse().ok())
        .collect();
    segments.sort_unstable();
    let mut entries = Vec::new();
    let mut expected = after + 1;
    let mut last = base.map_or(0, |row| row.value());
    let oldest = segments.first().copied().unwrap_or(needed(after));
    for number in segments
        .into_iter()
        .filter(|&number| number >= needed(after))
    {
        let name = segment_name(number);
        let table = txn.open_table(segment(&name))?;
        for row in table.iter()? {
            let (first, bytes) = row?;
            let mut position = first.value();
            if position > expected {
                return Err(redb::Error::Corrupted(format!(
                    "the log goes on at {position} where {expected} was to come"
                )));
            }
            let damaged =
                || redb::Error::Corrupted(format!("entry {position} of the log is damaged"));
            let (check, mut rest) = bytes.value().split_at_checked(CHECK).ok_or_else(damaged)?;
            if checksum(position, rest) != *check {
                return Err(damaged());
            }
            while !rest.is_empty() {
                let (command, more) =
                    postcard::take_from_bytes::<Command>(rest).map_err(|error| {
                        redb::Error::Corrupted(format!("entry {position} of the log: {error}"))
                    })?;
                rest = more;
                if position == expected {
                    entries.push(Entry {
                        position,
                        taken: command.time().unwrap_or_default(),
                        command: Some(command),
                        digest: Digest::default(),
                        reply: None,
                    });
                    expected += 1;
                }
                last = position;
                position += 1;
            }
        }
    }
    Ok(Segments {
        entries,
        oldest,
        last,
    })
}

#[cfg(test)]
mod tests;
