//! The log of a single node: a redb file, written by one thread.
//!
//! **Group commit.** The thread takes all commands that wait, writes them, and makes them durable
//! with one commit; those that come in meanwhile are the next group. So a lone command waits for
//! one `fsync`, and under load one `fsync` serves all that came in during the one before. Nobody
//! waits for company.
//!
//! A group is one row, so that it costs one insertion. The file holds what the index may not have on
//! disk yet. It consists of segments, tables of about 2^14 entries, because a table is dropped at
//! once where its rows would be removed one by one.

use super::{Entry, Feed, Log, LogError, Reply};
use crate::command::Command;
use crate::database;
use crate::error::StartError;
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
const FILE: &str = "log.redb";
/// A segment has the rows that begin within 2^14 entries.
const SEGMENT_BITS: u32 = 14;
/// At most so many commands become durable together.
const LARGEST_GROUP: usize = 4096;
/// A row is full when it has so many bytes.
const LARGEST_ROW: usize = 1 << 20;
/// At most so many are under way.
const MOST_WAITING: usize = 1 << 16;
/// Pages that redb keeps in memory, in bytes: the log is written once and not read.
const CACHE: usize = 8 << 20;

/// See the [module](self).
pub(crate) struct Embedded {
    submissions: crossbeam_channel::Sender<Work>,
    shared: Arc<Shared>,
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
struct Shared {
    waiting: AtomicUsize,
    /// Entries up to here are not needed any more.
    forgotten: AtomicU64,
    durable: AtomicU64,
    failed: AtomicBool,
}

impl Embedded {
    /// Opens the log in this directory, or one in memory. Feeds what it holds after `after`, then
    /// what is submitted, and counts the groups that become durable. The thread ends when the log is
    /// closed or dropped.
    pub fn open(
        dir: Option<&Path>,
        after: u64,
        feed: Feed,
        groups: Counter,
    ) -> Result<(Embedded, JoinHandle<()>), StartError> {
        let (database, path) = database::open(dir, FILE, CACHE)?;
        let (left, oldest) =
            read(&database, after).map_err(|error| StartError::database(&path, error))?;
        let last = left.last().map_or(after, |entry| entry.position);
        let (submissions, submitted) = crossbeam_channel::unbounded();
        let shared = Arc::new(Shared {
            durable: AtomicU64::new(last),
            forgotten: AtomicU64::new(after),
            ..Shared::default()
        });
        let writer = Writer {
            database,
            shared: shared.clone(),
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
        let log = Embedded {
            submissions,
            shared,
        };
        Ok((log, thread))
    }
}

impl Log for Embedded {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        if self.shared.waiting.fetch_add(1, Relaxed) >= MOST_WAITING {
            self.shared.waiting.fetch_sub(1, Relaxed);
            return Err(LogError::Busy(MOST_WAITING));
        }
        let submission = Submission { command, reply };
        self.submissions
            .send(Work::Submission(submission))
            .map_err(|_| LogError::Closed)
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>> {
        Box::pin(ready(Ok(self.shared.durable.load(Acquire))))
    }

    fn forget(&self, position: u64) {
        self.shared.forgotten.fetch_max(position, Release);
    }

    fn patience(&self) -> Option<Duration> {
        None
    }

    fn is_up(&self) -> bool {
        !self.shared.failed.load(Relaxed)
    }

    fn close(&self) {
        // If the thread has ended, it is closed.
        let _ = self.submissions.send(Work::Close);
    }
}

/// The thread that writes.
struct Writer {
    database: Database,
    shared: Arc<Shared>,
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
            let written = self.write(&group, &mut bytes);
            self.shared.waiting.fetch_sub(taken, Relaxed);
            if let Err(error) = written {
                return self.fail(&error, group, submitted);
            }
            let first = self.last + 1;
            self.last += taken as u64;
            self.shared.durable.store(self.last, Release);
            self.groups.inc();
            let entries = (first..).zip(group).map(|(position, submission)| Entry {
                position,
                command: submission.command,
                reply: Some(submission.reply),
            });
            if self.feed.send(entries.collect()).is_err() {
                return;
            }
        }
    }

    /// The disk has refused a group. Nothing is appended after it: a gap would be left.
    fn fail(
        &self,
        error: &redb::Error,
        group: Vec<Submission>,
        submitted: &crossbeam_channel::Receiver<Work>,
    ) {
        self.shared.failed.store(true, Relaxed);
        let failed = LogError::Failed(error.to_string());
        for submission in group {
            let _ = submission.reply.send(Err(failed.clone()));
        }
        for work in submitted {
            match work {
                Work::Submission(submission) => {
                    let _ = submission.reply.send(Err(failed.clone()));
                }
                Work::Close => return,
            }
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
            while bytes.len() < LARGEST_ROW
                && let Some(submission) = group.next()
            {
                *bytes = postcard::to_extend(&submission.command, std::mem::take(bytes))
                    .map_err(|error| redb::Error::Corrupted(error.to_string()))?;
                next += 1;
            }
            let name = segment_name(first >> SEGMENT_BITS);
            txn.open_table(segment(&name))?
                .insert(first, bytes.as_slice())?;
        }
        // Of those that are not needed, whole segments go.
        let needed = needed(self.shared.forgotten.load(Acquire));
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

/// What the log holds after this position, in order, and the oldest segment there is.
fn read(database: &Database, after: u64) -> Result<(Vec<Entry>, u64), redb::Error> {
    let txn = database.begin_read()?;
    let tables = txn.list_tables()?;
    let mut segments: Vec<u64> = tables
        .filter_map(|table| table.name().strip_prefix("log_")?.parse().ok())
        .collect();
    segments.sort_unstable();
    let mut entries = Vec::new();
    let mut last = after;
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
            if position > last + 1 {
                return Err(redb::Error::Corrupted(format!(
                    "the log goes on at {position} where {} was to come",
                    last + 1
                )));
            }
            let mut rest = bytes.value();
            while !rest.is_empty() {
                let (command, more) = postcard::take_from_bytes(rest).map_err(|error| {
                    redb::Error::Corrupted(format!("entry {position} of the log: {error}"))
                })?;
                rest = more;
                if position > last {
                    entries.push(Entry {
                        position,
                        command,
                        reply: None,
                    });
                    last = position;
                }
                position += 1;
            }
        }
    }
    Ok((entries, oldest))
}

#[cfg(test)]
mod tests;
