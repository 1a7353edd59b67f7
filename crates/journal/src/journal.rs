//! The files of a journal: a directory of files, of which only the last one grows.
//!
//! A file is named by the position of its first entry. It is created under a temporary name and renamed when it and its
//! predecessor are on disk, so the predecessor of a file with its final name is complete. Until a file is full, its last
//! record is followed by up to [`AHEAD`] bytes of zeros. A record that replaces zeros does not change the length of the
//! file, so a sync need not write metadata, and does not wait for other writes of the file system.
//!
//! **Deferred rotation.** If not every record is synced, the change to the next file need not wait for the disk either:
//! records go to the file with the temporary name, until the next sync renames it.

use crate::error::JournalError;
use crate::record::{FORMAT, HEADER, Header, Record};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The extension of the files.
const EXTENSION: &str = "entries";
/// The name of a file whose predecessor may not be on disk.
pub(crate) const PART: &str = "part";
/// The length in bytes from which on a file gets no more records.
const LARGEST_FILE: u64 = 16 << 20;
/// The same length if rotation is deferred. Only one rotation can wait for a sync.
const LARGEST_DEFERRED_FILE: u64 = 32 << 20;
/// The number of bytes of zeros that are written when records reach the end of the file.
const AHEAD: u64 = 1 << 20;

/// A journal that is open for appending. See the [crate](crate).
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    identity: u64,
    /// The positions at which files begin.
    firsts: VecDeque<u64>,
    /// The last file, to which records are appended.
    file: Arc<File>,
    /// The offset of the end of the last record in this file.
    end: u64,
    /// The length of this file, including the zeros at its end.
    length: u64,
    /// True if rotation is deferred.
    deferred: bool,
    /// The length in bytes from which on a file gets no more records.
    largest: u64,
    /// The rotation to this file, until it is complete.
    rotation: Arc<Mutex<Option<Rotation>>>,
    /// True if there is an incomplete record after `end`.
    broken: bool,
}

impl Journal {
    /// Creates a journal in this directory. The directory is created if it does not exist. The journal begins with
    /// `records`, which are [finished](Record::finish); its first entry has position `first`.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn create(
        directory: &Path,
        identity: u64,
        first: u64,
        records: &[u8],
    ) -> Result<Journal, JournalError> {
        let created = (|| {
            private_directory(directory)?;
            let (file, end) = make(directory, identity, first, records, AHEAD)?;
            name(directory, first, &file)?;
            if let Some(parent) = directory.parent() {
                sync_directory(parent)?;
            }
            Ok(Journal {
                directory: directory.to_owned(),
                identity,
                firsts: VecDeque::from([first]),
                file: Arc::new(file),
                end,
                length: end + AHEAD,
                deferred: false,
                largest: LARGEST_FILE,
                rotation: Arc::default(),
                broken: false,
            })
        })();
        created.map_err(JournalError::at(directory))
    }

    pub(crate) fn continued(
        directory: &Path,
        identity: u64,
        firsts: VecDeque<u64>,
        file: File,
        end: u64,
    ) -> Journal {
        Journal {
            directory: directory.to_owned(),
            identity,
            firsts,
            file: Arc::new(file),
            end,
            length: end,
            deferred: false,
            largest: LARGEST_FILE,
            rotation: Arc::default(),
            broken: false,
        }
    }

    /// Returns the journal with deferred rotation, so that [`append`](Journal::append) rarely waits for the disk. For
    /// journals that are read with [`Tail::Unsynced`](crate::Tail::Unsynced).
    pub fn defer_rotation(self) -> Journal {
        Journal {
            deferred: true,
            largest: LARGEST_DEFERRED_FILE,
            ..self
        }
    }

    /// Returns the number with which the journal was created.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Appends a record of `count` entries, the first of which has position `first`. The record survives a
    /// kill of the process, and after [`sync`](Journal::sync) a power failure.
    ///
    /// # Errors
    /// The record cannot be written, for example because the disk is full. A partly written record is removed again; if
    /// that fails too, all further calls fail.
    pub fn append(&mut self, record: &mut Record, first: u64, count: u32) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other(
                "a torn record could not be removed; read the journal again",
            ));
        }
        if self.end >= self.largest {
            self.rotate(first)?;
        }
        let end = self.end;
        let written = self.write(record.finish(self.identity, first, count));
        if written.is_err() {
            self.end = end;
            self.length = end;
            self.broken = self.file.set_len(end).is_err();
        }
        written
    }

    /// Waits until all records are on disk.
    ///
    /// # Errors
    /// The same errors as [`append`](Journal::append).
    pub fn sync(&mut self) -> io::Result<()> {
        self.unsynced().sync()
    }

    /// Returns the records that were appended so far, for a sync on another thread.
    pub fn unsynced(&self) -> Unsynced {
        Unsynced {
            file: self.file.clone(),
            rotation: self.rotation.clone(),
        }
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        write_at(&self.file, self.end, record)?;
        self.end += record.len() as u64;
        if self.end > self.length {
            self.length = self.end;
            // The zeros only save time, so an error is ignored. They save none if records are not synced one by one.
            if !self.deferred && write_zeros(&self.file, AHEAD).is_ok() {
                self.length += AHEAD;
            }
        }
        Ok(())
    }

    /// Continues in another file, whose first entry has position `first`.
    fn rotate(&mut self, first: u64) -> io::Result<()> {
        complete(&self.rotation)?;
        let ahead = match self.deferred {
            true => 0,
            false => AHEAD,
        };
        let (file, end) = make(&self.directory, self.identity, first, &[], ahead)?;
        let file = Arc::new(file);
        let rotation = Rotation {
            directory: self.directory.clone(),
            identity: self.identity,
            first,
            old: self.file.clone(),
            old_end: self.end,
            new: file.clone(),
        };
        match self.deferred {
            true => *lock(&self.rotation) = Some(rotation),
            false => rotation.complete()?,
        }
        self.firsts.push_back(first);
        self.file = file;
        self.end = end;
        self.length = end + ahead;
        Ok(())
    }

    /// Removes the zeros after the last record. Errors are ignored, because the zeros are harmless.
    pub fn trim(&mut self) {
        let _ = self.file.set_len(self.end);
    }

    /// Removes the files that have only entries up to `position`. If a file cannot be removed, the next call tries
    /// again.
    pub fn discard_through(&mut self, position: u64) {
        // The last file has no final name before its rotation is complete. A journal has at least one with such a name.
        let is_complete = self.rotation.try_lock().is_ok_and(|part| part.is_none());
        let needed = if is_complete { 1 } else { 2 };
        while self.firsts.len() > needed && self.firsts[1] <= position + 1 {
            if fs::remove_file(path(&self.directory, self.firsts[0])).is_err() {
                break;
            }
            self.firsts.pop_front();
        }
    }
}

/// The records that a journal had when [`Journal::unsynced`] was called.
#[derive(Debug)]
pub struct Unsynced {
    file: Arc<File>,
    rotation: Arc<Mutex<Option<Rotation>>>,
}

impl Unsynced {
    /// Waits until the records are on disk.
    ///
    /// # Errors
    /// The same errors as [`Journal::append`].
    pub fn sync(&self) -> io::Result<()> {
        complete(&self.rotation)?;
        self.file.sync_data()
    }
}

/// The change to another file.
#[derive(Debug)]
pub(crate) struct Rotation {
    pub directory: PathBuf,
    pub identity: u64,
    /// The position of the first entry of the new file.
    pub first: u64,
    pub old: Arc<File>,
    /// The offset of the end of the last record in the old file.
    pub old_end: u64,
    pub new: Arc<File>,
}

impl Rotation {
    /// Waits until both files are on disk, and names the new one.
    pub fn complete(&self) -> io::Result<()> {
        // A file that has a successor is always on disk.
        self.old.sync_data()?;
        name(&self.directory, self.first, &self.new)?;
        // A record without entries means that a successor exists, so that a lost successor is detected.
        let mut mark = Record::default();
        mark.begin();
        write_at(
            &self.old,
            self.old_end,
            mark.finish(self.identity, self.first, 0),
        )?;
        self.old.sync_data()
    }
}

/// Completes a rotation, if there is one.
fn complete(rotation: &Mutex<Option<Rotation>>) -> io::Result<()> {
    let mut rotation = lock(rotation);
    if let Some(begun) = &*rotation {
        begun.complete()?;
    }
    *rotation = None;
    Ok(())
}

/// A rotation that has panicked is repeated.
fn lock(rotation: &Mutex<Option<Rotation>>) -> std::sync::MutexGuard<'_, Option<Rotation>> {
    rotation.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_at(mut file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// Creates a directory, with its parents, that only its owner may read.
///
/// # Errors
/// The same errors as [`std::fs::DirBuilder::create`].
pub fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    create_durably(path, &builder)
}

/// Creates a directory, with its parents, whose name survives a power failure.
///
/// # Errors
/// The same errors as [`std::fs::DirBuilder::create`], and those of syncing the directories that hold new names.
pub fn durable_directory(path: &Path) -> io::Result<()> {
    create_durably(path, fs::DirBuilder::new().recursive(true))
}

/// Creates a directory durably. A directory's name is durable only when its parent directory has been synced. An
/// earlier process may have been killed before the sync, so existing names are synced as well, if this process is
/// permitted to.
fn create_durably(path: &Path, builder: &fs::DirBuilder) -> io::Result<()> {
    let named = || {
        let each = path.ancestors();
        each.filter(|name| !name.as_os_str().is_empty())
    };
    let new = named().take_while(|name| !name.exists()).count();
    builder.create(path)?;
    for (index, name) in named().enumerate() {
        let parent = match name.parent() {
            None => break,
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
        };
        let synced = sync_directory(parent);
        if index < new {
            synced?;
        }
    }
    Ok(())
}

/// Returns options that create a file which only its owner may read and write, whatever the umask. The mode of an
/// existing file does not change.
pub fn private_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// True if the directory contains a journal.
pub fn exists(directory: &Path) -> bool {
    firsts(directory).is_ok_and(|firsts| !firsts.is_empty())
}

/// Returns the position at which the journal in a directory begins; `None` if there is no journal.
///
/// # Errors
/// The directory cannot be read.
pub fn first(directory: &Path) -> io::Result<Option<u64>> {
    Ok(firsts(directory)?.front().copied())
}

/// Returns the positions at which the files in a directory begin, in order.
pub(crate) fn firsts(directory: &Path) -> io::Result<VecDeque<u64>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
        Err(error) => return Err(error),
    };
    let mut firsts = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let first = Path::new(&name)
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        // Files with other names do not belong to the journal.
        firsts.extend(first.filter(|&first| *name == *file_name(first)));
    }
    firsts.sort_unstable();
    Ok(firsts.into())
}

fn file_name(first: u64) -> String {
    format!("{first:020}.{EXTENSION}")
}

pub(crate) fn path(directory: &Path, first: u64) -> PathBuf {
    directory.join(file_name(first))
}

/// Syncs the entries of a directory. Only Unix can open directories.
fn sync_directory(directory: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(directory)?.sync_all(),
        false => Ok(()),
    }
}

/// Writes zeros from a small buffer.
fn write_zeros(mut file: &File, count: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    for _ in 0..count / ZEROS.len() as u64 {
        file.write_all(&ZEROS)?;
    }
    Ok(())
}

/// Creates a file without its final name: `records`, followed by zeros. Returns the offset of the end of the records.
fn make(
    directory: &Path,
    identity: u64,
    first: u64,
    records: &[u8],
    ahead: u64,
) -> io::Result<(File, u64)> {
    let header = Header {
        format: FORMAT,
        identity,
        first,
    };
    let mut file = private_file().truncate(true).open(directory.join(PART))?;
    file.write_all(&header.bytes())?;
    file.write_all(records)?;
    write_zeros(&file, ahead)?;
    Ok((file, (HEADER + records.len()) as u64))
}

/// Gives a new file its final name when it is on disk.
fn name(directory: &Path, first: u64, file: &File) -> io::Result<()> {
    file.sync_all()?;
    fs::rename(directory.join(PART), path(directory, first))?;
    sync_directory(directory)
}

#[cfg(test)]
mod tests;
