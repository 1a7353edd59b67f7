//! Open files and directories of the host's disk.

use super::objects::files::OpenFile;
use super::objects::{Kind, Object};
use super::user::{self, Buffers, Error, error};
use super::{Attempt, Id, Kernel, On, Step, Wait};
use crate::filesystem::Ino;
use crate::storage::MOST_BYTES;

/// The number of writes to a file after which the kernel writes one page to the disk by itself.
const WRITE_BACK: usize = 32;

impl Kernel {
    /// Returns true in `per_thousand` of 1,000 calls, at random.
    fn has_bad_luck(&mut self, per_thousand: u32) -> bool {
        per_thousand > 0 && self.random.below(1000) < per_thousand as usize
    }

    /// Returns the wait for a disk operation that takes time; `None` when the wait is over.
    fn disk_wait(&self, nanos: u64, attempt: &mut Attempt) -> Option<Step> {
        if nanos == 0 || attempt.timed_out {
            return None;
        }
        let until = attempt.until(|| self.now.saturating_add(nanos));
        Some(Step::Wait(Wait {
            on: On::Time,
            until,
        }))
    }

    fn file(&mut self, id: Id) -> Result<&mut OpenFile, Error> {
        match self.descriptors.get_mut(id).map(|object| &mut object.kind) {
            Some(Kind::File(file)) => Ok(file),
            _ => Err(error(libc::EBADF)),
        }
    }

    /// Returns the inode of an open file or directory.
    pub(super) fn inode_of(&mut self, fd: usize) -> Result<Ino, Error> {
        match &self.descriptors.object(fd)?.1.kind {
            Kind::File(file) => Ok(file.ino),
            Kind::Directory(directory) => Ok(directory.ino),
            _ => Err(error(libc::EINVAL)),
        }
    }

    /// Reads from a file, at its position or at a given offset.
    pub(super) fn read_file(
        &mut self,
        id: Id,
        buffers: &Buffers,
        at: Option<u64>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let file = self.file(id)?;
        if !file.can_read() {
            return Err(error(libc::EBADF));
        }
        let (ino, start) = (file.ino, at.unwrap_or(file.position));
        let file_flags = file.flags;
        if let Some(step) = self.disk_wait(self.disk.access_nanos, attempt) {
            return Ok(step);
        }
        if self.has_bad_luck(self.disk.read_errors) {
            return Err(error(libc::EIO));
        }
        let is_noted = file_flags & libc::O_NOATIME == 0 && buffers.len() > 0;
        if is_noted {
            self.note_access(ino);
        }
        let most = self.transfer_limit(buffers.len());
        let mut count = 0;
        for &(address, length) in &buffers.0 {
            let length = length.min(most - count);
            let read = self.files.read(ino, start + count as u64, address, length);
            if read < 0 && count == 0 {
                return Err(read);
            }
            count += read.max(0) as usize;
            if (read as usize) < length || count == most {
                break;
            }
        }
        if at.is_none() {
            self.file(id)?.position = start + count as u64;
        }
        Ok(Step::Done(count as isize))
    }

    /// Sets the time of the last access to an inode.
    fn note_access(&mut self, ino: Ino) {
        let time = self.wall_time();
        self.files.note_access(ino, time);
    }

    /// Returns the number of bytes that one call transfers: the requested number, or fewer if a short transfer is
    /// simulated.
    fn transfer_limit(&mut self, asked: usize) -> usize {
        match asked > 1 && self.has_bad_luck(self.disk.short) {
            true => 1 + self.random.below((asked - 1).min(1 << 30)),
            false => asked,
        }
    }

    /// Writes to a file, at its position or at a given offset.
    pub(super) fn write_file(
        &mut self,
        id: Id,
        buffers: &Buffers,
        at: Option<u64>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let file = self.file(id)?;
        if !file.can_write() {
            return Err(error(libc::EBADF));
        }
        let (ino, flags, position) = (file.ino, file.flags, file.position);
        let syncs = flags & libc::O_DSYNC != 0;
        let sync_nanos = if syncs { self.disk.sync_nanos } else { 0 };
        if let Some(step) = self.disk_wait(self.disk.access_nanos + sync_nanos, attempt) {
            return Ok(step);
        }
        if self.has_bad_luck(self.disk.write_errors) {
            return Err(error(libc::EIO));
        }
        let size = self.files.inode(ino).map_or(0, |inode| inode.size());
        let start = match flags & libc::O_APPEND {
            0 => at.unwrap_or(position),
            _ => size,
        };
        let mut most = self.transfer_limit(buffers.len());
        let end = self.largest_size(size);
        if start + most as u64 > size && start + most as u64 > end {
            if start >= end && most > 0 {
                return Err(error(match end < MOST_BYTES {
                    true => libc::ENOSPC,
                    false => libc::EFBIG,
                }));
            }
            most = (end - start) as usize;
        }
        let time = self.wall_time();
        let mut count = 0;
        for &(address, length) in &buffers.0 {
            let length = length.min(most - count);
            if length == 0 {
                continue;
            }
            let written = self
                .files
                .write(ino, start + count as u64, address, length, time);
            if written < 0 && count == 0 {
                return Err(written);
            }
            count += written.max(0) as usize;
            if (written as usize) < length || count == most {
                break;
            }
        }
        if at.is_none() {
            self.file(id)?.position = start + count as u64;
        }
        if syncs {
            self.files.sync(ino);
        } else if self.random.below(WRITE_BACK) == 0 {
            let random = &mut self.random;
            self.files.write_back(ino, |bound| random.below(bound));
        }
        Ok(Step::Done(count as isize))
    }

    /// Returns the size to which a file may grow.
    fn largest_size(&self, size: u64) -> u64 {
        let free = self.disk.capacity.saturating_sub(self.files.used());
        size.saturating_add(free).min(MOST_BYTES)
    }

    /// Returns the wall-clock time of the host.
    pub(super) fn wall_time(&self) -> u64 {
        self.read_clock(libc::CLOCK_REALTIME)
    }

    /// Simulates `pread`, `pwrite` and their vectored forms.
    pub(super) fn positional(
        &mut self,
        fd: usize,
        buffers: &Buffers,
        at: usize,
        is_write: bool,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        if (at as i64) < 0 {
            return Err(error(libc::EINVAL));
        }
        let (id, object) = self.descriptors.object(fd)?;
        match &object.kind {
            Kind::File(_) if is_write => self.write_file(id, buffers, Some(at as u64), attempt),
            Kind::File(_) => self.read_file(id, buffers, Some(at as u64), attempt),
            Kind::Directory(_) => Err(error(if is_write { libc::EBADF } else { libc::EISDIR })),
            Kind::Null | Kind::Zero | Kind::Entropy if is_write => {
                self.write(fd, buffers, 0, None, attempt)
            }
            Kind::Null | Kind::Zero | Kind::Entropy => {
                self.read(fd, buffers, 0, attempt, |_, _| Ok(()))
            }
            Kind::Image(_) if !is_write => {
                let (address, length) = buffers.0.first().copied().unwrap_or((0, 0));
                let args = crate::raw::args([fd, address, length, at]);
                let count = self.on_image(libc::SYS_pread64, &args, libc::ESPIPE);
                Ok(Step::Done(count))
            }
            _ => Err(error(libc::ESPIPE)),
        }
    }

    /// Simulates `lseek`.
    pub(super) fn seek(&mut self, fd: usize, offset: usize, whence: usize) -> Result<isize, Error> {
        let offset = offset as i64;
        let (id, object) = self.descriptors.object(fd)?;
        match &mut object.kind {
            Kind::Null | Kind::Zero | Kind::Entropy => return Ok(0),
            Kind::Image(_) => {
                let args = crate::raw::args([fd, offset as usize, whence]);
                return Ok(self.on_image(libc::SYS_lseek, &args, libc::ESPIPE));
            }
            Kind::Directory(directory) => {
                let whence = whence as i32;
                if (whence, offset) == (libc::SEEK_SET, 0) {
                    (directory.read, directory.last) = (0, None);
                } else if (whence, offset) != (libc::SEEK_CUR, 0) {
                    return Err(error(libc::EINVAL));
                }
                return Ok(directory.read as isize);
            }
            Kind::File(_) => {}
            _ => return Err(error(libc::ESPIPE)),
        }
        let file = self.file(id)?;
        let (ino, position) = (file.ino, file.position);
        let size = self.files.inode(ino).map_or(0, |inode| inode.size());
        let is_within = offset >= 0 && (offset as u64) < size;
        let new = match whence as i32 {
            libc::SEEK_SET => Some(offset),
            libc::SEEK_CUR => (position as i64).checked_add(offset),
            libc::SEEK_END => (size as i64).checked_add(offset),
            // A whole file counts as data.
            libc::SEEK_DATA | libc::SEEK_HOLE if !is_within => return Err(error(libc::ENXIO)),
            libc::SEEK_DATA => Some(offset),
            libc::SEEK_HOLE => Some(size as i64),
            _ => None,
        };
        let new = new.filter(|&new| new >= 0).ok_or(error(libc::EINVAL))?;
        self.file(id)?.position = new as u64;
        Ok(new as isize)
    }

    /// Truncates or extends an inode.
    pub(super) fn resize(&mut self, ino: Ino, size: usize) -> Result<isize, Error> {
        if (size as i64) < 0 {
            return Err(error(libc::EINVAL));
        }
        let before = self.files.inode(ino).map_or(0, |inode| inode.size());
        if self.files.entries(ino).is_some() {
            return Err(error(libc::EISDIR));
        }
        if size as u64 > before && size as u64 > self.largest_size(before) {
            return Err(error(match size as u64 > MOST_BYTES {
                true => libc::EFBIG,
                false => libc::ENOSPC,
            }));
        }
        let time = self.wall_time();
        let resized = self.files.resize(ino, size as u64, time);
        resized.map(|()| 0).map_err(error)
    }

    /// Returns the inode of a file that may be written.
    fn writable(&mut self, fd: usize) -> Result<Ino, Error> {
        match &self.descriptors.object(fd)?.1.kind {
            Kind::File(file) if file.can_write() => Ok(file.ino),
            _ => Err(error(libc::EINVAL)),
        }
    }

    /// Simulates `ftruncate`.
    pub(super) fn ftruncate(&mut self, fd: usize, size: usize) -> Result<isize, Error> {
        let ino = self.writable(fd)?;
        self.resize(ino, size)
    }

    /// Simulates `fallocate`.
    pub(super) fn fallocate(
        &mut self,
        fd: usize,
        mode: usize,
        offset: usize,
        length: usize,
    ) -> Result<isize, Error> {
        let (start, length) = (offset as i64, length as i64);
        if start < 0 || length <= 0 {
            return Err(error(libc::EINVAL));
        }
        let ino = match self.writable(fd) {
            Err(failure) if failure == error(libc::EINVAL) => return Err(error(libc::EBADF)),
            other => other?,
        };
        let end = start.checked_add(length).ok_or(error(libc::EFBIG))? as u64;
        let size = self.files.inode(ino).map_or(0, |inode| inode.size());
        let mode = mode as i32;
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return Err(error(libc::EOPNOTSUPP));
        }
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 {
            self.files
                .zero(ino, (start as u64).min(size), end.min(size));
        }
        if mode & libc::FALLOC_FL_KEEP_SIZE == 0 && end > size {
            return self.resize(ino, end as usize);
        }
        Ok(0)
    }

    /// Simulates `fsync`, `fdatasync` and `syncfs`.
    pub(super) fn fsync(
        &mut self,
        fd: usize,
        all: bool,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let ino = self.inode_of(fd)?;
        self.sync_inodes(if all { None } else { Some(vec![ino]) }, attempt)
    }

    /// Makes the given inodes durable, or all inodes.
    pub(super) fn sync_inodes(
        &mut self,
        inodes: Option<Vec<Ino>>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        if let Some(step) = self.disk_wait(self.disk.sync_nanos, attempt) {
            return Ok(step);
        }
        let fails = self.has_bad_luck(self.disk.sync_errors);
        let Some(inodes) = inodes else {
            self.files.sync_all();
            return Ok(Step::Done(0));
        };
        for ino in inodes {
            if fails {
                self.files.forget_dirty(ino);
            } else {
                self.files.sync(ino);
            }
        }
        if fails {
            return Err(error(libc::EIO));
        }
        if self.disk.syncs_names {
            self.files.sync_names();
        }
        Ok(Step::Done(0))
    }

    /// Simulates `getdents64`.
    pub(super) fn directory_entries(
        &mut self,
        fd: usize,
        out: usize,
        capacity: usize,
    ) -> Result<isize, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let Kind::Directory(directory) = &object.kind else {
            let args = crate::raw::args([fd, out, capacity]);
            return Ok(self.on_image(libc::SYS_getdents64, &args, libc::ENOTDIR));
        };
        let (ino, mut read, mut last) = (directory.ino, directory.read, directory.last.clone());
        self.note_access(ino);
        let entries = self.files.entries(ino).ok_or(error(libc::ENOENT))?;
        let after = match &last {
            Some(last) => std::ops::Bound::Excluded(last.clone()),
            None => std::ops::Bound::Unbounded,
        };
        let dots: [(&[u8], Ino); 2] = [(b".", ino), (b"..", self.files.parent(ino))];
        let names = entries.range((after, std::ops::Bound::Unbounded));
        let all = dots
            .into_iter()
            .skip(read as usize)
            .chain(names.map(|(name, &ino)| (&name[..], ino)));
        let mut bytes = vec![];
        let mut is_cut = false;
        for (name, ino) in all {
            let length = (19 + name.len() + 1).next_multiple_of(8);
            if bytes.len() + length > capacity {
                is_cut = true;
                break;
            }
            read += 1;
            if read > 2 {
                last = Some(name.to_vec());
            }
            let kind = self.files.inode(ino).map_or(0, |inode| inode.node.code());
            let start = bytes.len();
            bytes.extend(u64::from(ino).to_le_bytes());
            bytes.extend(read.to_le_bytes());
            bytes.extend((length as u16).to_le_bytes());
            bytes.push(kind);
            bytes.extend(name);
            bytes.resize(start + length, 0);
        }
        if bytes.is_empty() && is_cut {
            return Err(error(libc::EINVAL));
        }
        if let Some(Object {
            kind: Kind::Directory(directory),
            ..
        }) = self.descriptors.get_mut(id)
        {
            (directory.read, directory.last) = (read, last);
        }
        user::bytes_mut(out, bytes.len()).copy_from_slice(&bytes);
        Ok(bytes.len() as isize)
    }
}
