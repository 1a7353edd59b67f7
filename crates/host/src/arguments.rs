//! The arguments of a host's program.
//!
//! A program reads its arguments from the memory into which the system wrote them when the process was started. So the
//! arguments of a host are written to this memory. The process is started with padding arguments, so that the memory is
//! large enough.
#![allow(unsafe_code, reason = "writes the arguments of the process")]

use crate::world::HostSpec;
use std::ffi::{CString, OsString};
use std::os::raw::{c_char, c_int};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The maximum number of a program's arguments.
pub(crate) const MOST: usize = 64;
/// The padding argument with which a program is started.
const PADDING: &str = "--corsair-host-padding";

static COUNT: AtomicI32 = AtomicI32::new(0);
static ARGUMENTS: AtomicPtr<*mut c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Stores the location of the arguments. The C library calls this function before `main`.
extern "C" fn remember(count: c_int, arguments: *mut *mut c_char, _: *const *const c_char) {
    COUNT.store(count, Ordering::Relaxed);
    ARGUMENTS.store(arguments, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn(c_int, *mut *mut c_char, *const *const c_char) = remember;

/// Returns the padding arguments, which [`strip_padding`] removes.
pub(crate) fn padding() -> impl Iterator<Item = OsString> {
    std::iter::repeat_n(OsString::from(PADDING), MOST)
}

/// Truncates the arguments before the padding.
pub(crate) fn strip_padding() {
    let first = std::env::args_os().position(|argument| argument == PADDING);
    if let Some(first) = first {
        // SAFETY: `first` is less than the number of entries in the array. No thread reads the array, because a program
        // calls `init` first.
        unsafe {
            *ARGUMENTS.load(Ordering::Relaxed).add(first) = std::ptr::null_mut();
        }
    }
}

/// Replaces the arguments of this process with the arguments of a host. The process has one thread.
pub(crate) fn set(host: &HostSpec) {
    let own = std::slice::from_ref(&host.name);
    let arguments = match host.arguments.is_empty() {
        true => own,
        false => &host.arguments,
    };
    let space = COUNT.load(Ordering::Relaxed) as usize;
    let array = ARGUMENTS.load(Ordering::Relaxed);
    if array.is_null() {
        return;
    }
    for index in 0..space {
        let argument = arguments
            .get(index)
            .and_then(|text| CString::new(text.as_str()).ok());
        let pointer = argument.map_or(std::ptr::null_mut(), CString::into_raw);
        // SAFETY: the array has `space` entries, and the process has one thread. Programs stop reading at the first
        // null.
        unsafe { *array.add(index) = pointer };
    }
}
