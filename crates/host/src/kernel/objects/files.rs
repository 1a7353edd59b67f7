//! The data of open files and directories, and the locks of files.

use crate::filesystem::Ino;
use crate::tcp::Id;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;

/// `O_LARGEFILE`, which the real kernel adds to the flags of each opened path.
pub(crate) const LARGE_FILE: i32 = 0x8000;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub ino: Ino,
    pub position: u64,
    /// The flags of `open` that `F_GETFL` reports.
    pub flags: i32,
}

impl OpenFile {
    pub(crate) fn can_read(&self) -> bool {
        matches!(self.flags & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR)
            && self.flags & libc::O_PATH == 0
    }

    pub(crate) fn can_write(&self) -> bool {
        matches!(self.flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
            && self.flags & libc::O_PATH == 0
    }
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    pub ino: Ino,
    /// The number of entries that were read.
    pub read: u64,
    /// The last name that was read, in the order after `.` and `..`.
    pub last: Option<Vec<u8>>,
}

/// An open file or directory of the real system.
#[derive(Debug)]
pub(crate) struct Image {
    pub fd: i32,
    /// The absolute path of the image.
    pub path: CString,
}

/// The locks of files, by inode.
#[derive(Debug, Default)]
pub(crate) struct Locks(pub BTreeMap<Ino, Lock>);

/// The locks of one file.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    pub exclusive: bool,
    /// The open files that hold the `flock` lock.
    pub holders: BTreeSet<Id>,
    /// Locked ranges of bytes.
    pub records: Vec<Record>,
}

/// A range of bytes that an open file has locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub holder: Id,
    pub start: i64,
    pub end: i64,
    pub exclusive: bool,
}

impl Record {
    pub(crate) fn overlaps(&self, other: &Record) -> bool {
        self.start < other.end && other.start < self.end
    }
}
