//! The properties of a host's disk.

use std::time::Duration;

/// The disk of a host: its size, its speed and its faults.
///
/// With any settings, a program may rely only on the guarantees in the manual of `fsync`. Data that was not synced may
/// be lost at a [power loss](crate::Fault::power_loss), in any order and in units of 512 bytes. A name that was
/// created, changed or removed is durable once its directory has been synced.
///
/// ```
/// use corsair_host::Disk;
/// use std::time::Duration;
///
/// let slow = Disk::new().sync_time(Duration::from_millis(30)).capacity(64 << 20);
/// let failing = slow.sync_errors(10); // 1 of 100
/// assert_ne!(slow, failing);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub(crate) capacity: u64,
    pub(crate) sync_nanos: u64,
    pub(crate) access_nanos: u64,
    pub(crate) short: u32,
    pub(crate) read_errors: u32,
    pub(crate) write_errors: u32,
    pub(crate) sync_errors: u32,
    pub(crate) syncs_names: bool,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

impl Disk {
    /// Creates a disk of one tebibyte without faults. Each sync takes a millisecond.
    pub const fn new() -> Disk {
        Disk {
            capacity: 1 << 40,
            sync_nanos: 1_000_000,
            access_nanos: 0,
            short: 0,
            read_errors: 0,
            write_errors: 0,
            sync_errors: 0,
            syncs_names: false,
        }
    }

    /// Serializes the settings for the host's process.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let numbers = [
            self.capacity,
            self.sync_nanos,
            self.access_nanos,
            self.short.into(),
            self.read_errors.into(),
            self.write_errors.into(),
            self.sync_errors.into(),
            self.syncs_names.into(),
        ];
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    /// Reads the settings that [`Disk::to_bytes`] has written.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Disk> {
        let mut reader = crate::packet::Reader(bytes);
        Some(Disk {
            capacity: reader.u64()?,
            sync_nanos: reader.u64()?,
            access_nanos: reader.u64()?,
            short: reader.u64()? as u32,
            read_errors: reader.u64()? as u32,
            write_errors: reader.u64()? as u32,
            sync_errors: reader.u64()? as u32,
            syncs_names: reader.u64()? != 0,
        })
    }

    /// Sets the maximum total size of all files in bytes. Writes beyond this size fail with `ENOSPC`.
    #[must_use]
    pub const fn capacity(self, bytes: u64) -> Disk {
        Disk {
            capacity: bytes,
            ..self
        }
    }

    /// Sets the time that `fsync`, `fdatasync`, `msync` and `sync` take.
    #[must_use]
    pub const fn sync_time(self, time: Duration) -> Disk {
        Disk {
            sync_nanos: time.as_nanos() as u64,
            ..self
        }
    }

    /// Sets the time that each read or write of a file takes. By default they take no time, because the page cache
    /// serves them.
    #[must_use]
    pub const fn access_time(self, time: Duration) -> Disk {
        Disk {
            access_nanos: time.as_nanos() as u64,
            ..self
        }
    }

    /// Sets how many of 1,000 reads and writes transfer less than requested.
    #[must_use]
    pub const fn short_transfers(self, per_thousand: u32) -> Disk {
        Disk {
            short: per_thousand,
            ..self
        }
    }

    /// Sets how many of 1,000 reads fail with `EIO`.
    #[must_use]
    pub const fn read_errors(self, per_thousand: u32) -> Disk {
        Disk {
            read_errors: per_thousand,
            ..self
        }
    }

    /// Sets how many of 1,000 writes fail with `EIO`.
    #[must_use]
    pub const fn write_errors(self, per_thousand: u32) -> Disk {
        Disk {
            write_errors: per_thousand,
            ..self
        }
    }

    /// Sets how many of 1,000 syncs fail with `EIO`. As in Linux, the data is then considered clean: a second `fsync`
    /// succeeds, although the data may be lost.
    #[must_use]
    pub const fn sync_errors(self, per_thousand: u32) -> Disk {
        Disk {
            sync_errors: per_thousand,
            ..self
        }
    }

    /// Sets whether any sync also makes all earlier changes of names durable, as on ext4 and XFS. The manual of `fsync`
    /// does not guarantee this, so the default is `false`.
    #[must_use]
    pub const fn syncs_names(self, yes: bool) -> Disk {
        Disk {
            syncs_names: yes,
            ..self
        }
    }
}
