//! The processor's own clock, which programs read without a system call (`rdtsc`, `rdtscp`).
//!
//! In a host these instructions fault. The handler of the fault lets the clock tick once for each nanosecond of the
//! host's monotonic clock. A program may react to faults, too, so its own action for `SIGSEGV` is stored, and other
//! faults are passed on to it.
#![allow(
    unsafe_code,
    reason = "handles a signal and reads the faulting instruction"
)]

use super::handlers::{ACTION, fault_handler, raise};
use super::{call, current_thread};
use crate::raw::{args, raw};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// The `si_code` of faults that are not caused by an address (`SI_KERNEL`).
const PROTECTION: i32 = 0x80;

/// True if the instructions fault in workers of this process.
static IN_WORKERS: OnceLock<bool> = OnceLock::new();

/// Lets the instructions fault in the calling worker of the engine as they do in its hosts, if the system supports it: to
/// switch between threads of which only one faults takes a control register, which a virtual machine changes in
/// microseconds. The handler lets the worker read the real clock.
pub(crate) fn install_in_worker() {
    // Workers begin at the same time. A second installation would store this handler as the one to pass faults on to.
    if *IN_WORKERS.get_or_init(|| install().is_ok()) {
        set(libc::PR_TSC_SIGSEGV);
    }
}

/// True if the C library cannot read clocks quickly in this process, because it uses the instructions.
pub(crate) fn is_in_workers() -> bool {
    IN_WORKERS.get() == Some(&true)
}

/// Sets what the instructions do in the calling thread. Returns the result of the kernel.
fn set(mode: i32) -> isize {
    let arguments = args([libc::PR_SET_TSC as usize, mode as usize]);
    // SAFETY: the call takes no pointers.
    unsafe { raw(libc::SYS_prctl, arguments) }
}

/// Lets the instructions fault in this thread and all threads that it starts.
///
/// # Errors
/// If the system does not support this.
pub(super) fn install() -> Result<(), String> {
    let mut before = [0usize; 4];
    let query = args([libc::SIGSEGV as usize, 0, before.as_mut_ptr() as usize, 8]);
    // SAFETY: the structure has four words, and the mask in it has eight bytes. An all-zero `sigaction` is valid, and
    // the handler has the type that the call expects.
    unsafe {
        raw(libc::SYS_rt_sigaction, query);
        for (word, value) in ACTION.iter().zip(before) {
            word.store(value, Relaxed);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()) != 0
            || set(libc::PR_TSC_SIGSEGV) != 0
        {
            return Err(format!(
                "cannot simulate the processor's clock: {}",
                std::io::Error::last_os_error()
            ));
        }
    }
    Ok(())
}

/// Serves a reading of the clock, or passes the fault on to the program.
unsafe extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes valid pointers to a handler that is installed with `SA_SIGINFO`.
    let (code, registers) = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        ((*info).si_code, &mut context.uc_mcontext.gregs)
    };
    let at = registers[libc::REG_RIP as usize];
    let length = match code {
        PROTECTION => length_of_reading(at as usize),
        _ => None,
    };
    let Some(length) = length else {
        // SAFETY: the kernel has passed these arguments to this handler.
        return unsafe { pass_on(signal, code, info, context) };
    };
    let ticks = ticks();
    registers[libc::REG_RAX as usize] = (ticks & 0xffff_ffff) as i64;
    registers[libc::REG_RDX as usize] = (ticks >> 32) as i64;
    if length == RDTSCP.len() {
        // The number of the processor: a host has one.
        registers[libc::REG_RCX as usize] = 0;
    }
    registers[libc::REG_RIP as usize] = at + length as i64;
}

const RDTSC: [u8; 2] = [0x0f, 0x31];
const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];

/// Returns the length of an instruction that reads the clock; `None` for another instruction.
fn length_of_reading(at: usize) -> Option<usize> {
    let starts_with = |bytes: &[u8]| {
        let mut bytes = bytes.iter().enumerate();
        // SAFETY: the processor has decoded an instruction here. A byte is read only if an instruction that begins
        // with the bytes before it has this byte as well.
        bytes.all(|(index, &byte)| unsafe { *((at + index) as *const u8) } == byte)
    };
    let known: [&[u8]; 2] = [&RDTSC, &RDTSCP];
    let found = known.into_iter().find(|bytes| starts_with(bytes));
    found.map(<[u8]>::len)
}

/// Returns the nanoseconds of the host's monotonic clock; for a thread that is not part of a program, the real ticks.
fn ticks() -> u64 {
    if current_thread().is_none() {
        set(libc::PR_TSC_ENABLE);
        // SAFETY: all processors have the instruction, and it does not fault now.
        let ticks = unsafe { std::arch::x86_64::_rdtsc() };
        set(libc::PR_TSC_SIGSEGV);
        return ticks;
    }
    let mut time: [u64; 2] = [0; 2];
    let arguments = args([libc::CLOCK_MONOTONIC as usize, time.as_mut_ptr() as usize]);
    call(libc::SYS_clock_gettime, arguments);
    time[0] * 1_000_000_000 + time[1]
}

/// Does what the program has requested for `SIGSEGV`.
///
/// # Safety
/// The kernel has passed these arguments to a signal handler.
unsafe fn pass_on(signal: i32, code: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let is_sent = code <= 0;
    match fault_handler() {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            let default = [0usize; 4];
            let arguments = args([signal as usize, default.as_ptr() as usize, 0, 8]);
            // SAFETY: the structure has four words, and the mask in it has eight bytes.
            unsafe { raw(libc::SYS_rt_sigaction, arguments) };
            // A fault happens again when the handler returns.
            if is_sent {
                raise(signal);
            }
        }
        handler => {
            if ACTION[1].load(Relaxed) & libc::SA_RESETHAND as usize != 0 {
                ACTION[0].store(libc::SIG_DFL, Relaxed);
            }
            type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: the program has installed a handler of this type, or of one without the last two arguments, which
            // the calling convention lets it ignore.
            unsafe { std::mem::transmute::<usize, Handler>(handler)(signal, info, context) }
        }
    }
}
