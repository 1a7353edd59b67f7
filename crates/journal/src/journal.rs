//! The files of a journal: a directory of files, of which only the last one grows.
//!
//! A file is named by the position of its first entry. It is written under a temporary name and renamed when it is on
//! disk, so a file with its final name is complete. Until a file is full, its last record is followed by up to
//! [`AHEAD`] bytes of zeros. A record that replaces zeros does not change the length of the file, so a sync need not
//! write metadata, and does not wait for other writes of the file system.

use crate::error::JournalError;
use crate::record::{FORMAT, HEADER, Header, Record};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The extension of the files.
const EXTENSION: &str = "entries";
/// The name of a file under construction.
const PART: &str = "part";
/// The length in bytes from which on a file gets no more records.
const LARGEST_FILE: u64 = 16 << 20;
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
    file: File,
    /// The offset of the end of the last record in this file.
    end: u64,
    /// The length of this file, including the zeros at its end.
    length: u64,
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
            let (file, end) = make(directory, identity, first, records)?;
            if let Some(parent) = directory.parent() {
                sync_directory(parent)?;
            }
            Ok(Journal {
                directory: directory.to_owned(),
                identity,
                firsts: VecDeque::from([first]),
                file,
                end,
                length: end + AHEAD,
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
            file,
            end,
            length: end,
            broken: false,
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
        if self.end >= LARGEST_FILE {
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
        self.file.sync_data()
    }

    /// Returns a second handle of the current file, for a sync on another thread.
    ///
    /// # Errors
    /// The process has no free file descriptor left.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(record)?;
        self.end += record.len() as u64;
        if self.end > self.length {
            self.length = self.end;
            // The zeros only save time, so an error is ignored.
            if write_zeros(&mut self.file).is_ok() {
                self.length += AHEAD;
            }
        }
        Ok(())
    }

    /// Continues in another file, whose first entry has position `first`.
    fn rotate(&mut self, first: u64) -> io::Result<()> {
        // A file that has a successor is always on disk.
        self.file.sync_data()?;
        let (file, end) = make(&self.directory, self.identity, first, &[])?;
        // A record without entries means that a successor exists, so that a lost successor is detected.
        let mut mark = Record::default();
        mark.begin();
        self.write(mark.finish(self.identity, first, 0))?;
        self.file.sync_data()?;
        self.firsts.push_back(first);
        self.file = file;
        self.end = end;
        self.length = end + AHEAD;
        Ok(())
    }

    /// Removes the zeros after the last record. Errors are ignored, because the zeros are harmless.
    pub fn trim(&mut self) {
        let _ = self.file.set_len(self.end);
    }

    /// Removes the files that have only entries up to `position`. If a file cannot be removed, the next call tries
    /// again.
    pub fn discard_through(&mut self, position: u64) {
        while let Some(&next) = self.firsts.get(1)
            && next <= position + 1
        {
            if fs::remove_file(path(&self.directory, self.firsts[0])).is_err() {
                break;
            }
            self.firsts.pop_front();
        }
    }
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

/// Writes [`AHEAD`] zeros from a small buffer.
fn write_zeros(file: &mut File) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    for _ in 0..AHEAD / ZEROS.len() as u64 {
        file.write_all(&ZEROS)?;
    }
    Ok(())
}

/// Creates a file with `records`, followed by zeros. Returns the offset of the end of the records.
fn make(directory: &Path, identity: u64, first: u64, records: &[u8]) -> io::Result<(File, u64)> {
    let header = Header {
        format: FORMAT,
        identity,
        first,
    };
    let part = directory.join(PART);
    let mut file = private_file().truncate(true).open(&part)?;
    file.write_all(&header.bytes())?;
    file.write_all(records)?;
    write_zeros(&mut file)?;
    file.sync_all()?;
    fs::rename(&part, path(directory, first))?;
    sync_directory(directory)?;
    Ok((file, (HEADER + records.len()) as u64))
}
