//! The medium of all simulated disks: one file in memory, which outlives the processes of hosts.
//!
//! The file is sparse: each host has a range of 2^48 bytes, and each file of a host a slot of 2^34 bytes in it. The
//! lower half of a slot holds the version that programs see, the upper half the version on the disk.
#![allow(unsafe_code, reason = "reads and writes a file in memory")]

use crate::raw::{args, raw};
use std::io;

const HOST_BITS: u32 = 48;
const SLOT_BITS: u32 = 34;

/// The number of slots of a host, which is also the maximum number of its files.
pub(crate) const SLOTS: u32 = 1 << (HOST_BITS - SLOT_BITS);
/// The maximum size of a file in bytes.
pub(crate) const MOST_BYTES: u64 = 1 << (SLOT_BITS - 1);
/// The maximum size of the journal, which has slot 0, in bytes.
pub(crate) const JOURNAL: usize = 256 << 20;
/// The maximum number of hosts of a simulation.
const MOST_HOSTS: usize = 1 << (63 - HOST_BITS);

/// The size of the buffer for copying within the medium.
const CHUNK: u64 = 256 << 10;

/// One of the two versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version that programs read and write: the page cache.
    Live,
    /// The version on the disk.
    Durable,
}

/// The part of the medium that belongs to one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    fd: i32,
    host: usize,
}

impl Medium {
    /// Creates a medium for all hosts. It is never closed, because each process has one simulation.
    pub(crate) fn new() -> io::Result<Medium> {
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(c"corsair-disks".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: this function has just created the descriptor.
        if fd < 0 || unsafe { libc::ftruncate64(fd, i64::MAX & !0xfff) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Medium { fd, host: 0 })
    }

    /// Opens the medium in a file that another process has created, by its descriptor.
    pub(crate) fn open(fd: i32) -> Medium {
        Medium { fd, host: 0 }
    }

    /// Returns the part of the medium that belongs to a host; `None` if there are too many hosts.
    pub(crate) fn of_host(self, host: usize) -> Option<Medium> {
        (host < MOST_HOSTS).then_some(Medium { host, ..self })
    }

    /// Returns the real descriptor, for mappings.
    pub(crate) fn fd(self) -> i32 {
        self.fd
    }

    /// Returns the offset at which a version of a file begins.
    pub(crate) fn offset(self, slot: u32, version: Version) -> u64 {
        let half = match version {
            Version::Live => 0,
            Version::Durable => MOST_BYTES,
        };
        ((self.host as u64) << HOST_BITS) + (u64::from(slot) << SLOT_BITS) + half
    }

    /// Reads into memory at an address. Returns the result of the kernel.
    pub(crate) fn read_to(self, slot: u32, at: u64, address: usize, length: usize) -> isize {
        let offset = self.offset(slot, Version::Live) + at;
        let args = args([self.fd as usize, address, length, offset as usize]);
        // SAFETY: the real kernel checks that the program may write to the memory.
        unsafe { raw(libc::SYS_pread64, args) }
    }

    /// Writes memory at an address. Returns the result of the kernel.
    pub(crate) fn write_from(self, slot: u32, at: u64, address: usize, length: usize) -> isize {
        let offset = self.offset(slot, Version::Live) + at;
        let args = args([self.fd as usize, address, length, offset as usize]);
        // SAFETY: the real kernel checks that the program may read the memory.
        unsafe { raw(libc::SYS_pwrite64, args) }
    }

    /// Reads from one version.
    pub(crate) fn read(self, slot: u32, version: Version, at: u64, into: &mut [u8]) {
        let offset = self.offset(slot, version) + at;
        let (address, length) = (into.as_mut_ptr() as usize, into.len());
        let args = args([self.fd as usize, address, length, offset as usize]);
        // SAFETY: the buffer is valid for writes.
        let count = unsafe { raw(libc::SYS_pread64, args) };
        assert_eq!(
            count, length as isize,
            "the medium of a disk cannot be read"
        );
    }

    /// Writes to one version.
    pub(crate) fn write(self, slot: u32, version: Version, at: u64, bytes: &[u8]) {
        let offset = self.offset(slot, version) + at;
        let (address, length) = (bytes.as_ptr() as usize, bytes.len());
        let args = args([self.fd as usize, address, length, offset as usize]);
        // SAFETY: the buffer is valid for reads.
        let count = unsafe { raw(libc::SYS_pwrite64, args) };
        assert_eq!(
            count, length as isize,
            "there is no memory for a simulated disk"
        );
    }

    /// Copies a range of a file from one version to the other.
    pub(crate) fn copy(self, slot: u32, from: Version, to: Version, mut at: u64, end: u64) {
        let mut buffer = vec![0; CHUNK.min(end.saturating_sub(at)) as usize];
        while at < end {
            let count = CHUNK.min(end - at) as usize;
            self.read(slot, from, at, &mut buffer[..count]);
            self.write(slot, to, at, &buffer[..count]);
            at += count as u64;
        }
    }

    /// Zeroes a range of one version and frees its memory.
    pub(crate) fn punch(self, slot: u32, version: Version, at: u64, end: u64) {
        if at >= end {
            return;
        }
        let mode = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as usize;
        let offset = self.offset(slot, version) + at;
        let args = args([self.fd as usize, mode, offset as usize, (end - at) as usize]);
        // SAFETY: the call takes no pointers.
        let result = unsafe { raw(libc::SYS_fallocate, args) };
        assert_eq!(result, 0, "the medium of a disk cannot be cleared");
    }

    /// Returns the parts of a range that contain data in one version; the rest is zero.
    pub(crate) fn data(self, slot: u32, version: Version, at: u64, end: u64) -> Vec<(u64, u64)> {
        let base = self.offset(slot, version);
        let seek = |from: u64, whence: i32| {
            let args = args([self.fd as usize, (base + from) as usize, whence as usize]);
            // SAFETY: the call takes no pointers.
            let found = unsafe { raw(libc::SYS_lseek, args) };
            if found < 0 {
                end
            } else {
                (found as u64 - base).min(end)
            }
        };
        let mut parts = vec![];
        let mut start = seek(at, libc::SEEK_DATA);
        while start < end {
            let hole = seek(start, libc::SEEK_HOLE);
            parts.push((start, hole));
            start = seek(hole, libc::SEEK_DATA);
        }
        parts
    }

    /// Maps the journal at `address`. If `address` is 0, the system chooses the address.
    pub(crate) fn map_journal(self, address: usize) -> io::Result<&'static mut [u8]> {
        let fixed = if address == 0 {
            0
        } else {
            libc::MAP_FIXED_NOREPLACE
        };
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | fixed;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let args = [
            address,
            JOURNAL,
            protection as usize,
            flags as usize,
            self.fd as usize,
            self.offset(0, Version::Live) as usize,
        ];
        // SAFETY: the system chooses the address, or nothing else is mapped at it.
        let mapped = unsafe { raw(libc::SYS_mmap, args) };
        if (-4095..0).contains(&mapped) {
            return Err(io::Error::from_raw_os_error(-mapped as i32));
        }
        // SAFETY: the mapping has this size and is never unmapped; one process at a time writes to it.
        Ok(unsafe { std::slice::from_raw_parts_mut(mapped as *mut u8, JOURNAL) })
    }
}
