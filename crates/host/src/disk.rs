//! What the disk of a host is like.

use std::time::Duration;

/// The disk of a host: its size, its speed and its faults.
///
/// Whatever these settings are, a program may rely on what the manual of `fsync` promises and on nothing else. Data that
/// was not synced may be lost at a [power loss](crate::Fault::power_loss), in any order and in units of 512 bytes; a name
/// that was created, changed or removed is durable when its directory was synced.
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
    /// A disk of a tebibyte without faults, which syncs in a millisecond.
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

    /// The settings as bytes, for the host's process.
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

    /// The settings that [`Disk::to_bytes`] wrote.
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

    /// Bytes that files may have in total. Beyond, writes fail with `ENOSPC`.
    #[must_use]
    pub const fn capacity(self, bytes: u64) -> Disk {
        Disk {
            capacity: bytes,
            ..self
        }
    }

    /// Time that `fsync`, `fdatasync`, `msync` and `sync` take.
    #[must_use]
    pub const fn sync_time(self, time: Duration) -> Disk {
        Disk {
            sync_nanos: time.as_nanos() as u64,
            ..self
        }
    }

    /// Time that each read or write of a file takes; none by default, because the page cache serves it.
    #[must_use]
    pub const fn access_time(self, time: Duration) -> Disk {
        Disk {
            access_nanos: time.as_nanos() as u64,
            ..self
        }
    }

    /// Reads and writes of 1,000 that transfer less than they were asked for.
    #[must_use]
    pub const fn short_transfers(self, per_thousand: u32) -> Disk {
        Disk {
            short: per_thousand,
            ..self
        }
    }

    /// Reads of 1,000 that fail with `EIO`.
    #[must_use]
    pub const fn read_errors(self, per_thousand: u32) -> Disk {
        Disk {
            read_errors: per_thousand,
            ..self
        }
    }

    /// Writes of 1,000 that fail with `EIO`.
    #[must_use]
    pub const fn write_errors(self, per_thousand: u32) -> Disk {
        Disk {
            write_errors: per_thousand,
            ..self
        }
    }

    /// Syncs of 1,000 that fail with `EIO`. As in Linux, the data that was to be synced is then considered clean: a
    /// second `fsync` succeeds, and the data may be lost all the same.
    #[must_use]
    pub const fn sync_errors(self, per_thousand: u32) -> Disk {
        Disk {
            sync_errors: per_thousand,
            ..self
        }
    }

    /// Whether any sync also makes all earlier changes of names durable, as ext4 and XFS do. The manual of `fsync`
    /// does not promise this, so the default is `false`.
    #[must_use]
    pub const fn syncs_names(self, yes: bool) -> Disk {
        Disk {
            syncs_names: yes,
            ..self
        }
    }
}
