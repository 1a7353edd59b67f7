//! The data directory of a server: tasks that were added over HTTP, and the last checkpoint.
//!
//! ```text
//! DIRECTORY/lock               locked by the process that uses the directory
//! DIRECTORY/tasks/NAME.json    {"text", "capacity", "overflow", "origin", "checksum"}
//! DIRECTORY/log/               the writes behind the last checkpoint, see `corsair_journal`
//! DIRECTORY/saved              the state of all tasks, see `engine::EngineSnapshot`
//! ```
//! A file appears complete or not at all.

use crate::engine::{EngineSnapshot, SavedError, TaskOptions, TaskOrigin};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// See the [module](self).
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Locked while the store exists, so that no other process uses the directory.
    _lock: File,
}

/// The contents of a task's file.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct TaskFile {
    text: String,
    capacity: NonZeroUsize,
    overflow: String,
    /// The origin of the task; missing in files of earlier versions.
    origin: Option<TaskOrigin>,
    /// The CRC-32 of the text; missing in files that were written by hand.
    checksum: Option<u32>,
    /// True for a task that does not run.
    #[serde(default)]
    disabled: bool,
}

/// A stored task.
#[derive(Clone, Debug)]
pub struct StoredTask {
    /// The text of the task.
    pub text: String,
    /// The options of the task.
    pub options: TaskOptions,
    /// The origin of the task, if the file contains it.
    pub origin: Option<TaskOrigin>,
    /// False for a task that is defined but disabled.
    pub enabled: bool,
}

/// A stored task, or the reason why its file cannot be used.
pub type TaskResult = Result<StoredTask, StoreError>;

/// An error of a data directory or a file in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "another process uses {directory} as its data directory; stop it, or name another directory"
    )]
    Locked {
        /// The path of the data directory.
        directory: PathBuf,
    },
    /// The file of a task is damaged, or contains something else.
    #[error("{path} is not a task file ({reason}); delete it and add the task again")]
    Task {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the file is not a task file.
        reason: String,
    },
    /// The saved state of the tasks cannot be read.
    #[error("{path}: {error}; move it away to start without it")]
    Saved {
        /// The path of the file.
        path: PathBuf,
        /// The reason why the state cannot be read.
        error: SavedError,
    },
}

impl Store {
    /// Opens the data directory at this path, and creates it if it does not exist. No other process can open
    /// it until this one drops the store, or ends.
    ///
    /// # Errors
    /// If the directory cannot be created, or another process uses it.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Store, StoreError> {
        let directory = directory.into();
        let tasks = directory.join("tasks");
        corsair_journal::durable_directory(&tasks).map_err(at(&tasks))?;
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

    /// Returns the directory of the write-ahead log.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Stores a task.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&self, name: &str, task: &StoredTask) -> io::Result<()> {
        let file = TaskFile {
            text: task.text.clone(),
            capacity: task.options.capacity,
            overflow: task.options.overflow.to_string(),
            origin: task.origin.clone(),
            checksum: Some(crc32fast::hash(task.text.as_bytes())),
            disabled: !task.enabled,
        };
        let json = serde_json::to_vec_pretty(&file).map_err(io::Error::other)?;
        write_whole(&self.task(name), &json)
    }

    /// Removes a stored task.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.task(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads all stored tasks, in the order of their names.
    ///
    /// # Errors
    /// If the directory cannot be read. A file that cannot be used is returned as an error with its name.
    pub fn tasks(&self) -> Result<Vec<(String, TaskResult)>, StoreError> {
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

    /// Reads the saved state of the tasks; `None` if there is none.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn saved(&self) -> Result<Option<EngineSnapshot>, StoreError> {
        let path = self.directory.join("saved");
        match fs::read(&path) {
            Ok(bytes) => EngineSnapshot::from_bytes(&bytes)
                .map(Some)
                .map_err(|error| StoreError::Saved { path, error }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::File { path, error }),
        }
    }

    /// Replaces the saved state of the tasks.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, saved: &EngineSnapshot) -> Result<(), StoreError> {
        self.save_bytes(&saved.to_bytes())
    }

    /// Replaces the saved state of the tasks by the result of [`EngineSnapshot::to_bytes`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_bytes(&self, saved: &[u8]) -> Result<(), StoreError> {
        let path = self.directory.join("saved");
        write_whole(&path, saved).map_err(at(&path))
    }

    fn task(&self, name: &str) -> PathBuf {
        self.directory.join("tasks").join(format!("{name}.json"))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |error| StoreError::File { path, error }
}

fn read_task(path: &Path) -> Result<StoredTask, StoreError> {
    let bytes = fs::read(path).map_err(at(path))?;
    let wrong = |reason: String| StoreError::Task {
        path: path.to_owned(),
        reason,
    };
    let file: TaskFile =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let sum = crc32fast::hash(file.text.as_bytes());
    if file.checksum.is_some_and(|checksum| checksum != sum) {
        return Err(wrong("its text does not have its checksum".into()));
    }
    let overflow = file.overflow.parse();
    let options = TaskOptions {
        capacity: file.capacity,
        overflow: overflow.map_err(|error| wrong(format!("{error}")))?,
    };
    Ok(StoredTask {
        text: file.text,
        options,
        origin: file.origin,
        enabled: !file.disabled,
    })
}

/// Writes a temporary file, and renames it when it is on disk.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // Syncs the directory, so that the new name is also on disk.
    match (cfg!(unix), path.parent()) {
        (true, Some(directory)) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}
