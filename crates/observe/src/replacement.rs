//! Files that appear under their names only when they are complete.
//!
//! A file is written under a temporary name in the same directory, and renamed when it is complete. Until then, an
//! older file with that name stays unchanged. If the run fails, the temporary file is removed. The next process that
//! writes the file removes the temporary files of killed processes. It recognizes them because each process locks its
//! files: a file that can be locked belongs to no running process.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The reasons why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file or its directory could not be created.
    #[error("cannot write {}: {error}; choose another place, or change its permissions", .path.display())]
    Create {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Writing failed.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// A file that is being written and will replace the file at its final path.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    beside: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Replacement {
    /// Creates the temporary file next to `path`, and the directory if it is missing.
    ///
    /// # Errors
    /// If the directory or the file cannot be created, or `path` is a directory.
    pub fn begin(path: &Path) -> Result<Replacement, FileError> {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let cannot = |path: &Path, error| FileError::Create {
            path: path.to_owned(),
            error,
        };
        if let Some(directory) = directory {
            std::fs::create_dir_all(directory).map_err(|error| cannot(directory, error))?;
        }
        let name = path.file_name().filter(|_| !path.is_dir());
        let name = name.ok_or_else(|| cannot(path, io::Error::other("it is a directory")))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let created = create_beside(path, &prefix);
        let (beside, file) = created.map_err(|error| cannot(path, error))?;
        let file = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Replacement {
            path: path.to_owned(),
            beside,
            file,
        })
    }

    /// Returns the writer.
    ///
    /// # Panics
    /// If called after [`finish`](Replacement::finish).
    pub fn writer(&mut self) -> &mut impl Write {
        self.file
            .as_mut()
            .expect("the file is open until it is finished")
    }

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// If buffered data cannot be written, or the file cannot be renamed.
    pub fn finish(mut self) -> Result<(), FileError> {
        let written = match self.file.take() {
            Some(file) => file
                .into_inner()
                .map(drop)
                .map_err(io::IntoInnerError::into_error),
            None => Ok(()),
        };
        written
            .and_then(|()| std::fs::rename(&self.beside, &self.path))
            .map_err(|error| self.failed(error))
    }

    /// Returns the temporary path.
    pub(crate) fn beside(&self) -> &Path {
        &self.beside
    }

    /// Returns the final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Converts an error of the operating system to the error that writing this file failed.
    pub fn failed(&self, error: io::Error) -> FileError {
        FileError::Write {
            path: self.path.clone(),
            error,
        }
    }
}

/// Creates a temporary file in the directory of `path`, readable and writable, whose name is `prefix` and the number of
/// this process. Removes files with the same prefix that killed processes have left.
///
/// # Errors
/// If the file cannot be created.
pub(crate) fn create_beside(path: &Path, prefix: &str) -> io::Result<(PathBuf, File)> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    remove_left(directory.unwrap_or(Path::new(".")), |name| {
        let number = name.strip_prefix(prefix).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let beside = path.with_file_name(format!("{prefix}{}", std::process::id()));
    // An existing file may be part of a checkpoint, so it is never reused.
    let file = create_locked(&beside)?;
    Ok((beside, file))
}

/// Creates a file and locks it, so that no other process removes it as a leftover.
fn create_locked(path: &Path) -> io::Result<File> {
    let mut tries = 0;
    loop {
        let created = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        match created {
            Ok(file) => {
                // On systems that cannot lock files, no file counts as a leftover.
                let _ = file.try_lock();
                // Another process may have locked and removed the file in between.
                if path.exists() {
                    return Ok(file);
                }
            }
            // The name is used by an earlier process with the same number, or by another file of this process.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(path)?;
            }
            Err(error) => return Err(error),
        }
        tries += 1;
        if tries == 10 {
            return Err(io::Error::other("another process keeps removing it"));
        }
    }
}

/// Removes the files and directories for which `is_one` is true if the processes that wrote them have ended.
pub(crate) fn remove_left(directory: &Path, is_one: impl Fn(&str) -> bool) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let is_left = || File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if name.to_str().is_some_and(&is_one) && is_left() {
            // A file that another process has just removed needs no removal.
            let _ = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.writer().write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Removal fails if the temporary file was already renamed, which is not an error.
        let _ = std::fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: observe-9.
    #[test]
    fn the_old_file_stays_until_the_new_one_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/graph.json");
        let write = |text: &str, finish: bool| {
            let mut file = Replacement::begin(&path).unwrap();
            file.writer().write_all(text.as_bytes()).unwrap();
            if finish {
                file.finish().unwrap();
            }
            std::fs::read_to_string(&path).ok()
        };
        assert_eq!(write("one", false), None);
        assert_eq!(write("two", true).as_deref(), Some("two"));
        assert_eq!(write("three", false).as_deref(), Some("two"));
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
    }

    // Guarantee: cluster-7.
    #[test]
    fn what_a_killed_process_has_left_is_removed_and_what_another_one_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("graph.json");
        let beside = |name: &str| directory.path().join(name);
        for left in [
            ".graph.json.1",
            ".graph.json.4000000",
            ".other.json.1",
            ".graph.json.x",
        ] {
            std::fs::write(beside(left), "left").unwrap();
        }
        let written = File::create(beside(".graph.json.2")).unwrap();
        written.lock().unwrap();
        // A file with this process's number, which is part of a checkpoint.
        let own = beside(&format!(".graph.json.{}", std::process::id()));
        std::fs::write(&own, "begun").unwrap();
        std::fs::hard_link(&own, beside("checkpoint")).unwrap();
        let mut file = Replacement::begin(&path).unwrap();
        file.writer().write_all(b"new").unwrap();
        file.finish().unwrap();
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let stay = [
            ".graph.json.2",
            ".graph.json.x",
            ".other.json.1",
            "checkpoint",
            "graph.json",
        ];
        assert_eq!(names, stay);
        assert_eq!(std::fs::read(beside("checkpoint")).unwrap(), b"begun");
    }

    #[test]
    fn a_directory_in_the_way_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let said = Replacement::begin(directory.path())
            .unwrap_err()
            .to_string();
        assert!(said.contains("it is a directory"), "{said}");
    }
}
