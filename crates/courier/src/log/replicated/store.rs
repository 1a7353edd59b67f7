//! The storage of a replicated log: a [`Journal`] of groups, and the retained entries in memory.
//!
//! A record of the journal is one group: the vote, the last known commit, and new entries, made durable with one
//! `fdatasync`. Entries replace all earlier entries from their position on, so nothing in the journal is ever
//! overwritten. A record may also have a [`Base`]: the position before the first retained entry, with the members at
//! that position. Files whose entries all precede the base are removed.
//!
//! Entries are retained for members that are behind: as many as fit into [`RETAINED`], and all entries that the index
//! does not have on disk.

use super::entry::decode;
use super::membership::Base;
use crate::error::StartError;
use corsair_journal::{Journal, JournalError, Record, Recovery, Tail};
use protobuf::Message as _;
use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// The name of the log's directory in the data directory.
const DIRECTORY: &str = "cluster";
/// The bytes of entries that are retained for other members.
const RETAINED: usize = 64 << 20;

/// One record of the journal.
#[derive(Serialize, Deserialize)]
struct Group {
    /// The identity of this node.
    node: u64,
    base: Option<Base>,
    term: u64,
    vote: u64,
    commit: u64,
    entries: Vec<Vec<u8>>,
}

/// The storage of a replicated log. See the [module](self).
#[derive(Debug)]
pub(crate) struct Store {
    journal: Journal,
    record: Record,
    node: u64,
    /// The number of the last record.
    last: u64,
    /// The records of the journal, with the last position in each.
    records: VecDeque<(u64, u64)>,
    base: Base,
    /// The base in the journal is older.
    is_base_new: bool,
    hard: HardState,
    entries: VecDeque<Entry>,
    /// The bytes of the entries.
    bytes: usize,
}

/// True if there is a replicated log in the data directory.
pub(crate) fn is_in(data: &Path) -> bool {
    corsair_journal::exists(&data.join(DIRECTORY))
}

/// Removes the replicated log in the data directory.
///
/// # Errors
/// A file cannot be removed.
pub(crate) fn remove(data: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(data.join(DIRECTORY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Store {
    /// Creates the log of a member, which begins after a base.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn create(
        data: &Path,
        node: u64,
        base: Base,
        vote: (u64, u64),
    ) -> std::result::Result<Store, StartError> {
        let directory = data.join(DIRECTORY);
        let journal = Journal::create(&directory, base.cluster, 1, &[])?;
        let hard = HardState {
            term: vote.0.max(base.term),
            vote: if vote.0 >= base.term { vote.1 } else { 0 },
            commit: base.position,
            ..HardState::default()
        };
        let mut store = Store {
            journal,
            record: Record::default(),
            node,
            last: 0,
            records: VecDeque::new(),
            base,
            is_base_new: true,
            hard: hard.clone(),
            entries: VecDeque::new(),
            bytes: 0,
        };
        store
            .append(hard, &[])
            .map_err(JournalError::at(&directory))?;
        Ok(store)
    }

    /// Opens the log in the data directory; `None` if there is none.
    ///
    /// # Errors
    /// The log is damaged or incomplete.
    pub fn open(data: &Path) -> std::result::Result<Option<Store>, StartError> {
        let directory = data.join(DIRECTORY);
        let first = corsair_journal::first(&directory).map_err(JournalError::at(&directory))?;
        let Some(first) = first else { return Ok(None) };
        let mut found = Replay::default();
        let visit = |number, _, bytes: &[u8]| found.add(number, bytes);
        let Some(recovery) = Recovery::read(&directory, first - 1, Tail::Synced, visit)? else {
            return Ok(None);
        };
        let incomplete = |reason: &str| StartError::Log {
            path: directory.clone(),
            reason: reason.to_owned(),
        };
        let Replay {
            node,
            base,
            hard,
            entries,
            records,
        } = found;
        let base = base.ok_or_else(|| incomplete("it has no beginning"))?;
        if entries
            .front()
            .is_some_and(|first| first.index != base.position + 1)
        {
            return Err(incomplete("its first entries are missing"));
        }
        let last = recovery.next() - 1;
        Ok(Some(Store {
            journal: recovery.open(&directory)?,
            record: Record::default(),
            node,
            last,
            records,
            base,
            is_base_new: false,
            hard,
            bytes: entries.iter().map(size).sum(),
            entries,
        }))
    }

    /// Returns the identity of this node.
    pub fn node(&self) -> u64 {
        self.node
    }

    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Returns the current term, and the node for which this node has voted in it.
    pub fn vote(&self) -> (u64, u64) {
        (self.hard.term, self.hard.vote)
    }

    /// Returns the last position that is known to be committed.
    pub fn committed(&self) -> u64 {
        self.hard.commit
    }

    /// Returns the position of the last entry.
    pub fn last(&self) -> u64 {
        self.base.position + self.entries.len() as u64
    }

    /// Returns the entry at this position, if it is retained.
    pub fn entry(&self, position: u64) -> Option<&Entry> {
        let place = position.checked_sub(self.base.position + 1)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Returns the state of the cluster at this position, if it is retained.
    pub fn base_at(&self, position: u64) -> Option<Base> {
        if position < self.base.position || position > self.last() {
            return None;
        }
        let mut base = self.base.clone();
        let count = (position - base.position) as usize;
        self.entries
            .iter()
            .take(count)
            .for_each(|entry| base.apply(entry));
        Some(base)
    }

    /// Makes a vote and new entries durable.
    ///
    /// # Errors
    /// The disk fails. Whether the group is durable is unknown until the log is opened again.
    pub fn append(&mut self, hard: HardState, new: &[Entry]) -> io::Result<()> {
        let encoded = new
            .iter()
            .map(Entry::write_to_bytes)
            .collect::<std::result::Result<_, _>>();
        let group = Group {
            node: self.node,
            base: self.is_base_new.then(|| self.base.clone()),
            term: hard.term,
            vote: hard.vote,
            commit: hard.commit,
            entries: encoded.map_err(io::Error::other)?,
        };
        self.record.begin();
        let bytes = self.record.bytes();
        *bytes = postcard::to_extend(&group, std::mem::take(bytes)).map_err(io::Error::other)?;
        self.journal.append(&mut self.record, self.last + 1, 1)?;
        self.journal.sync()?;
        self.last += 1;
        self.is_base_new = false;
        self.hard = hard;
        replace(&mut self.entries, &mut self.bytes, new);
        self.records
            .push_back((self.last, new.last().map_or(0, |entry| entry.index)));
        // The base is on disk, so earlier records are needed only for the entries after it.
        let mut through = 0;
        while let Some(&(number, last)) = self.records.front()
            && last <= self.base.position
            && number < self.last
        {
            through = number;
            self.records.pop_front();
        }
        self.journal.discard_through(through);
        Ok(())
    }

    /// Records how far entries are committed. The next group makes this durable.
    pub fn commit(&mut self, position: u64) {
        self.hard.commit = self.hard.commit.max(position);
    }

    /// Releases entries that the index has on disk, up to this position, if the retained entries are many.
    pub fn release(&mut self, through: u64) {
        while self.bytes > RETAINED
            && let Some(first) = self.entries.front()
            && first.index <= through.min(self.hard.commit)
        {
            self.base.apply(first);
            self.bytes -= size(first);
            self.entries.pop_front();
            self.is_base_new = true;
        }
    }

    /// Returns the committed entries after a position, for an index on which no node runs.
    ///
    /// # Errors
    /// A newer version has written an entry.
    pub fn committed_after(
        &self,
        position: u64,
    ) -> std::result::Result<Vec<super::super::Entry>, StartError> {
        let positions = position + 1..=self.committed();
        let entries = positions.filter_map(|position| self.entry(position));
        let decoded = entries.map(|entry| decode(entry).map_err(StartError::Setting));
        decoded.collect()
    }

    pub fn trim(&mut self) {
        self.journal.trim();
    }
}

/// The state of a log during its recovery.
#[derive(Default)]
struct Replay {
    node: u64,
    base: Option<Base>,
    hard: HardState,
    entries: VecDeque<Entry>,
    records: VecDeque<(u64, u64)>,
}

impl Replay {
    fn add(&mut self, number: u64, bytes: &[u8]) -> std::result::Result<(), String> {
        let group: Group = postcard::from_bytes(bytes)
            .map_err(|error| format!("record {number} cannot be read: {error}"))?;
        self.node = group.node;
        self.hard = HardState {
            term: group.term,
            vote: group.vote,
            commit: group.commit,
            ..HardState::default()
        };
        let mut new = Vec::with_capacity(group.entries.len());
        for bytes in &group.entries {
            let entry = Entry::parse_from_bytes(bytes);
            new.push(entry.map_err(|error| format!("record {number} cannot be read: {error}"))?);
        }
        if let (Some(last), Some(first)) = (self.entries.back(), new.first())
            && first.index > last.index + 1
        {
            return Err(format!(
                "entry {} is missing before record {number}",
                last.index + 1
            ));
        }
        replace(&mut self.entries, &mut 0, &new);
        self.records
            .push_back((number, new.last().map_or(0, |entry| entry.index)));
        if let Some(base) = group.base {
            while self
                .entries
                .front()
                .is_some_and(|first| first.index <= base.position)
            {
                self.entries.pop_front();
            }
            self.base = Some(base);
        }
        Ok(())
    }
}

/// Replaces all entries from the first new one on.
fn replace(entries: &mut VecDeque<Entry>, bytes: &mut usize, new: &[Entry]) {
    let Some(first) = new.first() else { return };
    while let Some(last) = entries.back()
        && last.index >= first.index
    {
        *bytes = bytes.saturating_sub(size(last));
        entries.pop_back();
    }
    *bytes += new.iter().map(size).sum::<usize>();
    entries.extend(new.iter().cloned());
}

/// Returns the approximate memory of an entry in bytes.
fn size(entry: &Entry) -> usize {
    size_of::<Entry>() + entry.data.len()
}

impl Storage for Store {
    fn initial_state(&self) -> Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.base.conf_state()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> Result<Vec<Entry>> {
        if low <= self.base.position {
            return Err(Error::Store(StorageError::Compacted));
        }
        let most = max_size.into().unwrap_or(u64::MAX);
        let (mut bytes, mut found) = (0, Vec::new());
        let begin = (low - self.base.position - 1) as usize;
        for entry in self.entries.range(begin..).take((high - low) as usize) {
            bytes += size(entry) as u64;
            if bytes > most && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn term(&self, position: u64) -> Result<u64> {
        if position == self.base.position {
            return Ok(self.base.term);
        }
        match self.entry(position) {
            Some(entry) => Ok(entry.term),
            None if position < self.base.position => Err(Error::Store(StorageError::Compacted)),
            None => Err(Error::Store(StorageError::Unavailable)),
        }
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.base.position + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last())
    }

    /// Returns the place of a snapshot without its contents, which a member requests over a separate connection.
    fn snapshot(&self, _: u64, _: u64) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        metadata.index = self.base.position;
        metadata.term = self.base.term;
        metadata.set_conf_state(self.base.conf_state());
        Ok(snapshot)
    }
}
