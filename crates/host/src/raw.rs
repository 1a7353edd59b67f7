//! System calls that bypass the C library, and waiting on a word of memory.
#![allow(unsafe_code, reason = "system calls are inline assembly")]

use std::arch::global_asm;
use std::sync::atomic::{AtomicU32, Ordering};

// The only instruction of a simulated host that may enter the real kernel: the filter in `kernel/trap.rs` recognises it
// by the address after its `syscall` instruction.
global_asm!(
    ".globl corsair_host_raw_call",
    ".hidden corsair_host_raw_call",
    ".globl corsair_host_raw_call_end",
    ".hidden corsair_host_raw_call_end",
    ".type corsair_host_raw_call, @function",
    "corsair_host_raw_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "corsair_host_raw_call_end:",
    "ret",
);

unsafe extern "C" {
    fn corsair_host_raw_call(
        number: i64,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> isize;
    fn corsair_host_raw_call_end();
}

/// Returns the instruction pointer that the kernel sees in a call made by [`raw`].
pub(crate) fn return_address() -> u64 {
    corsair_host_raw_call_end as *const () as u64
}

/// The arguments of a system call; unused ones are zero.
pub(crate) type Args = [usize; 6];

/// Makes a system call. Returns the result of the kernel: a negative error number on failure.
///
/// # Safety
/// Pointers among the arguments must be valid for the call's reads and writes.
pub(crate) unsafe fn raw(number: i64, args: Args) -> isize {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the assembly follows the C calling convention, and the caller guarantees that the pointers are valid.
    unsafe { corsair_host_raw_call(number, a, b, c, d, e, f) }
}

/// Fills missing arguments with zeros.
pub(crate) fn args<const N: usize>(given: [usize; N]) -> Args {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&given);
    all
}

/// Sets `errno` and returns -1 if `result` is a negative error number, like the C library.
pub(crate) fn with_errno(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        return -1;
    }
    result
}

/// Returns the calling thread's `errno`.
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns a pointer to the calling thread's own variable.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(error: i32) {
    // SAFETY: the C library returns a pointer to the calling thread's own variable.
    unsafe { *libc::__errno_location() = error }
}

/// A flag that one thread raises and another waits for, across threads or processes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Signal(AtomicU32);

impl Signal {
    /// Creates a flag that is not raised.
    pub(crate) const fn new() -> Signal {
        Signal(AtomicU32::new(0))
    }

    /// Waits until the flag is raised, and lowers it.
    pub(crate) fn wait(&self) {
        while !self.wait_for(None) {}
    }

    /// Waits like [`Signal::wait`], for at most `seconds`. Returns false after a time-out.
    pub(crate) fn wait_for(&self, seconds: Option<u32>) -> bool {
        if self.0.swap(0, Ordering::Acquire) == 1 {
            return true;
        }
        let limit = libc::timespec {
            tv_sec: seconds.unwrap_or(0).into(),
            tv_nsec: 0,
        };
        let limit = match seconds {
            Some(_) => &raw const limit as usize,
            None => 0,
        };
        let word = self.0.as_ptr() as usize;
        let wait = libc::FUTEX_WAIT as usize;
        // SAFETY: the word and the limit outlive the call.
        unsafe { raw(libc::SYS_futex, args([word, wait, 0, limit])) };
        self.0.swap(0, Ordering::Acquire) == 1
    }

    /// Raises the flag.
    pub(crate) fn raise(&self) {
        self.0.store(1, Ordering::Release);
        let word = self.0.as_ptr() as usize;
        let wake = libc::FUTEX_WAKE as usize;
        // SAFETY: the call does not dereference the address; if it is no longer mapped, no thread is woken.
        unsafe { raw(libc::SYS_futex, args([word, wake, 1])) };
    }
}
