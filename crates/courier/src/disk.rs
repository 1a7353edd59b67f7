//! Measures the free space on the disk of the data. While the free space is too small, changes are refused.
//!
//! A database whose disk is full must be reopened before it works again. So the node refuses changes while
//! some space is left, reports it, and recovers by itself when space is free.

use crate::error::StartError;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The time for which the system's answer is reused.
const FRESH: Duration = Duration::from_millis(100);

/// The free space on the disk. See the [module](self).
#[derive(Debug)]
pub(crate) struct Disk {
    /// The directory; `None` if the data are in memory.
    directory: Option<PathBuf>,
    reserve: u64,
    /// The time of the last query, and the free bytes at that time.
    looked: Mutex<Option<(Instant, u64)>>,
    /// True if the log already contains a message that the disk is full.
    is_logged: AtomicBool,
}

impl Disk {
    pub fn new(directory: Option<&Path>, reserve: u64) -> Disk {
        Disk {
            directory: directory.map(Path::to_owned),
            reserve,
            looked: Mutex::default(),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Checks that this many bytes can be written while the reserve stays free.
    pub fn has(&self, bytes: u64) -> bool {
        let Some(directory) = &self.directory else {
            return true;
        };
        let free = free(directory).unwrap_or(u64::MAX);
        free >= self.reserve.saturating_add(bytes)
    }

    /// Checks that the disk has space for further changes.
    ///
    /// # Errors
    /// A sentence with the available and the required space.
    pub fn room(&self) -> Result<(), String> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let mut looked = self.looked.lock();
        let free = match *looked {
            Some((when, free)) if when.elapsed() < FRESH => free,
            _ => {
                // If the system does not report the free space, a later write shows whether the disk is full.
                let free = free(directory).unwrap_or(u64::MAX);
                *looked = Some((Instant::now(), free));
                free
            }
        };
        drop(looked);
        let is_full = free < self.reserve;
        let was_full = self.is_logged.swap(is_full, Relaxed);
        if !is_full {
            if was_full {
                tracing::warn!("{} has space again", directory.display());
            }
            return Ok(());
        }
        let reason = format!(
            "the disk of {} is full: {} MB are free, and {} MB must stay free; free some space and try again",
            directory.display(),
            free >> 20,
            self.reserve >> 20,
        );
        if !was_full {
            tracing::warn!("writes are refused with 503: {reason}");
        }
        Err(reason)
    }
}

#[cfg(unix)]
fn free(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

/// Runs a blocking closure on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StartError::Thread(error.into()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_and_enough_is_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Disk::new(Some(dir.path()), 0).room(), Ok(()));
        assert_eq!(Disk::new(None, u64::MAX).room(), Ok(()));
        assert!(Disk::new(Some(dir.path()), 0).has(1));
        assert!(!Disk::new(Some(dir.path()), 0).has(u64::MAX - 1));
        let said = Disk::new(Some(dir.path()), u64::MAX).room().unwrap_err();
        assert!(
            said.contains("is full") && said.contains("free some space"),
            "{said}"
        );
    }
}
