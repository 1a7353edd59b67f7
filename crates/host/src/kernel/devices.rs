//! Paths that are not on the disk: devices, and files of the real system that a program reads about itself.
#![allow(unsafe_code, reason = "reads the program's own image")]

use super::Kernel;
use super::descriptors::Kind;
use super::user::{self, Buffers, Error, error};
use crate::raw::{Args, args, raw};

/// The target of such a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Null,
    Zero,
    Entropy,
    /// The program's image, or what the system reports about this process's memory.
    Real(&'static [u8]),
}

/// Returns the device with this path.
pub(super) fn device(path: &[u8]) -> Option<Device> {
    match path {
        b"/dev/null" => Some(Device::Null),
        b"/dev/zero" => Some(Device::Zero),
        b"/dev/urandom" | b"/dev/random" => Some(Device::Entropy),
        b"/proc/self/exe" => Some(Device::Real(b"/proc/self/exe\0")),
        // Panics look here for the program that addresses belong to.
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
            let read = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
            let directory = libc::AT_FDCWD as usize;
            let args = args([directory, path.as_ptr() as usize, read]);
            // SAFETY: the path ends with a zero byte.
            let fd = unsafe { raw(libc::SYS_openat, args) };
            if fd < 0 {
                return Err(fd);
            }
            Kind::Image(fd as i32)
        }
    })
}

impl Kernel {
    /// Passes a call on a descriptor to the real system, with the real descriptor of a file of the real system. Other
    /// descriptors get the error `otherwise`.
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

    /// `readlink` of a path that is not on the disk; only the program has a target.
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

/// Closes a file of the real system.
pub(super) fn close_image(fd: i32) {
    // SAFETY: the descriptor was opened by `open`, and its object is gone.
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
