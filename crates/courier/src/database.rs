//! Files of redb: the log and the index each are one.

use crate::error::StartError;
use crate::guard::guard;
use redb::Database;
use redb::backends::InMemoryBackend;
use std::path::{Path, PathBuf};

/// Opens a file in this directory, or makes it; without a directory it is in memory. redb keeps
/// `cache` bytes of its pages in memory. With it comes the path to show to people.
///
/// # Errors
/// [`StartError::InUse`] if another process has it open, [`StartError::Database`] if it cannot be
/// read or made.
pub(crate) fn open(
    dir: Option<&Path>,
    file: &str,
    cache: usize,
) -> Result<(Database, PathBuf), StartError> {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    let (opened, path) = match dir {
        Some(dir) => {
            let path = dir.join(file);
            (guard(|| Ok(builder.create(&path)?)), path)
        }
        None => {
            let opened = builder.create_with_backend(InMemoryBackend::new());
            (opened.map_err(redb::Error::from), PathBuf::from("(memory)"))
        }
    };
    match opened {
        Ok(database) => Ok((database, path)),
        Err(error) => Err(StartError::database(&path, error)),
    }
}
