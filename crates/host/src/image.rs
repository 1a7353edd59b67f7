//! Starts the program at a fixed address.
//!
//! Addresses of statics and functions influence programs, for example through tables of locks that are hashed by
//! address. A position-independent program is loaded at a random address. The call `personality` would switch the
//! randomization off, but containers refuse this call. But since Linux 5.10 the kernel aligns the address to the
//! alignment that the program's segments request: a copy of the program in memory that requests 2^46 bytes is always
//! loaded at 2^46.
#![allow(
    unsafe_code,
    reason = "makes a file in memory and reads the environment"
)]

use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The name of the copy in `/proc/self/maps`.
pub(crate) const MAPPED_NAME: &str = "/memfd:corsair-host";
/// An environment variable with the path of the program of which this process runs a copy.
const PROGRAM: &str = "CORSAIR_HOST_PROGRAM";
/// The environment variable with the descriptor of the file that contains the configuration of the process.
pub(crate) const BOOT: &str = "CORSAIR_HOST_BOOT";
const BASE: u64 = 1 << 46;

/// The end of the addresses at which programs that are not position-independent are loaded.
const LOW: u64 = 1 << 32;

/// True if this process runs at the fixed address. The function allocates nothing.
pub(crate) fn is_fixed() -> bool {
    let here = is_fixed as *const () as u64;
    let is_at_base = (BASE..BASE + (1 << 40)).contains(&here);
    (is_at_base || here < LOW) && variable(PROGRAM).is_some()
}

/// Returns the value of an environment variable whose name is shorter than 32 bytes, if it is UTF-8. The function allocates
/// nothing. The value is valid until the variable is changed.
pub(crate) fn variable(name: &str) -> Option<&'static str> {
    let mut text = [0u8; 32];
    text[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the name ends with a zero byte, and so does the value.
    unsafe {
        let value = libc::getenv(text.as_ptr().cast());
        if value.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(value).to_str().ok()
    }
}

static PATH: OnceLock<PathBuf> = OnceLock::new();

/// Sets the path of the program, if this process executes another file.
pub(crate) fn set_program(path: &Path) {
    let _ = PATH.set(path.to_owned());
}

/// Returns the path of the program on disk.
pub fn program() -> &'static PathBuf {
    PATH.get_or_init(|| {
        let named = std::env::var_os(PROGRAM).map(PathBuf::from);
        named
            .or_else(|| std::env::current_exe().ok())
            .unwrap_or_default()
    })
}

/// Sets the alignment of the first loaded segment of an ELF file.
fn align(image: &mut [u8]) -> Result<(), String> {
    const LOAD: u32 = 1;
    let number = |at: usize, size: usize| -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(image.get(at..at + size)?);
        Some(u64::from_le_bytes(bytes))
    };
    let malformed = || "the program is not a 64-bit ELF file".to_string();
    if image.get(..5) != Some(&b"\x7fELF\x02"[..]) {
        return Err(malformed());
    }
    let kind = number(16, 2).ok_or_else(malformed)?;
    if kind == 2 {
        return Ok(()); // not position-independent: its address is fixed already
    }
    let (start, size, count) = (
        number(32, 8).ok_or_else(malformed)? as usize,
        number(54, 2).ok_or_else(malformed)? as usize,
        number(56, 2).ok_or_else(malformed)? as usize,
    );
    for header in (0..count).map(|index| start + index * size) {
        if number(header, 4) == Some(LOAD.into()) {
            let field = image
                .get_mut(header + 48..header + 56)
                .ok_or_else(malformed)?;
            field.copy_from_slice(&BASE.to_le_bytes());
            return Ok(());
        }
    }
    Err(malformed())
}

/// Creates a copy of the program in memory, which stays open in this process.
fn copy() -> Result<i32, String> {
    static COPY: OnceLock<Result<i32, String>> = OnceLock::new();
    let made = COPY.get_or_init(|| {
        let failed = |error: io::Error| format!("cannot copy the program into memory: {error}");
        let mut image = std::fs::read("/proc/self/exe").map_err(failed)?;
        align(&mut image)?;
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(c"corsair-host".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: this function has just created the descriptor, so no other code owns it.
        let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
        file.write_all(&image).map_err(failed)?;
        let fd = file.as_raw_fd();
        std::mem::forget(file);
        Ok(fd)
    });
    made.clone()
}

/// Returns a command that runs this program at the fixed address.
///
/// Fails if this process was started by such a command and is not at the fixed address, to avoid an endless loop.
pub(crate) fn command() -> Result<Command, String> {
    if std::env::var_os(PROGRAM).is_some() {
        return Err(
            "this kernel ignores the alignment of programs when it loads them; \
                    Linux 5.10 or newer is needed"
                .to_string(),
        );
    }
    let path =
        std::env::current_exe().map_err(|error| format!("the program has no path: {error}"))?;
    let fd = copy()?;
    let mut command = Command::new(format!("/proc/self/fd/{fd}"));
    command.env(PROGRAM, path);
    Ok(command)
}
