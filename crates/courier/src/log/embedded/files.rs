//! The files of the log: a directory of them, of which the last one grows.
//!
//! A file is named by the position of its first entry. It is made under another name and gets its own when it
//! is on disk, so that a file with a name is whole. Before a file is full it has [`AHEAD`] bytes of zeros
//! where the next records will be: to sync what replaces them, the file system need not write down a new length, for
//! which it would wait until everything else is on disk that it has begun to write.

use super::record::{self, Contents, FORMAT, HEADER, Header};
use crate::error::StartError;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The directory of the log in the directory of the data.
pub(super) const DIRECTORY: &str = "log";
/// What the names of its files end with.
const EXTENSION: &str = "entries";
/// A file as long as it is being made.
const PART: &str = "part";
/// A file that is longer is not appended to.
const LARGEST_FILE: u64 = 16 << 20;
/// Zeros that are written beyond the last record when it comes to the end of the file.
const AHEAD: u64 = 1 << 20;

/// A log on disk, as far as it is needed, before anything in it is changed.
pub(super) struct Found {
    pub identity: u64,
    /// The position after the last entry.
    pub next: u64,
    /// The positions at which files begin.
    firsts: VecDeque<u64>,
    /// Where the last record of the last file begins,
    last: u64,
    /// and what is there up to its end.
    tail: Vec<u8>,
}

/// The log is damaged, or of another version.
fn refused(path: &Path, reason: String) -> StartError {
    StartError::Log {
        path: path.to_owned(),
        reason,
    }
}

/// The log cannot be read or written here.
pub(super) fn unusable(path: &Path) -> impl Fn(io::Error) -> StartError {
    let path = path.to_owned();
    move |error| refused(&path, error.to_string())
}

impl Found {
    /// Looks at the log in this directory, and calls `visit` with the position, the number and the bytes of the
    /// commands of every record that has some after this position. `None` if the directory has no log.
    ///
    /// # Errors
    /// If it is damaged, or does not reach back to this position.
    pub fn read(
        directory: &Path,
        after: u64,
        mut visit: impl FnMut(u64, u32, &[u8]) -> Result<(), String>,
    ) -> Result<Option<Found>, StartError> {
        let firsts = firsts(directory).map_err(unusable(directory))?;
        let Some(&oldest) = firsts.front() else {
            return Ok(None);
        };
        if oldest > after + 1 {
            let reason = format!(
                "it continues at entry {oldest}; expected entry {}",
                after + 1
            );
            return Err(refused(directory, reason));
        }
        // What is in files before the last one that begins early enough is not needed.
        let begin = firsts.iter().rposition(|&first| first <= after + 1);
        let mut found = Found {
            identity: 0,
            next: 0,
            firsts: firsts.clone(),
            last: 0,
            tail: Vec::new(),
        };
        let mut goes_on = true;
        for &first in firsts.iter().skip(begin.unwrap_or(0)) {
            let path = path(directory, first);
            if found.next != 0 && found.next != first {
                let reason = format!(
                    "it continues at entry {first}; expected entry {}",
                    found.next
                );
                return Err(refused(directory, reason));
            }
            let file = fs::read(&path).map_err(unusable(&path))?;
            let header = header(&path, &file, first)?;
            if found.next != 0 && found.identity != header.identity {
                return Err(refused(&path, "it is of another log".to_owned()));
            }
            let damaged = |entry| refused(&path, format!("entry {entry} is damaged"));
            let contents = record::contents(&file, &header).map_err(damaged)?;
            for record in &contents.records {
                if record.first + u64::from(record.count) > after + 1 {
                    let visited = visit(record.first, record.count, record.commands);
                    visited.map_err(|reason| refused(&path, reason))?;
                }
            }
            found.identity = header.identity;
            found.next = contents.next;
            goes_on = contents.goes_on;
            found.end_with(&file, &contents);
        }
        if goes_on {
            let reason = format!("the file that begins with entry {} is missing", found.next);
            return Err(refused(directory, reason));
        }
        Ok(Some(found))
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
        // It may be cut off within what only fills it up.
        self.tail.resize(contents.end - begin, 0);
        self.last = begin as u64;
    }

    /// Continues with it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(self, directory: &Path) -> Result<Files, StartError> {
        let first = *self.firsts.back().expect("a log has a file");
        let path = path(directory, first);
        let opened = (|| {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            let end = self.last + self.tail.len() as u64;
            // What is read here may be known to the system only, and not be on disk: a sync has failed, and the
            // next one would say that there is nothing to do. So it is written again.
            file.seek(SeekFrom::Start(self.last))?;
            file.write_all(&self.tail)?;
            // A torn record does not belong to the next one.
            file.set_len(end)?;
            file.sync_all()?;
            Ok(Files {
                directory: directory.to_owned(),
                identity: self.identity,
                firsts: self.firsts,
                file,
                end,
                length: end,
            })
        })();
        opened.map_err(unusable(&path))
    }
}

fn header(path: &Path, file: &[u8], first: u64) -> Result<Header, StartError> {
    match Header::read(file) {
        Some(header) if header.format != FORMAT => Err(StartError::Format {
            path: path.to_owned(),
            found: header.format,
            wanted: FORMAT,
        }),
        Some(header) if header.first == first => Ok(header),
        _ => Err(refused(path, "its header is damaged".to_owned())),
    }
}

/// The positions at which the files in a directory begin, in order.
fn firsts(directory: &Path) -> io::Result<VecDeque<u64>> {
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
        // Other files are not of this log.
        firsts.extend(first.filter(|&first| *name == *file_name(first)));
    }
    firsts.sort_unstable();
    Ok(firsts.into())
}

fn file_name(first: u64) -> String {
    format!("{first:020}.{EXTENSION}")
}

fn path(directory: &Path, first: u64) -> PathBuf {
    directory.join(file_name(first))
}

/// Has the names in a directory on disk. Other systems than Unix open no directories.
fn sync(directory: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(directory)?.sync_all(),
        false => Ok(()),
    }
}

/// Whether there is a log in the directory.
pub(super) fn are_in(directory: &Path) -> bool {
    firsts(directory).is_ok_and(|firsts| !firsts.is_empty())
}

/// The files of a log, open to be appended to.
pub(super) struct Files {
    directory: PathBuf,
    pub identity: u64,
    /// The positions at which files begin.
    firsts: VecDeque<u64>,
    /// The last one,
    file: File,
    /// where its records end,
    end: u64,
    /// and where its zeros do.
    length: u64,
}

impl Files {
    /// Begins a log whose first entry has this position, with records that it has already.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(
        directory: &Path,
        identity: u64,
        first: u64,
        records: &[u8],
    ) -> Result<Files, StartError> {
        let created = (|| {
            crate::disk::private_directory(directory)?;
            let (file, end) = make(directory, identity, first, records)?;
            if let Some(parent) = directory.parent() {
                sync(parent)?;
            }
            Ok(Files {
                directory: directory.to_owned(),
                identity,
                firsts: VecDeque::from([first]),
                file,
                end,
                length: end + AHEAD,
            })
        })();
        created.map_err(unusable(directory))
    }

    /// Makes a record durable, the first entry of which has this position.
    pub fn append(&mut self, record: &[u8], first: u64) -> io::Result<()> {
        if self.end >= LARGEST_FILE {
            self.go_on_in_another(first)?;
        }
        self.write(record)?;
        self.file.sync_data()
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(record)?;
        self.end += record.len() as u64;
        if self.end > self.length {
            self.length = self.end + AHEAD;
            write_zeros(&mut self.file)?;
        }
        Ok(())
    }

    fn go_on_in_another(&mut self, first: u64) -> io::Result<()> {
        let (file, end) = make(&self.directory, self.identity, first, &[])?;
        // The file before says so, that a lost one is missed.
        let mut mark = Vec::new();
        record::begin(&mut mark);
        record::finish(&mut mark, self.identity, first, 0);
        self.write(&mark)?;
        self.file.sync_data()?;
        self.firsts.push_back(first);
        self.file = file;
        self.end = end;
        self.length = end + AHEAD;
        Ok(())
    }

    /// Cuts off what was kept for more records: there are none.
    pub fn cut_off(&mut self) {
        // Zeros that stay do no harm.
        let _ = self.file.set_len(self.end);
    }

    /// Removes files without entries after this position.
    pub fn forget(&mut self, position: u64) {
        while let Some(&next) = self.firsts.get(1)
            && next <= position + 1
        {
            // One that cannot be removed is tried again.
            if fs::remove_file(path(&self.directory, self.firsts[0])).is_err() {
                break;
            }
            self.firsts.pop_front();
        }
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

/// Makes a file with these records and zeros after them. Returns where the records end.
fn make(directory: &Path, identity: u64, first: u64, records: &[u8]) -> io::Result<(File, u64)> {
    let header = Header {
        format: FORMAT,
        identity,
        first,
    };
    let part = directory.join(PART);
    let mut file = File::create(&part)?;
    file.write_all(&header.bytes())?;
    file.write_all(records)?;
    write_zeros(&mut file)?;
    file.sync_all()?;
    fs::rename(&part, path(directory, first))?;
    sync(directory)?;
    Ok((file, (HEADER + records.len()) as u64))
}
