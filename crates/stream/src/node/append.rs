//! A file to which a sink appends each line exactly once, even over crashes.
//!
//! A checkpoint records the length that the file had before the lines that were not delivered. After a crash the lines
//! after that position are produced again. Lines that the file already contains, in the same order, are skipped; an
//! incomplete last line is completed. Nothing is ever removed from the file, so other writers lose nothing.
//!
//! If the file is renamed or removed, for example by log rotation, the next line begins a new file. A crash before the
//! next checkpoint then repeats the lines of the last interval.

use parking_lot::Mutex;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// See the [module](self). Clones share the file.
#[derive(Clone, Debug)]
pub(crate) struct Append(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// The open file; `None` after an error.
    file: Option<File>,
    /// The length of the file when everything that was pushed has been written. `None` if nothing was pushed.
    end: Option<u64>,
    /// The lines after a checkpoint that a crashed process has written. They are produced again.
    written: Option<BufReader<File>>,
}

impl Append {
    pub(crate) fn new(path: PathBuf) -> Append {
        Append(Arc::new(Mutex::new(Inner {
            path,
            file: None,
            end: None,
            written: None,
        })))
    }

    /// Records that this many bytes will be appended.
    pub(crate) fn pushed(&self, bytes: usize) {
        let mut inner = self.0.lock();
        // The length is requested from the system only once, not for each line.
        let end = inner.end.unwrap_or_else(|| inner.length());
        inner.end = Some(end + bytes as u64);
    }

    /// Records that this many bytes will not be appended after all.
    pub(crate) fn dropped(&self, bytes: usize) {
        if let Some(end) = &mut self.0.lock().end {
            *end = end.saturating_sub(bytes as u64);
        }
    }

    /// Returns the length of the file when everything that was pushed has been written.
    pub(crate) fn end(&self) -> u64 {
        let inner = self.0.lock();
        inner.end.unwrap_or_else(|| inner.length())
    }

    /// Continues after this length, which a checkpoint has stored. Lines that are already in the file after
    /// it are not appended again.
    pub(crate) fn restore(&self, length: u64) {
        let mut inner = self.0.lock();
        let found = inner.length();
        inner.end = Some(length.min(found));
        if found > length
            && let Ok(mut file) = File::open(&inner.path)
            && file.seek(SeekFrom::Start(length)).is_ok()
        {
            inner.written = Some(BufReader::new(file));
        }
    }

    /// Appends lines, unless they are already in the file. Returns whether they are in the file.
    pub(crate) fn append(&self, text: &str) -> bool {
        let mut inner = self.0.lock();
        let appended = inner.append(text);
        if let Err(error) = &appended {
            tracing::warn!("{}: {error}", inner.path.display());
            // The next call opens the file again.
            inner.file = None;
        }
        appended.is_ok()
    }

    /// Waits until the appended data are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let file = match &self.0.lock().file {
            Some(file) => file.try_clone()?,
            None => return Ok(()),
        };
        file.sync_data()
    }
}

impl Inner {
    fn length(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |data| data.len())
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        let Some(missing) = self.missing(text) else {
            return Ok(());
        };
        self.leave_if_moved()?;
        if self.file.is_none() {
            let file = File::options().create(true).append(true).open(&self.path);
            self.file = Some(file?);
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let before = file.metadata()?.len();
        file.write_all(missing.as_bytes()).inspect_err(|_| {
            // Removes the torn line, so that a later attempt writes it exactly once. Lines of other writers can only
            // be before it.
            let _ = file.set_len(before);
        })
    }

    /// Closes a file that is no longer at its path.
    fn leave_if_moved(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let left = file.metadata()?;
        if is_at(&self.path, &left) {
            return Ok(());
        }
        // The next checkpoint syncs only the new file.
        file.sync_data()?;
        let found = self.length();
        self.end = self.end.map(|end| end.saturating_sub(left.len()) + found);
        self.file = None;
        Ok(())
    }

    /// Returns the part of the text that the file does not contain yet; `None` if it contains all of it.
    fn missing<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let Some(written) = &mut self.written else {
            return Some(text);
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            // There may be lines of other writers in between.
            match written.read_until(b'\n', &mut line) {
                Ok(1..) if line == text.as_bytes() => return None,
                Ok(1..) if line.ends_with(b"\n") => {}
                Ok(_) => {
                    self.written = None;
                    let torn = text.as_bytes().starts_with(&line) && !line.is_empty();
                    return Some(if torn { &text[line.len()..] } else { text });
                }
                Err(_) => {
                    self.written = None;
                    return Some(text);
                }
            }
        }
    }
}

/// True if `path` leads to the file with this metadata.
#[cfg(unix)]
fn is_at(path: &Path, file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path)
        .is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
}

/// True if `path` leads to a file; an open file cannot be renamed here.
#[cfg(not(unix))]
fn is_at(path: &Path, _: &Metadata) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_behind_a_checkpoint_are_written_once_wherever_a_crash_has_cut_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let lines: Vec<String> = (0..8).map(|at| format!("line {at}\n")).collect();
        let whole = lines.concat();
        for checkpoint in 0..=lines.len() {
            let length = lines[..checkpoint].concat().len();
            for cut in length..=whole.len() {
                std::fs::write(&path, &whole[..cut]).unwrap();
                let file = Append::new(path.clone());
                file.restore(length as u64);
                for line in &lines[checkpoint..] {
                    file.pushed(line.len());
                    assert!(file.append(line));
                }
                assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
                assert_eq!(file.end(), whole.len() as u64);
            }
        }
    }

    #[test]
    fn lines_of_other_writers_stay_and_hide_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "a\nother\nb\n").unwrap();
        let file = Append::new(path.clone());
        file.restore(2);
        assert!(file.append("b\n") && file.append("c\n"));
        let found = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found, "a\nother\nb\nc\n");
    }

    #[test]
    fn a_file_that_was_rotated_away_begins_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = Append::new(path.clone());
        file.restore(1000);
        assert!(file.append("a\n"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
    }

    #[test]
    fn a_file_that_is_rotated_while_lines_come_is_continued_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = Append::new(path.clone());
        for line in ["a\n", "b\n"] {
            file.pushed(line.len());
            assert!(file.append(line));
        }
        file.pushed(2);
        std::fs::rename(&path, dir.path().join("log.1")).unwrap();
        assert!(file.append("c\n"));
        file.pushed(3);
        // The checkpoint's position is in the new file, behind the lines that are still to be appended.
        assert_eq!(file.end(), 5);
        std::fs::rename(&path, dir.path().join("log.2")).unwrap();
        std::fs::write(&path, "of another writer\n").unwrap();
        assert!(file.append("dd\n"));
        let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("log.1"), "a\nb\n");
        assert_eq!(read("log.2"), "c\n");
        assert_eq!(read("log"), "of another writer\ndd\n");
    }
}
