//! Paths. A host has no file system of its own yet: it sees a few devices, and its own program for backtraces.
//! Reading any other path finds nothing; a call that would create or change a file is not simulated.
#![allow(unsafe_code, reason = "reads the program's own image")]

use super::descriptors::{Kind, Object};
use super::user::{self, Buffers, Error, error};
use super::{Kernel, Step};
use crate::raw::{Args, args, raw};

/// What a path names.
enum Target {
    Null,
    Entropy,
    /// A real file: the program's image, or what the system says of this process's memory.
    Real(&'static [u8]),
    Nothing,
}

fn target(path: &str) -> Target {
    match path {
        "/dev/null" => Target::Null,
        "/dev/urandom" | "/dev/random" => Target::Entropy,
        "/proc/self/exe" => Target::Real(b"/proc/self/exe\0"),
        // Panics look here for the program that addresses belong to.
        "/proc/self/maps" => Target::Real(b"/proc/self/maps\0"),
        path if path.starts_with(crate::image::MAPPED_NAME) => Target::Real(b"/proc/self/exe\0"),
        _ => Target::Nothing,
    }
}

impl Kernel {
    /// `open` and `openat`.
    pub(super) fn open_path(&mut self, path: usize, flags: usize) -> Result<Step, Error> {
        let flags = flags as i32;
        let kind = match target(&user::string(path)?) {
            Target::Null => Kind::Null,
            Target::Entropy => Kind::Entropy,
            Target::Real(path) => {
                let read = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
                let directory = libc::AT_FDCWD as usize;
                // SAFETY: the path ends with a zero byte.
                let fd = unsafe {
                    raw(
                        libc::SYS_openat,
                        args([directory, path.as_ptr() as usize, read]),
                    )
                };
                if fd < 0 {
                    return Err(fd);
                }
                Kind::Image(fd as i32)
            }
            Target::Nothing if flags & (libc::O_CREAT | libc::O_TRUNC) != 0 => {
                return Ok(Step::Unsupported);
            }
            Target::Nothing => return Err(error(libc::ENOENT)),
        };
        Ok(Step::Done(self.open(Object::new(kind), flags)?))
    }

    /// `readlink`: only the program has a name.
    pub(super) fn readlink(path: usize, out: usize, capacity: usize) -> Result<isize, Error> {
        if user::string(path)? != "/proc/self/exe" {
            return Err(error(libc::ENOENT));
        }
        let name = crate::image::program();
        let name = name.as_os_str().as_encoded_bytes();
        let count = name.len().min(capacity);
        user::bytes_mut(out, count).copy_from_slice(&name[..count]);
        Ok(count as isize)
    }

    /// Calls about what a path names, of which `stat` and its like read it and others change it.
    pub(super) fn look_at_path(path: usize) -> Result<isize, Error> {
        user::string(path)?;
        Err(error(libc::ENOENT))
    }

    /// Calls on a descriptor that make sense for a file of the real system: passed on with its own number. Others
    /// get `otherwise`.
    pub(super) fn on_image(&mut self, number: i64, args: &Args, otherwise: i32) -> isize {
        let real = match self.descriptors.object(args[0]) {
            Err(error) => return error,
            Ok((_, object)) => match object.kind {
                Kind::Image(real) => real,
                _ => return error(otherwise),
            },
        };
        let mut args = *args;
        args[0] = real as usize;
        // SAFETY: the program passed these arguments to this very call.
        unsafe { raw(number, args) }
    }

    /// `fstat` of what is no file: its type, without anything of the real system.
    pub(super) fn fstat(&mut self, fd: usize, out: usize) -> Result<isize, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let mode = match &object.kind {
            Kind::Image(_) => return Ok(self.on_image(libc::SYS_fstat, &args([fd, out]), 0)),
            Kind::Null | Kind::Entropy => libc::S_IFCHR,
            Kind::Stream(_) | Kind::Log(_) if object.family == 0 => libc::S_IFIFO,
            Kind::Counter(_) | Kind::Timer(_) | Kind::Epoll(_) => 0,
            _ => libc::S_IFSOCK,
        };
        // SAFETY: all-zero is a valid `stat`.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        stat.st_mode = mode | 0o600;
        stat.st_ino = id;
        stat.st_nlink = 1;
        stat.st_blksize = 4096;
        user::write(out, stat)?;
        Ok(0)
    }

    /// The descriptor of the real system behind one of the program.
    pub(super) fn real_descriptor(&mut self, fd: usize) -> Result<i32, Error> {
        match self.descriptors.object(fd)?.1.kind {
            Kind::Image(real) => Ok(real),
            _ => Err(error(libc::ENODEV)),
        }
    }
}

/// Closes a file of the real system.
pub(super) fn close_image(fd: i32) {
    // SAFETY: the descriptor was opened by `open_path`, and its object is gone.
    unsafe { raw(libc::SYS_close, args([fd as usize])) };
}

/// Reads a file of the real system.
pub(super) fn read_image(fd: i32, buffers: &Buffers) -> Result<isize, Error> {
    let Some(&(address, length)) = buffers.0.first() else {
        return Ok(0);
    };
    // SAFETY: the program passed this buffer to a call that writes to it.
    let count = unsafe { raw(libc::SYS_read, args([fd as usize, address, length])) };
    if count < 0 { Err(count) } else { Ok(count) }
}
