//! The data directory of a server: tasks that were added over HTTP, and the last checkpoint.
//!
//! ```text
//! DIRECTORY/lock               locked by the process that uses the directory
//! DIRECTORY/tasks/NAME.json    {"text", "capacity", "overflow"}
//! DIRECTORY/saved              the state of all tasks, see `engine::Saved`
//! ```
//! A file appears whole or not at all.

use crate::engine::{Saved, SavedError, TaskOptions};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// See the [module](self).
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Locked as long as this exists, so that no other process uses the directory.
    _lock: File,
}

/// A task as it is kept.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Kept {
    text: String,
    capacity: NonZeroUsize,
    overflow: String,
}

/// A task that is kept: its name, and its text and options.
pub type KeptTask = (String, Result<(String, TaskOptions), StoreError>);

/// Why something that was kept cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "another process uses {directory} as its data directory; stop it, or name another directory"
    )]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// A file with a task has something else in it.
    #[error("{path} is not a task file ({reason}); delete it and add the task again")]
    Task {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What was saved at the last stop cannot be read.
    #[error("{path}: {error}; move it away to start without it")]
    Saved {
        /// Which.
        path: PathBuf,
        /// Why.
        error: SavedError,
    },
}

impl Store {
    /// Opens the data directory at this path, and creates it if it does not exist. No other process can open
    /// it until this one drops the store, or ends.
    ///
    /// # Errors
    /// If it cannot be created, or another process uses it.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Store, StoreError> {
        let directory = directory.into();
        let tasks = directory.join("tasks");
        fs::create_dir_all(&tasks).map_err(at(&tasks))?;
        let path = directory.join("lock");
        let lock = File::create(&path).map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Store {
                directory,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { directory }),
            Err(TryLockError::Error(error)) => Err(StoreError::File { path, error }),
        }
    }

    /// Keeps a task.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub fn put(&self, name: &str, text: &str, options: TaskOptions) -> io::Result<()> {
        let kept = Kept {
            text: text.into(),
            capacity: options.capacity,
            overflow: options.overflow.to_string(),
        };
        let json = serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?;
        write_whole(&self.task(name), &json)
    }

    /// Keeps a task no longer.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.task(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// All tasks, by name.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn tasks(&self) -> Result<Vec<KeptTask>, StoreError> {
        let directory = self.directory.join("tasks");
        let mut tasks = Vec::new();
        for entry in fs::read_dir(&directory).map_err(at(&directory))? {
            let path = entry.map_err(at(&directory))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(name) = name.and_then(|name| name.strip_suffix(".json")) {
                tasks.push((name.to_owned(), read_task(&path)));
            }
        }
        tasks.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(tasks)
    }

    /// What was saved at the last stop, if anything was.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn saved(&self) -> Result<Option<Saved>, StoreError> {
        let path = self.directory.join("saved");
        match fs::read(&path) {
            Ok(bytes) => Saved::from_bytes(&bytes)
                .map(Some)
                .map_err(|error| StoreError::Saved { path, error }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }

    /// Saves what is left, in place of what was saved before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, saved: &Saved) -> Result<(), StoreError> {
        self.save_bytes(&saved.to_bytes())
    }

    /// Saves what [`Saved::to_bytes`] returned, in place of what was saved before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_bytes(&self, saved: &[u8]) -> Result<(), StoreError> {
        let path = self.directory.join("saved");
        write_whole(&path, saved).map_err(at(&path))
    }

    /// Forgets what was saved: it has been taken up.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn forget_saved(&self) -> Result<(), StoreError> {
        let path = self.directory.join("saved");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::File { path, error })
            }
            _ => Ok(()),
        }
    }

    fn task(&self, name: &str) -> PathBuf {
        self.directory.join("tasks").join(format!("{name}.json"))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |error| StoreError::File { path, error }
}

fn read_task(path: &Path) -> Result<(String, TaskOptions), StoreError> {
    let bytes = fs::read(path).map_err(at(path))?;
    let wrong = |reason: String| StoreError::Task {
        path: path.to_owned(),
        reason,
    };
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let overflow = kept.overflow.parse();
    let options = TaskOptions {
        capacity: kept.capacity,
        overflow: overflow.map_err(|error| wrong(format!("{error}")))?,
    };
    Ok((kept.text, options))
}

/// Writes a file beside the one of this name, and puts it in its place once it is on disk.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
