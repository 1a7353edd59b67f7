//! Database files of redb.

use crate::error::StartError;
use crate::guard::guard;
use corsair_journal::private_file;
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{BackendError, Builder, Database, StorageBackend};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Opens or creates a database file in this directory; without a directory the database is in memory. redb caches
/// `cache` bytes of its pages. Returns the database with its path for messages.
///
/// # Errors
/// [`StartError::InUse`] if another process has it open, [`StartError::Database`] if it cannot be read or
/// created.
pub(crate) fn open(
    dir: Option<&Path>,
    file: &str,
    cache: usize,
) -> Result<(Database, PathBuf), StartError> {
    let (opened, path) = match dir {
        Some(dir) => {
            let path = dir.join(file);
            (guard(|| open_file(&path, cache)), path)
        }
        None => {
            let opened = builder(cache).create_with_backend(InMemoryBackend::new());
            (opened.map_err(redb::Error::from), PathBuf::from("(memory)"))
        }
    };
    match opened {
        Ok(database) => Ok((database, path)),
        Err(error) => Err(StartError::database(&path, error)),
    }
}

/// Opens this file, or creates it.
pub(crate) fn open_file(path: &Path, cache: usize) -> Result<Database, redb::Error> {
    let mut options = private_file();
    let file = options.read(true).truncate(false);
    let file = InParts {
        file: FileBackend::new(file.open(path)?)?,
        written: AtomicUsize::new(0),
    };
    Ok(builder(cache).create_with_backend(file)?)
}

fn builder(cache: usize) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    builder
}

/// The number of bytes in a part.
const PART: usize = 1 << 20;
/// The longest pause after a part.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A file that is written to disk in parts. After each part, there is a pause that is as long as the write of this
/// part.
///
/// A commit writes up to a hundred megabytes. If all of them were written at once, they would delay the small writes of
/// the log, for which clients wait.
#[derive(Debug)]
struct InParts {
    file: FileBackend,
    /// The number of bytes written since the last pause.
    written: AtomicUsize,
}

impl StorageBackend for InParts {
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)?;
        let before = self.written.fetch_add(data.len(), Relaxed);
        if before < PART && before + data.len() >= PART {
            let begun = Instant::now();
            self.sync_data()?;
            std::thread::sleep(begun.elapsed().min(LONGEST_PAUSE));
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.written.store(0, Relaxed);
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::TableDefinition;

    const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

    #[test]
    fn what_goes_to_disk_in_parts_is_there_and_one_process_has_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (database, path) = open(Some(dir.path()), "file", 1 << 20).unwrap();
        let txn = database.begin_write().unwrap();
        {
            let mut rows = txn.open_table(ROWS).unwrap();
            for key in 0..64 {
                rows.insert(key, [key as u8; 100_000].as_slice()).unwrap();
            }
        }
        txn.commit().unwrap();
        let said = open(Some(dir.path()), "file", 1 << 20).map(drop);
        assert!(matches!(said, Err(StartError::InUse { .. })));
        drop(database);
        let database = open_file(&path, 1 << 20).unwrap();
        let rows = redb::ReadableDatabase::begin_read(&database).unwrap();
        let rows = rows.open_table(ROWS).unwrap();
        for key in 0..64 {
            let row = redb::ReadableTable::get(&rows, key).unwrap().unwrap();
            assert_eq!(row.value(), [key as u8; 100_000]);
        }
    }
}
