//! Serves paths that are not on the simulated disk: devices, and files of the real system from which a program reads
//! data about itself.
#![allow(unsafe_code, reason = "reads the program's own image")]

use super::Kernel;
use super::objects::files::Image;
use super::objects::{Kind, Object};
use super::user::{self, Buffers, Error, error};
use crate::raw::{Args, args, raw};
use std::ffi::{CStr, CString};

impl Image {
    /// Opens a path for reading. `flags` restricts the type of its target.
    fn open(path: &CStr, flags: i32) -> Result<Image, Error> {
        let kinds = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_PATH;
        let flags = flags & kinds | libc::O_RDONLY | libc::O_CLOEXEC;
        let fd = on_path(libc::SYS_openat, path, [flags as usize, 0])?;
        Ok(Image {
            fd: fd as i32,
            path: path.to_owned(),
        })
    }
}

/// Makes a call of the real system with an absolute path.
fn on_path(number: i64, path: &CStr, more: [usize; 2]) -> Result<isize, Error> {
    let directory = libc::AT_FDCWD as usize;
    let args = args([directory, path.as_ptr() as usize, more[0], more[1]]);
    // SAFETY: the path ends with a zero byte. The program passed any other pointers to this call.
    match unsafe { raw(number, args) } {
        error @ -4095..0 => Err(error),
        result => Ok(result),
    }
}

/// A device or system file, which is not on the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Null,
    Zero,
    Entropy,
    /// The program's image, or the system's report about the memory of this process.
    Real(&'static [u8]),
}

/// Returns the device with this path.
pub(super) fn device(path: &[u8]) -> Option<Device> {
    match path {
        b"/dev/null" => Some(Device::Null),
        b"/dev/zero" => Some(Device::Zero),
        b"/dev/urandom" | b"/dev/random" => Some(Device::Entropy),
        b"/proc/self/exe" => Some(Device::Real(b"/proc/self/exe\0")),
        // A panic reads this file to find the program to which an address belongs.
        b"/proc/self/maps" => Some(Device::Real(b"/proc/self/maps\0")),
        path if path.starts_with(crate::image::MAPPED_NAME.as_bytes()) => {
            Some(Device::Real(b"/proc/self/exe\0"))
        }
        _ => None,
    }
}

/// Opens a device.
pub(super) fn open(device: Device) -> Result<Kind, Error> {
    Ok(match device {
        Device::Null => Kind::Null,
        Device::Zero => Kind::Zero,
        Device::Entropy => Kind::Entropy,
        Device::Real(path) => {
            let path = CStr::from_bytes_with_nul(path).map_err(|_| error(libc::ENOENT))?;
            Kind::Image(Image::open(path, 0)?)
        }
    })
}

impl Kernel {
    /// Returns the path of the real system that a program names, if the program may read it.
    pub(super) fn real_path(&mut self, directory: usize, path: &[u8]) -> Option<CString> {
        let readable = &self.world.readable;
        if readable.is_empty() || path.is_empty() {
            return None;
        }
        let base = match (path[0], directory as i32) {
            (b'/', _) => vec![],
            (_, libc::AT_FDCWD) => self.files.path(self.directory)?,
            _ => match &self.descriptors.object(directory).ok()?.1.kind {
                Kind::Image(image) => image.path.to_bytes().to_vec(),
                Kind::Directory(directory) => self.files.path(directory.ino)?,
                _ => return None,
            },
        };
        let mut names: Vec<&[u8]> = vec![];
        for name in base
            .split(|&byte| byte == b'/')
            .chain(path.split(|&byte| byte == b'/'))
        {
            match name {
                b"" | b"." => {}
                b".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        let full = names
            .iter()
            .fold(vec![], |full, name| [&full, &b"/"[..], name].concat());
        let is_below = |root: &Vec<u8>| {
            let rest = full.strip_prefix(&root[..]);
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        match readable.iter().any(is_below) {
            true => CString::new(full).ok(),
            false => None,
        }
    }

    /// Opens a path of the real system.
    pub(super) fn open_real(&mut self, path: &CStr, flags: i32) -> Result<isize, Error> {
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        if writes || flags & (libc::O_CREAT | libc::O_TRUNC) != 0 {
            return Err(error(libc::EROFS));
        }
        let image = Image::open(path, flags)?;
        self.open(Object::new(Kind::Image(image)), flags)
    }

    /// Simulates `stat` and `lstat` for a path of the real system.
    pub(super) fn stat_real(path: &CStr, out: usize, flags: i32) -> Result<isize, Error> {
        on_path(libc::SYS_newfstatat, path, [out, flags as usize])?;
        hide_access_time(out)
    }

    /// Simulates `access` for a path of the real system.
    pub(super) fn access_real(path: &CStr, mode: usize) -> Result<isize, Error> {
        match mode as i32 & libc::W_OK {
            0 => on_path(libc::SYS_faccessat, path, [mode, 0]),
            _ => Err(error(libc::EROFS)),
        }
    }

    /// Simulates `readlink` for a path of the real system.
    pub(super) fn readlink_real(path: &CStr, out: usize, size: usize) -> Result<isize, Error> {
        on_path(libc::SYS_readlinkat, path, [out, size])
    }

    /// Passes a call on a descriptor to the real system, if the descriptor refers to a file of the real system. Other
    /// descriptors return the error `otherwise`.
    pub(super) fn on_image(&mut self, number: i64, args: &Args, otherwise: i32) -> isize {
        let real = match self.descriptors.object(args[0]) {
            Err(error) => return error,
            Ok((_, object)) => match object.kind {
                Kind::Image(ref image) => image.fd,
                _ => return error(otherwise),
            },
        };
        let mut args = *args;
        args[0] = real as usize;
        // SAFETY: the program passed these arguments to this call.
        unsafe { raw(number, args) }
    }

    /// Simulates `readlink` for a path that is not on the disk. Only the path of the program is a link.
    pub(super) fn image_path(
        path: &[u8],
        out: usize,
        capacity: usize,
    ) -> Option<Result<isize, Error>> {
        if path != b"/proc/self/exe" {
            return None;
        }
        let name = crate::image::program();
        Some(Ok(copy_out(
            name.as_os_str().as_encoded_bytes(),
            out,
            capacity,
        )))
    }
}

/// Copies as many bytes as fit, and returns their number.
pub(super) fn copy_out(bytes: &[u8], out: usize, capacity: usize) -> isize {
    let count = bytes.len().min(capacity);
    user::bytes_mut(out, count).copy_from_slice(&bytes[..count]);
    count as isize
}

/// Removes the time of the last access from the output of `stat`, because reading a file changes it.
pub(super) fn hide_access_time(out: usize) -> Result<isize, Error> {
    let mut stat: libc::stat = user::read(out)?;
    (stat.st_atime, stat.st_atime_nsec) = (stat.st_mtime, stat.st_mtime_nsec);
    user::write(out, stat)?;
    Ok(0)
}

/// Closes a file of the real system.
pub(super) fn close_image(fd: i32) {
    // SAFETY: `open` has opened the descriptor, and its object no longer exists.
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
