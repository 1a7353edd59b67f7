//! Attributes of files: `stat` and similar calls.
#![allow(unsafe_code, reason = "zeroes structures of the C library")]

use super::Kernel;
use super::devices::Device;
use super::objects::Kind;
use super::user::{self, Error, error};
use crate::filesystem::{Ino, Node};

const BLOCK: u64 = 4096;
/// The file system type that `statfs` reports: ext4.
const FILE_SYSTEM: i64 = 0xef53;
/// The device number of the disk.
const DEVICE: u64 = 0x801;

/// Attributes of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    ino: u64,
    /// The type and the permissions.
    mode: u32,
    links: u64,
    size: u64,
    accessed: u64,
    modified: u64,
    changed: u64,
}

impl Attributes {
    /// Creates the attributes of an object that is not on the disk, from its type and permissions.
    pub(super) fn special(mode: u32, ino: u64) -> Attributes {
        Attributes {
            ino,
            mode,
            links: 1,
            ..Attributes::default()
        }
    }

    /// Returns the attributes of a device.
    pub(super) fn of_device(device: Device) -> Option<Attributes> {
        match device {
            Device::Real(_) => None,
            _ => Some(Attributes::special(libc::S_IFCHR | 0o666, 2)),
        }
    }

    /// Writes the attributes in the format of `stat`.
    pub(super) fn write_stat(self, out: usize) -> Result<isize, Error> {
        // SAFETY: all-zero is a valid `stat`.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        stat.st_dev = DEVICE;
        stat.st_ino = self.ino;
        stat.st_mode = self.mode;
        stat.st_nlink = self.links;
        (stat.st_uid, stat.st_gid) = (super::identity::USER, super::identity::USER);
        stat.st_size = self.size as i64;
        stat.st_blksize = BLOCK as i64;
        stat.st_blocks = self.size.div_ceil(512) as i64;
        let [accessed, modified, changed] =
            [self.accessed, self.modified, self.changed].map(user::to_timespec);
        (stat.st_atime, stat.st_atime_nsec) = (accessed.tv_sec, accessed.tv_nsec);
        (stat.st_mtime, stat.st_mtime_nsec) = (modified.tv_sec, modified.tv_nsec);
        (stat.st_ctime, stat.st_ctime_nsec) = (changed.tv_sec, changed.tv_nsec);
        user::write(out, stat)?;
        Ok(0)
    }

    /// Writes the attributes in the format of `statx`.
    pub(super) fn write_statx(self, out: usize) -> Result<isize, Error> {
        let time = |nanos: u64| {
            let time = user::to_timespec(nanos);
            // SAFETY: all-zero is a valid `statx_timestamp`.
            let mut stamp: libc::statx_timestamp = unsafe { std::mem::zeroed() };
            stamp.tv_sec = time.tv_sec;
            stamp.tv_nsec = time.tv_nsec as u32;
            stamp
        };
        // SAFETY: all-zero is a valid `statx`.
        let mut stat: libc::statx = unsafe { std::mem::zeroed() };
        stat.stx_mask = libc::STATX_BASIC_STATS;
        stat.stx_blksize = BLOCK as u32;
        stat.stx_nlink = self.links as u32;
        (stat.stx_uid, stat.stx_gid) = (super::identity::USER, super::identity::USER);
        stat.stx_mode = self.mode as u16;
        stat.stx_ino = self.ino;
        stat.stx_size = self.size;
        stat.stx_blocks = self.size.div_ceil(512);
        stat.stx_atime = time(self.accessed);
        stat.stx_mtime = time(self.modified);
        stat.stx_ctime = time(self.changed);
        (stat.stx_dev_major, stat.stx_dev_minor) = ((DEVICE >> 8) as u32, (DEVICE & 0xff) as u32);
        user::write(out, stat)?;
        Ok(0)
    }
}

impl Kernel {
    /// Returns the attributes of an inode.
    pub(super) fn attributes(&self, ino: Ino) -> Result<Attributes, Error> {
        let inode = self.files.inode(ino).ok_or(error(libc::ENOENT))?;
        let (kind, links) = match &inode.node {
            Node::File { .. } => (libc::S_IFREG, inode.links),
            Node::Link(_) => (libc::S_IFLNK, inode.links),
            Node::Socket => (libc::S_IFSOCK, inode.links),
            Node::Pipe => (libc::S_IFIFO, inode.links),
            Node::Directory { entries, .. } => {
                let is_directory = |ino: &&Ino| self.files.entries(**ino).is_some();
                let children = entries.values().filter(is_directory).count() as u32;
                let own = if inode.links == 0 { 0 } else { 2 };
                (libc::S_IFDIR, own + children)
            }
        };
        Ok(Attributes {
            ino: ino.into(),
            mode: kind | inode.mode,
            links: links.into(),
            size: inode.size(),
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
        })
    }

    /// Returns the attributes of a descriptor's object; `None` for a file of the real system.
    pub(super) fn attributes_of(&mut self, fd: usize) -> Result<Option<Attributes>, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let mode = match &object.kind {
            Kind::Image(_) => return Ok(None),
            Kind::File(file) => {
                let ino = file.ino;
                return self.attributes(ino).map(Some);
            }
            Kind::Directory(directory) => {
                let ino = directory.ino;
                return self.attributes(ino).map(Some);
            }
            Kind::Null | Kind::Zero | Kind::Entropy => libc::S_IFCHR,
            Kind::Pipe(end) => {
                if let Some(ino) = end.ino() {
                    return self.attributes(ino).map(Some);
                }
                libc::S_IFIFO
            }
            Kind::Log(_) => libc::S_IFIFO,
            Kind::Counter(_) | Kind::Timer(_) | Kind::Signals(_) | Kind::Epoll(_) => 0,
            _ => libc::S_IFSOCK,
        };
        Ok(Some(Attributes::special(mode | 0o600, id)))
    }

    /// Simulates `fstat`.
    pub(super) fn fstat(&mut self, fd: usize, out: usize) -> Result<isize, Error> {
        match self.attributes_of(fd)? {
            Some(attributes) => attributes.write_stat(out),
            None => match self.on_image(libc::SYS_fstat, &crate::raw::args([fd, out]), 0) {
                0 => super::devices::hide_access_time(out),
                error => Err(error),
            },
        }
    }

    /// Simulates `chmod` of a path, or of a descriptor if no path is given.
    pub(super) fn chmod(
        &mut self,
        directory: usize,
        path: Option<usize>,
        mode: usize,
    ) -> Result<isize, Error> {
        let ino = match path {
            Some(path) => self.find_inode(directory, path, true)?,
            None => self.inode_of(directory)?,
        };
        let time = self.wall_time();
        self.files.set_mode(ino, mode as u32 & 0o7777, time);
        Ok(0)
    }

    /// Simulates `utimensat`.
    pub(super) fn set_times(
        &mut self,
        directory: usize,
        path: usize,
        times: usize,
        flags: usize,
    ) -> Result<isize, Error> {
        let ino = match path {
            0 => self.inode_of(directory)?,
            _ => {
                let follow = flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
                self.find_inode(directory, path, follow)?
            }
        };
        let now = self.wall_time();
        let mut requested = [Some(now); 2];
        if times != 0 {
            for (index, time) in requested.iter_mut().enumerate() {
                let at = times + index * size_of::<libc::timespec>();
                *time = match user::read::<libc::timespec>(at)?.tv_nsec {
                    libc::UTIME_NOW => Some(now),
                    libc::UTIME_OMIT => None,
                    _ => Some(user::timespec(at)?),
                };
            }
        }
        if requested != [None; 2] {
            let inode = self.files.inode(ino).ok_or(error(libc::ENOENT))?;
            let accessed = requested[0].unwrap_or(inode.accessed);
            let modified = requested[1].unwrap_or(inode.modified);
            self.files.set_times(ino, accessed, modified, now);
        }
        Ok(0)
    }

    /// Simulates `statfs` and `fstatfs`.
    pub(super) fn statfs(&self, out: usize) -> Result<isize, Error> {
        // SAFETY: all-zero is a valid `statfs`.
        let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
        let free = self.disk.capacity.saturating_sub(self.files.used()) / BLOCK;
        stat.f_type = FILE_SYSTEM;
        stat.f_bsize = BLOCK as i64;
        stat.f_frsize = BLOCK as i64;
        stat.f_blocks = self.disk.capacity / BLOCK;
        (stat.f_bfree, stat.f_bavail) = (free, free);
        stat.f_files = crate::storage::SLOTS.into();
        stat.f_ffree = crate::storage::SLOTS.into();
        stat.f_namelen = 255;
        user::write(out, stat)?;
        Ok(0)
    }
}
