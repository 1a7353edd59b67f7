//! Catches the calls that do not go through the intercepted symbols. A seccomp filter raises a signal for every call
//! that did not come from [`crate::raw`], and the signal's handler serves the call like [`super::call`].
//!
//! The filter allows calls that concern only the memory, the signals and the threads of the process itself.
#![allow(unsafe_code, reason = "installs a filter and a signal handler")]

use super::{call, current_thread, tsc};
use crate::raw::{self, raw};
use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, SECCOMP_RET_TRAP, sock_filter,
};

/// The numbers of the allowed calls.
const NATIVE: [i64; 17] = [
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_mincore,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_sigaltstack,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_arch_prctl,
    libc::SYS_set_tid_address,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
];

/// Offsets in `seccomp_data`: the number of the call, the instruction pointer, the first argument.
const NUMBER: u32 = 0;
const POINTER_LOW: u32 = 8;
const POINTER_HIGH: u32 = 12;
const ARGUMENT: u32 = 16;

fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

fn answer(action: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, action)
}

/// Skips the next instruction unless the loaded value equals `k`.
fn skip_unless(k: u32) -> sock_filter {
    sock_filter {
        code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
        jt: 0,
        jf: 1,
        k,
    }
}

/// Returns the program of the filter.
fn program() -> Vec<sock_filter> {
    let pointer = raw::return_address();
    let mut program = vec![load(NUMBER)];
    for number in NATIVE {
        program.extend([skip_unless(number as u32), answer(SECCOMP_RET_ALLOW)]);
    }
    // Only the handler of faults is simulated ([`super::handlers`]).
    program.push(sock_filter {
        code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
        jt: 0,
        jf: 4,
        k: libc::SYS_rt_sigaction as u32,
    });
    program.push(load(ARGUMENT));
    program.push(sock_filter {
        code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
        jt: 1,
        jf: 0,
        k: libc::SIGSEGV as u32,
    });
    program.extend([answer(SECCOMP_RET_ALLOW), load(NUMBER)]);
    // The C library then falls back to `clone`, whose flags a filter can inspect: only threads are allowed.
    let no_such_call = SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    program.extend([skip_unless(libc::SYS_clone3 as u32), answer(no_such_call)]);
    let is_clone = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
    program.push(sock_filter {
        code: is_clone,
        jt: 0,
        jf: 3,
        k: libc::SYS_clone as u32,
    });
    program.push(load(ARGUMENT));
    let makes_thread = (BPF_JMP | BPF_JSET | BPF_K) as u16;
    program.push(sock_filter {
        code: makes_thread,
        jt: 0,
        jf: 1,
        k: libc::CLONE_THREAD as u32,
    });
    program.push(answer(SECCOMP_RET_ALLOW));
    // Allows calls from [`crate::raw`].
    let equals = (BPF_JMP | BPF_JEQ | BPF_K) as u16;
    program.push(load(POINTER_HIGH));
    program.push(sock_filter {
        code: equals,
        jt: 0,
        jf: 3,
        k: (pointer >> 32) as u32,
    });
    program.push(load(POINTER_LOW));
    program.push(sock_filter {
        code: equals,
        jt: 0,
        jf: 1,
        k: pointer as u32,
    });
    program.push(answer(SECCOMP_RET_ALLOW));
    program.push(answer(SECCOMP_RET_TRAP));
    program
}

/// Serves a call that the filter caught.
unsafe extern "C" fn on_signal(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context to a handler that is installed with `SA_SIGINFO`.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let register = |index: i32| registers[index as usize] as usize;
    let number = register(libc::REG_RAX) as i64;
    let args = [
        register(libc::REG_RDI),
        register(libc::REG_RSI),
        register(libc::REG_RDX),
        register(libc::REG_R10),
        register(libc::REG_R8),
        register(libc::REG_R9),
    ];
    let errno = raw::errno();
    let result = match current_thread() {
        Some(_) => call(number, args),
        // SAFETY: passes on the arguments of a thread that is not part of the program.
        None => unsafe { raw(number, args) },
    };
    raw::set_errno(errno);
    registers[libc::REG_RAX as usize] = result as i64;
}

/// Installs the filter for this process, permanently.
pub(crate) fn install() -> Result<(), String> {
    tsc::install()?;
    let mut program = program();
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: an all-zero `sigaction` is valid, and handler and filter have the types that the calls expect. The kernel
    // copies the filter.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
        if libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()) != 0 {
            return Err(format!(
                "cannot handle SIGSYS: {}",
                std::io::Error::last_os_error()
            ));
        }
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            ) != 0
        {
            return Err(format!(
                "cannot install a seccomp filter: {}",
                std::io::Error::last_os_error()
            ));
        }
    }
    Ok(())
}
