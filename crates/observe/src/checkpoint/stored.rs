//! A part of a saved run that is read from its file when needed.

use super::{CheckpointError, SavedFile};
use corsair::StoredPart;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file from which only the needed bytes are read. The file stays open, so it can be read even after its name is
/// removed.
pub(super) struct StoredFile {
    path: PathBuf,
    bytes: u64,
    file: Mutex<File>,
}

impl StoredFile {
    /// Opens a file if its length matches the manifest.
    pub(super) fn open(path: PathBuf, saved: &SavedFile) -> Result<StoredFile, CheckpointError> {
        check_length(&path, saved.bytes, u64::eq)?;
        match File::open(&path) {
            Ok(file) => Ok(StoredFile {
                path,
                bytes: saved.bytes,
                file: Mutex::new(file),
            }),
            Err(error) => Err(CheckpointError::Read { path, error }),
        }
    }
}

/// Checks the length of a file.
pub(super) fn check_length(
    path: &Path,
    saved: u64,
    fits: impl Fn(&u64, &u64) -> bool,
) -> Result<(), CheckpointError> {
    let path = path.to_owned();
    match fs::metadata(&path) {
        Ok(found) if fits(&found.len(), &saved) => Ok(()),
        Ok(found) => {
            let bytes = found.len();
            Err(CheckpointError::Length { path, bytes, saved })
        }
        Err(error) => Err(CheckpointError::Read { path, error }),
    }
}

impl StoredPart for StoredFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }
}
