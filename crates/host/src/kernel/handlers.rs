//! The program's handlers of signals. They are installed in the real process, except the handler of `SIGSEGV`.
#![allow(unsafe_code, reason = "asks for handlers, and raises signals")]

use super::user::{self, Error};
use crate::raw::{args, raw};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The program's action for `SIGSEGV`, as the kernel's structure: the handler, the flags, the restorer and the mask.
pub(super) static ACTION: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Returns the program's handler of `SIGSEGV`.
pub(super) fn fault_handler() -> usize {
    ACTION[0].load(Relaxed)
}

/// Simulates `rt_sigaction` for `SIGSEGV`.
pub(super) fn set_action(new: usize, old: usize) -> Result<isize, Error> {
    let before = ACTION.each_ref().map(|word| word.load(Relaxed));
    if new != 0 {
        let action: [usize; 4] = user::read(new)?;
        for (word, value) in ACTION.iter().zip(action) {
            word.store(value, Relaxed);
        }
    }
    if old != 0 {
        user::write(old, before)?;
    }
    Ok(0)
}

/// The program's reaction to a signal.
pub(super) enum Disposition {
    Default,
    Ignored,
    Handled,
}

/// Returns the program's handler of a signal, `SIG_DFL` or `SIG_IGN`.
fn handler(signal: i32) -> usize {
    if signal == libc::SIGSEGV {
        return fault_handler();
    }
    // The first word of the kernel's structure is the handler.
    let mut action = [0usize; 4];
    let arguments = args([signal as usize, 0, action.as_mut_ptr() as usize, 8]);
    // SAFETY: the structure has four words, and the mask in it has eight bytes.
    match unsafe { raw(libc::SYS_rt_sigaction, arguments) } {
        0 => action[0],
        _ => libc::SIG_DFL,
    }
}

/// Returns the program's reaction to a signal.
pub(super) fn disposition(signal: i32) -> Disposition {
    match handler(signal) {
        libc::SIG_IGN => Disposition::Ignored,
        libc::SIG_DFL => Disposition::Default,
        _ => Disposition::Handled,
    }
}

/// Raises a signal in the calling thread, like `raise` and `abort`. Handlers run before this function returns.
pub(super) fn raise(signal: i32) {
    // SAFETY: the calls take no pointers.
    unsafe {
        let process = raw(libc::SYS_getpid, args([]));
        let thread = raw(libc::SYS_gettid, args([]));
        let arguments = args([process as usize, thread as usize, signal as usize]);
        raw(libc::SYS_tgkill, arguments);
    }
}
