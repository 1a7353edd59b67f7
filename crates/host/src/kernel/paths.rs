//! Paths, and the calls that create, look up, change and remove their targets.

use super::attributes::Attributes;
use super::devices::{self, Device};
use super::objects::files::{LARGE_FILE, OpenDirectory, OpenFile};
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Kernel, Step};
use crate::filesystem::{Ino, Node, ROOT};
use std::collections::VecDeque;

const MOST_LINKS: u32 = 40;
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

/// The target of a path.
#[derive(Debug)]
pub(super) struct PathTarget {
    /// The directory that contains the last name.
    directory: Ino,
    /// The last name; empty for `/` and for paths that end with `.` or `..`.
    name: Vec<u8>,
    target: Option<Ino>,
    /// True if the path ends with a slash.
    names_directory: bool,
}

impl Kernel {
    /// Returns the directory at which a relative path starts.
    fn base(&mut self, directory: usize) -> Result<Ino, Error> {
        if directory as i32 == libc::AT_FDCWD {
            return Ok(self.directory);
        }
        match &self.descriptors.object(directory)?.1.kind {
            Kind::Directory(directory) => Ok(directory.ino),
            _ => Err(error(libc::ENOTDIR)),
        }
    }

    /// Resolves a path. The last name need not exist.
    pub(super) fn find(
        &mut self,
        directory: usize,
        path: &[u8],
        follow: bool,
    ) -> Result<PathTarget, Error> {
        if path.is_empty() {
            return Err(error(libc::ENOENT));
        }
        if path.len() > LONGEST_PATH {
            return Err(error(libc::ENAMETOOLONG));
        }
        let split = |path: &[u8]| -> Vec<Vec<u8>> {
            let names = path.split(|&byte| byte == b'/');
            names
                .filter(|name| !name.is_empty())
                .map(<[u8]>::to_vec)
                .collect()
        };
        let mut current = match path[0] {
            b'/' => ROOT,
            _ => self.base(directory)?,
        };
        let mut names: VecDeque<Vec<u8>> = split(path).into();
        let names_directory = path.ends_with(b"/");
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            if name.len() > LONGEST_NAME {
                return Err(error(libc::ENAMETOOLONG));
            }
            let entries = self.files.entries(current).ok_or(error(libc::ENOTDIR))?;
            if name == b"." {
                continue;
            }
            if name == b".." {
                current = self.files.parent(current);
                continue;
            }
            let target = entries.get(&name).copied();
            let is_last = names.is_empty();
            if let Some(ino) = target
                && let Some(Node::Link(target)) = self.files.inode(ino).map(|inode| &inode.node)
                && (!is_last || follow || names_directory)
            {
                links += 1;
                if links > MOST_LINKS {
                    return Err(error(libc::ELOOP));
                }
                if target.starts_with(b"/") {
                    current = ROOT;
                }
                for name in split(target).into_iter().rev() {
                    names.push_front(name);
                }
                continue;
            }
            if is_last {
                return Ok(PathTarget {
                    directory: current,
                    name,
                    target,
                    names_directory,
                });
            }
            current = target.ok_or(error(libc::ENOENT))?;
        }
        Ok(PathTarget {
            directory: self.files.parent(current),
            name: vec![],
            target: Some(current),
            names_directory: true,
        })
    }

    /// Returns the inode that a path in the program's memory names.
    pub(super) fn find_inode(
        &mut self,
        directory: usize,
        path: usize,
        follow: bool,
    ) -> Result<Ino, Error> {
        let found = self.find(directory, &user::path(path)?, follow)?;
        let ino = found.target.ok_or(error(libc::ENOENT))?;
        if found.names_directory && self.files.entries(ino).is_none() {
            return Err(error(libc::ENOTDIR));
        }
        Ok(ino)
    }

    /// Returns the inode that a path names.
    pub(super) fn find_target(&mut self, path: &[u8]) -> Result<Ino, Error> {
        let found = self.find(libc::AT_FDCWD as usize, path, true)?;
        found.target.ok_or(error(libc::ENOENT))
    }

    /// Resolves a path whose last name must not exist.
    fn find_free(&mut self, directory: usize, path: &[u8]) -> Result<PathTarget, Error> {
        let found = self.find(directory, path, false)?;
        match found.target {
            Some(_) => Err(error(libc::EEXIST)),
            None if !self.files.has_name(found.directory) => Err(error(libc::ENOENT)),
            None => Ok(found),
        }
    }

    /// Creates an inode with a name, and returns it with one reference.
    fn create(
        &mut self,
        found: &PathTarget,
        kind: u8,
        mode: u32,
        target: &[u8],
    ) -> Result<Ino, Error> {
        if !self.files.has_name(found.directory) {
            return Err(error(libc::ENOENT));
        }
        let time = self.wall_time();
        let ino = self.files.make(kind, mode, target, time).map_err(error)?;
        self.files
            .set_names(vec![(found.directory, &found.name, Some(ino))], time);
        Ok(ino)
    }

    /// Returns the permissions of a new file, without those in `umask`.
    fn masked(&self, mode: usize) -> u32 {
        mode as u32 & 0o7777 & !self.mask
    }

    /// Simulates `openat`.
    pub(super) fn open_path(
        &mut self,
        directory: usize,
        path: usize,
        flags: usize,
        mode: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        if let Some(id) = attempt.opened {
            return self.finish_open(id, flags as i32);
        }
        let (path, flags) = (user::path(path)?, flags as i32);
        if let Some(device) = devices::device(&path) {
            let kind = devices::open(device)?;
            return Ok(Step::Done(self.open(Object::new(kind), flags)?));
        }
        if let Some(real) = self.real_path(directory, &path) {
            return self.open_real(&real, flags).map(Step::Done);
        }
        let exclusive = flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0;
        let follow = flags & libc::O_NOFOLLOW == 0 && !exclusive;
        let found = self.find(directory, &path, follow)?;
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            let (mode, time) = (self.masked(mode), self.wall_time());
            let made = self.files.make(libc::DT_REG, mode, b"", time);
            return self.open_file(made.map_err(error)?, flags);
        }
        let ino = match found.target {
            Some(_) if exclusive => return Err(error(libc::EEXIST)),
            Some(ino) => {
                self.check_open(&found, ino, flags)?;
                self.files.open_inode(ino);
                ino
            }
            None if flags & libc::O_CREAT == 0 => return Err(error(libc::ENOENT)),
            None if found.names_directory => return Err(error(libc::EISDIR)),
            None => {
                let mode = self.masked(mode);
                self.create(&found, libc::DT_REG, mode, b"")?
            }
        };
        match self.files.inode(ino).map(|inode| &inode.node) {
            Some(Node::Pipe) if flags & libc::O_PATH == 0 => self.open_pipe(ino, flags, attempt),
            _ => self.open_file(ino, flags),
        }
    }

    /// Checks whether an existing inode may be opened with these flags.
    fn check_open(&mut self, found: &PathTarget, ino: Ino, flags: i32) -> Result<(), Error> {
        let Some(inode) = self.files.inode(ino) else {
            return Err(error(libc::ENOENT));
        };
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let needs_directory = flags & libc::O_DIRECTORY != 0 || found.names_directory;
        match inode.node {
            Node::Directory { .. } if writes || flags & libc::O_CREAT != 0 => {
                Err(error(libc::EISDIR))
            }
            Node::Directory { .. } => Ok(()),
            Node::Link(_) if flags & libc::O_PATH == 0 => Err(error(libc::ELOOP)),
            _ if needs_directory => Err(error(libc::ENOTDIR)),
            Node::Socket if flags & libc::O_PATH == 0 => Err(error(libc::ENXIO)),
            Node::File { .. } if flags & libc::O_TRUNC != 0 && writes => {
                self.resize(ino, 0).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Creates a descriptor for an inode that already has a reference.
    fn open_file(&mut self, ino: Ino, flags: i32) -> Result<Step, Error> {
        let kind = match self.files.entries(ino) {
            Some(_) => Kind::Directory(OpenDirectory {
                ino,
                read: 0,
                last: None,
            }),
            None => Kind::File(OpenFile {
                ino,
                position: 0,
                flags: flags
                    & !(libc::O_CREAT
                        | libc::O_EXCL
                        | libc::O_TRUNC
                        | libc::O_NOCTTY
                        | libc::O_CLOEXEC)
                    | LARGE_FILE,
            }),
        };
        let opened = self.open(Object::new(kind), flags);
        if opened.is_err() {
            self.files.close_inode(ino);
        }
        opened.map(Step::Done)
    }

    /// `memfd_create`: a file without a name.
    pub(super) fn memory_file(&mut self, flags: usize) -> Result<Step, Error> {
        let time = self.wall_time();
        let made = self.files.make(libc::DT_REG, 0o777, b"", time);
        let cloexec = match flags as u32 & libc::MFD_CLOEXEC {
            0 => 0,
            _ => libc::O_CLOEXEC,
        };
        self.open_file(made.map_err(error)?, libc::O_RDWR | cloexec)
    }

    /// Returns the attributes of the target of a path.
    pub(super) fn look_up(
        &mut self,
        directory: usize,
        path: usize,
        flags: i32,
    ) -> Result<Option<Attributes>, Error> {
        let text = user::path(path)?;
        if text.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            if directory as i32 == libc::AT_FDCWD {
                return self.attributes(self.directory).map(Some);
            }
            return self.attributes_of(directory);
        }
        if let Some(attributes) = devices::device(&text).and_then(Attributes::of_device) {
            return Ok(Some(attributes));
        }
        let ino = self.find_inode(directory, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
        self.attributes(ino).map(Some)
    }

    /// Simulates `stat`, `lstat` and `newfstatat`.
    pub(super) fn stat(
        &mut self,
        directory: usize,
        path: usize,
        out: usize,
        flags: i32,
    ) -> Result<isize, Error> {
        if let Some(real) = self.real_path(directory, &user::path(path)?) {
            return Kernel::stat_real(&real, out, flags & libc::AT_SYMLINK_NOFOLLOW);
        }
        match self.look_up(directory, path, flags)? {
            Some(attributes) => attributes.write_stat(out),
            None => self.fstat(directory, out),
        }
    }

    /// Simulates `statx`.
    pub(super) fn statx(&mut self, args: &crate::raw::Args) -> Result<isize, Error> {
        let [directory, path, flags, _, out, _] = *args;
        if self.real_path(directory, &user::path(path)?).is_some() {
            // Fails, so that the C library falls back to `newfstatat`, whose result has only one format.
            return Err(error(libc::ENOSYS));
        }
        match self.look_up(directory, path, flags as i32)? {
            Some(attributes) => attributes.write_statx(out),
            None => Ok(self.on_image(libc::SYS_statx, args, libc::ENOSYS)),
        }
    }

    /// Simulates `access` and its variants.
    pub(super) fn access(
        &mut self,
        directory: usize,
        path: usize,
        mode: usize,
    ) -> Result<isize, Error> {
        if devices::device(&user::path(path)?)
            .is_some_and(|device| !matches!(device, Device::Real(_)))
        {
            return Ok(0);
        }
        if let Some(real) = self.real_path(directory, &user::path(path)?) {
            return Kernel::access_real(&real, mode);
        }
        let ino = self.find_inode(directory, path, true)?;
        let inode = self.files.inode(ino).ok_or(error(libc::ENOENT))?;
        let is_file = matches!(inode.node, Node::File { .. });
        match mode as i32 & libc::X_OK != 0 && is_file && inode.mode & 0o111 == 0 {
            true => Err(error(libc::EACCES)),
            false => Ok(0),
        }
    }

    /// Simulates `readlink`.
    pub(super) fn readlink(
        &mut self,
        directory: usize,
        path: usize,
        out: usize,
        capacity: usize,
    ) -> Result<isize, Error> {
        let text = user::path(path)?;
        if let Some(result) = Kernel::image_path(&text, out, capacity) {
            return result;
        }
        if let Some(real) = self.real_path(directory, &text) {
            return Kernel::readlink_real(&real, out, capacity);
        }
        let found = self.find(directory, &text, false)?;
        let ino = found.target.ok_or(error(libc::ENOENT))?;
        match self.files.inode(ino).map(|inode| &inode.node) {
            Some(Node::Link(target)) => Ok(devices::copy_out(target, out, capacity)),
            _ => Err(error(libc::EINVAL)),
        }
    }

    /// Creates a directory, a symbolic link, a file, or the name of a socket or a pipe.
    pub(super) fn make_node(
        &mut self,
        directory: usize,
        path: &[u8],
        kind: u8,
        mode: usize,
        target: &[u8],
    ) -> Result<Ino, Error> {
        let found = self.find_free(directory, path)?;
        if found.names_directory && kind != libc::DT_DIR {
            return Err(error(libc::ENOENT));
        }
        let mode = match kind {
            libc::DT_LNK => 0o777,
            _ => self.masked(mode),
        };
        let ino = self.create(&found, kind, mode, target)?;
        self.files.close_inode(ino);
        Ok(ino)
    }

    /// Simulates `mkdir`.
    pub(super) fn mkdir(
        &mut self,
        directory: usize,
        path: usize,
        mode: usize,
    ) -> Result<isize, Error> {
        self.make_node(directory, &user::path(path)?, libc::DT_DIR, mode, b"")?;
        Ok(0)
    }

    /// `mknod` of a named pipe or a file. Other types need privileges.
    pub(super) fn mknod(
        &mut self,
        directory: usize,
        path: usize,
        mode: usize,
    ) -> Result<isize, Error> {
        let kind = match mode as u32 & libc::S_IFMT {
            libc::S_IFIFO => libc::DT_FIFO,
            0 | libc::S_IFREG => libc::DT_REG,
            _ => return Err(error(libc::EPERM)),
        };
        self.make_node(directory, &user::path(path)?, kind, mode, b"")?;
        Ok(0)
    }

    /// Simulates `symlink`.
    pub(super) fn symlink(
        &mut self,
        target: usize,
        directory: usize,
        path: usize,
    ) -> Result<isize, Error> {
        let target = user::path(target)?;
        if target.is_empty() {
            return Err(error(libc::ENOENT));
        }
        self.make_node(directory, &user::path(path)?, libc::DT_LNK, 0o777, &target)?;
        Ok(0)
    }

    /// Simulates `link`.
    pub(super) fn link(&mut self, args: &crate::raw::Args) -> Result<isize, Error> {
        let [old_directory, old, directory, new, flags, _] = *args;
        let follow = flags as i32 & libc::AT_SYMLINK_FOLLOW != 0;
        let ino = match flags as i32 & libc::AT_EMPTY_PATH != 0 && user::path(old)?.is_empty() {
            true => self.inode_of(old_directory)?,
            false => self.find_inode(old_directory, old, follow)?,
        };
        let found = self.find_free(directory, &user::path(new)?)?;
        if self.files.entries(ino).is_some() {
            return Err(error(libc::EPERM));
        }
        let time = self.wall_time();
        self.files
            .set_names(vec![(found.directory, &found.name, Some(ino))], time);
        Ok(0)
    }

    /// Simulates `unlink` and `rmdir`.
    pub(super) fn unlink(
        &mut self,
        directory: usize,
        path: usize,
        of_directory: bool,
    ) -> Result<isize, Error> {
        let path = user::path(path)?;
        let found = self.find(directory, &path, false)?;
        let ino = found.target.ok_or(error(libc::ENOENT))?;
        match (self.files.entries(ino), of_directory) {
            (Some(_), false) => return Err(error(libc::EISDIR)),
            (None, true) => return Err(error(libc::ENOTDIR)),
            (None, false) if found.names_directory => return Err(error(libc::ENOTDIR)),
            (Some(_), true) if ino == ROOT => return Err(error(libc::EBUSY)),
            (Some(_), true) if path.ends_with(b"..") => return Err(error(libc::ENOTEMPTY)),
            (Some(_), true) if found.name.is_empty() => return Err(error(libc::EINVAL)),
            (Some(entries), true) if !entries.is_empty() => return Err(error(libc::ENOTEMPTY)),
            _ => {}
        }
        let time = self.wall_time();
        self.files
            .set_names(vec![(found.directory, &found.name, None)], time);
        Ok(0)
    }

    /// Simulates `renameat2`.
    pub(super) fn rename(&mut self, args: &crate::raw::Args) -> Result<isize, Error> {
        let [old_directory, old_path, new_directory, new_path, flags, _] = *args;
        let flags = flags as u32;
        if flags & !(libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) != 0 {
            return Err(error(libc::EINVAL));
        }
        let old = self.find(old_directory, &user::path(old_path)?, false)?;
        let new = self.find(new_directory, &user::path(new_path)?, false)?;
        if old.name.is_empty() || new.name.is_empty() {
            return Err(error(libc::EBUSY));
        }
        let ino = old.target.ok_or(error(libc::ENOENT))?;
        if !self.files.has_name(new.directory) {
            return Err(error(libc::ENOENT));
        }
        let is_directory = self.files.entries(ino).is_some();
        if !is_directory && (old.names_directory || new.names_directory) {
            return Err(error(libc::ENOTDIR));
        }
        let exchange = flags & libc::RENAME_EXCHANGE != 0;
        match new.target {
            Some(_) if flags & libc::RENAME_NOREPLACE != 0 => return Err(error(libc::EEXIST)),
            Some(target) if target == ino => return Ok(0),
            Some(target) if !exchange => match self.files.entries(target) {
                Some(_) if !is_directory => return Err(error(libc::EISDIR)),
                None if is_directory => return Err(error(libc::ENOTDIR)),
                Some(entries) if !entries.is_empty() => return Err(error(libc::ENOTEMPTY)),
                _ => {}
            },
            None if exchange => return Err(error(libc::ENOENT)),
            _ => {}
        }
        let mut above = new.directory;
        while is_directory && above != ROOT {
            if above == ino {
                return Err(error(libc::EINVAL));
            }
            above = self.files.parent(above);
        }
        let time = self.wall_time();
        let left = if exchange { new.target } else { None };
        let edits = vec![
            (old.directory, &old.name[..], left),
            (new.directory, &new.name[..], Some(ino)),
        ];
        self.files.set_names(edits, time);
        Ok(0)
    }

    /// Simulates `truncate`.
    pub(super) fn truncate(&mut self, path: usize, size: usize) -> Result<isize, Error> {
        let ino = self.find_inode(libc::AT_FDCWD as usize, path, true)?;
        self.resize(ino, size)
    }

    /// Simulates `chdir`, or `fchdir` if no path is given.
    pub(super) fn chdir(&mut self, fd: usize, path: Option<usize>) -> Result<isize, Error> {
        let ino = match path {
            Some(path) => self.find_inode(fd, path, true)?,
            None => self.inode_of(fd)?,
        };
        if self.files.entries(ino).is_none() {
            return Err(error(libc::ENOTDIR));
        }
        self.files.open_inode(ino);
        let before = std::mem::replace(&mut self.directory, ino);
        self.files.close_inode(before);
        Ok(0)
    }

    /// Simulates `getcwd`.
    pub(super) fn getcwd(&self, out: usize, size: usize) -> Result<isize, Error> {
        let path = self.files.path(self.directory);
        let mut path = path.ok_or(error(libc::ENOENT))?;
        path.push(0);
        if path.len() > size {
            return Err(error(libc::ERANGE));
        }
        Ok(devices::copy_out(&path, out, size))
    }
}
