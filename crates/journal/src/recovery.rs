//! Reads a journal after a stop or a crash, and continues it.

use crate::error::JournalError;
use crate::journal::{self, Journal, Rotation};
use crate::record::{self, Contents, FORMAT, HEADER, Header};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// The way in which a journal was written, which determines how its end may look after a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Each record was synced before the next one was written, so only the last record may be incomplete. A complete
    /// record after an unreadable one is an error.
    Synced,
    /// Records were written without a sync. The journal ends before the first unreadable record, and all bytes from
    /// this record on are discarded.
    Unsynced,
}

/// A journal that has been read but not changed.
#[derive(Debug)]
pub struct Recovery {
    identity: u64,
    next: u64,
    /// The positions at which files begin.
    firsts: VecDeque<u64>,
    /// The start of the last record of the last file.
    last: u64,
    /// The bytes of this last record.
    tail: Vec<u8>,
    discarded: u64,
    /// The offset of the end of the file before the last one, if the last one has no final name yet.
    old_end: Option<u64>,
}

impl Recovery {
    /// Reads the journal in this directory. Calls `visit` for each record that has entries after position `after`. The
    /// arguments are the position of the record's first entry, the number of entries, and their bytes. Returns `None`
    /// if the directory has no journal. At most one file is in memory.
    ///
    /// # Errors
    /// The journal is damaged or incomplete, begins later than `after + 1`, cannot be read, or `visit` has
    /// returned an error.
    pub fn read(
        directory: &Path,
        after: u64,
        tail: Tail,
        mut visit: impl FnMut(u64, u32, &[u8]) -> Result<(), String>,
    ) -> Result<Option<Recovery>, JournalError> {
        let firsts = journal::firsts(directory).map_err(JournalError::at(directory))?;
        let Some(&oldest) = firsts.front() else {
            return Ok(None);
        };
        let refused = |path: &Path, reason: String| JournalError::new(path, reason);
        let gap = |at: u64, expected: u64| {
            let reason = format!("it continues at entry {at}; expected entry {expected}");
            refused(directory, reason)
        };
        if oldest > after + 1 {
            return Err(gap(oldest, after + 1));
        }
        // Earlier files contain no entry after position `after`.
        let begin = firsts.iter().rposition(|&first| first <= after + 1);
        let mut recovery = Recovery {
            identity: 0,
            next: 0,
            firsts: firsts.clone(),
            last: 0,
            tail: Vec::new(),
            discarded: 0,
            old_end: None,
        };
        let mut continues = true;
        let mut old_end = 0;
        let named = firsts.iter().skip(begin.unwrap_or(0));
        let named = named.map(|&first| (Some(first), journal::path(directory, first)));
        let part = directory.join(journal::PART);
        for (name, path) in named.chain([(None, part)]) {
            let is_last = name.is_none() || name == firsts.back().copied();
            let (first, file, header) = match name {
                Some(first) => {
                    let file = fs::read(&path).map_err(JournalError::at(&path))?;
                    let header = header(&path, &file, first)?;
                    (first, file, header)
                }
                None => match recovery.continuation(&path, continues)? {
                    Some(found) => {
                        recovery.firsts.push_back(recovery.next);
                        recovery.old_end = Some(old_end);
                        found
                    }
                    None => break,
                },
            };
            if recovery.next != 0 && recovery.next != first {
                return Err(gap(first, recovery.next));
            }
            if recovery.next != 0 && recovery.identity != header.identity {
                return Err(refused(&path, "it belongs to another log".to_owned()));
            }
            let contents = record::contents(&file, &header);
            if contents.is_interrupted(&file, &header) && !(is_last && tail == Tail::Unsynced) {
                return Err(refused(
                    &path,
                    format!("entry {} is damaged", contents.next),
                ));
            }
            for record in &contents.records {
                if record.first + u64::from(record.count) > after + 1 {
                    let visited = visit(record.first, record.count, record.entries);
                    visited.map_err(|reason| refused(&path, reason))?;
                }
            }
            recovery.identity = header.identity;
            recovery.next = contents.next;
            continues = contents.continues;
            old_end = contents.end as u64;
            recovery.end_with(&file, &contents);
        }
        if continues {
            let reason = format!(
                "the file that begins with entry {} is missing",
                recovery.next
            );
            return Err(refused(directory, reason));
        }
        Ok(Some(recovery))
    }

    /// Returns the number with which the journal was created.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the position after the last entry.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes after the last complete record that are discarded: an incomplete record and all
    /// records after it, but not the zeros at the end of the file.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Reads the file without a final name, if it continues the journal. It does not if the end of its predecessor is
    /// lost, or if it is only begun; then its bytes are discarded.
    fn continuation(
        &mut self,
        path: &Path,
        continues: bool,
    ) -> Result<Option<(u64, Vec<u8>, Header)>, JournalError> {
        let file = match fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::at(path)(error)),
        };
        let header = Header::read(&file).filter(|header| {
            let place = (header.format, header.identity, header.first);
            !continues && place == (FORMAT, self.identity, self.next)
        });
        match header {
            Some(header) => Ok(Some((header.first, file, header))),
            None => {
                self.discarded += used(&file);
                Ok(None)
            }
        }
    }

    fn end_with(&mut self, file: &[u8], contents: &Contents<'_>) {
        let last = contents.records.iter().rev().nth(1);
        let begin = match (contents.records.len(), last) {
            (0, _) => 0,
            (_, None) => HEADER,
            (_, Some(before)) => before.end,
        };
        self.tail.clear();
        self.tail
            .extend(file[begin..].iter().take(contents.end - begin));
        // The file may end within the padding of the last record.
        self.tail.resize(contents.end - begin, 0);
        self.last = begin as u64;
        self.discarded = used(file.get(contents.end..).unwrap_or_default());
    }

    /// Continues the journal after its last complete record, and discards an incomplete record.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn open(self, directory: &Path) -> Result<Journal, JournalError> {
        let first = *self.firsts.back().expect("a journal has a file");
        let part = directory.join(journal::PART);
        let path = match self.old_end {
            Some(_) => part.clone(),
            None => journal::path(directory, first),
        };
        let end = self.last + self.tail.len() as u64;
        let opened = (|| {
            let mut file = write_only(&path)?;
            // The last record was read from the page cache. If its sync had failed, it may not be on disk, and another
            // sync would not write it, so the record is written again.
            file.seek(SeekFrom::Start(self.last))?;
            file.write_all(&self.tail)?;
            // The bytes of a torn record must not become part of the next one.
            file.set_len(end)?;
            file.sync_all()?;
            if let Some(old_end) = self.old_end {
                self.complete_rotation(directory, old_end)?;
            } else if let Err(error) = fs::remove_file(&part)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
            Ok(file)
        })();
        let file = opened.map_err(JournalError::at(&path))?;
        Ok(Journal::continued(
            directory,
            self.identity,
            self.firsts,
            file,
            end,
        ))
    }

    /// Gives the last file its final name, when it and its predecessor are on disk.
    fn complete_rotation(&self, directory: &Path, old_end: u64) -> io::Result<()> {
        let count = self.firsts.len();
        let old = write_only(&journal::path(directory, self.firsts[count - 2]))?;
        let rotation = Rotation {
            directory: directory.to_owned(),
            identity: self.identity,
            first: self.firsts[count - 1],
            old: Arc::new(old),
            old_end,
            new: Arc::new(write_only(&directory.join(journal::PART))?),
        };
        rotation.complete()
    }
}

/// Returns the number of bytes without the zeros at the end.
fn used(bytes: &[u8]) -> u64 {
    let last = bytes.iter().rposition(|byte| *byte != 0);
    last.map_or(0, |at| at as u64 + 1)
}

fn write_only(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

fn header(path: &Path, file: &[u8], first: u64) -> Result<Header, JournalError> {
    match Header::read(file) {
        Some(header) if header.format != FORMAT => Err(JournalError::Format {
            path: path.to_owned(),
            found: header.format,
            wanted: FORMAT,
        }),
        Some(header) if header.first == first => Ok(header),
        _ => Err(JournalError::new(path, "its header is damaged")),
    }
}
