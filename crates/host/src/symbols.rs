//! Symbols that intercept calls of the C library.
//!
//! On a thread of a host, the simulated kernel serves these calls. On any other thread they behave as in the C library.
//! The filter ([`crate::kernel::trap`]) would catch some of the calls too, but more slowly. It would not see the
//! others, because they are not system calls: threads, names, and clocks that are read without a call.
#![allow(unsafe_code, reason = "defines symbols of the C library")]

mod names;
mod processes;
pub(crate) mod threads;

use crate::kernel::{call, current_thread, identity, tsc};
use crate::raw::{args, with_errno};
use crate::setup;
use libc::{
    c_char, c_int, c_long, c_uint, c_ulong, c_void, clockid_t, epoll_event, iovec, mode_t, msghdr,
    nfds_t, off_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, time_t, timespec, timeval,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes a call on behalf of the calling thread, and returns the result as the C library does.
fn serve<const N: usize>(number: c_long, given: [usize; N]) -> isize {
    let args = args(given);
    with_errno(match current_thread() {
        Some(_) => call(number, args),
        // SAFETY: the C library makes the same system call with these arguments.
        None => unsafe { setup::call(number, args) },
    })
}

/// Defines symbols whose arguments equal the arguments of a system call.
macro_rules! system_calls {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $number:ident;)*) => {
        $(
            /// Serves the function of the C library with this name.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                serve(libc::$number, [$($argument as usize),*]) as $result
            }
        )*
    };
}

system_calls! {
    read(fd: c_int, buffer: *mut c_void, size: size_t) -> ssize_t = SYS_read;
    write(fd: c_int, buffer: *const c_void, size: size_t) -> ssize_t = SYS_write;
    readv(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t = SYS_readv;
    writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t = SYS_writev;
    recvfrom(fd: c_int, buffer: *mut c_void, size: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t) -> ssize_t = SYS_recvfrom;
    sendto(fd: c_int, buffer: *const c_void, size: size_t, flags: c_int, to: *const sockaddr, length: socklen_t) -> ssize_t = SYS_sendto;
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = SYS_recvmsg;
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t = SYS_sendmsg;
    close(fd: c_int) -> c_int = SYS_close;
    dup(fd: c_int) -> c_int = SYS_dup;
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int = SYS_epoll_ctl;
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, limit: c_int) -> c_int = SYS_epoll_wait;
    epoll_create1(flags: c_int) -> c_int = SYS_epoll_create1;
    poll(list: *mut pollfd, count: nfds_t, limit: c_int) -> c_int = SYS_poll;
    socket(family: c_int, kind: c_int, protocol: c_int) -> c_int = SYS_socket;
    bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = SYS_bind;
    listen(fd: c_int, backlog: c_int) -> c_int = SYS_listen;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = SYS_accept;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = SYS_accept4;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int = SYS_connect;
    shutdown(fd: c_int, how: c_int) -> c_int = SYS_shutdown;
    getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = SYS_getsockname;
    getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = SYS_getpeername;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int = SYS_setsockopt;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int = SYS_getsockopt;
    eventfd(value: c_uint, flags: c_int) -> c_int = SYS_eventfd2;
    timerfd_create(clock: c_int, flags: c_int) -> c_int = SYS_timerfd_create;
    pipe2(out: *mut c_int, flags: c_int) -> c_int = SYS_pipe2;
    getrandom(buffer: *mut c_void, size: size_t, flags: c_uint) -> ssize_t = SYS_getrandom;
    sched_yield() -> c_int = SYS_sched_yield;
    mmap(at: *mut c_void, size: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void = SYS_mmap;
    mmap64(at: *mut c_void, size: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void = SYS_mmap;
    getpid() -> libc::pid_t = SYS_getpid;
    gettid() -> libc::pid_t = SYS_gettid;
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int = SYS_nanosleep;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = SYS_fcntl;
    fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = SYS_fcntl;
    ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int = SYS_ioctl;
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = SYS_open;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int = SYS_open;
    pread(fd: c_int, buffer: *mut c_void, size: size_t, at: off_t) -> ssize_t = SYS_pread64;
    pread64(fd: c_int, buffer: *mut c_void, size: size_t, at: off_t) -> ssize_t = SYS_pread64;
    pwrite(fd: c_int, buffer: *const c_void, size: size_t, at: off_t) -> ssize_t = SYS_pwrite64;
    pwrite64(fd: c_int, buffer: *const c_void, size: size_t, at: off_t) -> ssize_t = SYS_pwrite64;
    lseek(fd: c_int, offset: off_t, whence: c_int) -> off_t = SYS_lseek;
    lseek64(fd: c_int, offset: off_t, whence: c_int) -> off_t = SYS_lseek;
    fsync(fd: c_int) -> c_int = SYS_fsync;
    fdatasync(fd: c_int) -> c_int = SYS_fdatasync;
    ftruncate(fd: c_int, size: off_t) -> c_int = SYS_ftruncate;
    ftruncate64(fd: c_int, size: off_t) -> c_int = SYS_ftruncate;
}

/// Replaces the C library's `syscall`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    serve(number, [a, b, c, d, e, f]) as c_long
}

/// Replaces the C library's `recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    serve(
        libc::SYS_recvfrom,
        [fd as usize, buffer as usize, size, flags as usize],
    )
}

/// Replaces the C library's `send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    buffer: *const c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    serve(
        libc::SYS_sendto,
        [fd as usize, buffer as usize, size, flags as usize],
    )
}

/// Replaces the C library's `epoll_pwait`. The signal mask has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    let args = [
        epoll as usize,
        events as usize,
        most as usize,
        limit as usize,
        mask as usize,
        8,
    ];
    serve(libc::SYS_epoll_pwait, args) as c_int
}

/// Replaces the C library's `clock_nanosleep`, which returns the error instead of setting `errno`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let args = args([clock as usize, flags as usize, time as usize, left as usize]);
    let result = match current_thread() {
        Some(_) => call(libc::SYS_clock_nanosleep, args),
        // SAFETY: the C library makes the same system call with these arguments.
        None => unsafe { setup::call(libc::SYS_clock_nanosleep, args) },
    };
    -result as c_int
}

/// The original definition of a symbol that is intercepted here.
pub(crate) struct Next {
    name: &'static std::ffi::CStr,
    address: AtomicUsize,
}

impl Next {
    pub(crate) const fn new(name: &'static std::ffi::CStr) -> Next {
        Next {
            name,
            address: AtomicUsize::new(0),
        }
    }

    /// Returns the original function. The caller must know its type.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function with this name.
    pub(crate) unsafe fn get<F: Copy>(&self) -> F {
        let mut address = self.address.load(Ordering::Relaxed);
        if address == 0 {
            // SAFETY: the name ends with a zero byte.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
            if address == 0 {
                crate::kernel::fatal(
                    "the C library lacks a function; glibc 2.31 or newer is needed",
                );
            }
            self.address.store(address, Ordering::Relaxed);
        }
        // SAFETY: the caller guarantees the type, which has the size of a pointer.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

/// Replaces the C library's `clock_gettime`. Outside of simulations it reads the clock without a system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    static NEXT: Next = Next::new(c"clock_gettime");
    if current_thread().is_some() || setup::is_running() || tsc::is_in_workers() {
        return serve(libc::SYS_clock_gettime, [clock as usize, time as usize]) as c_int;
    }
    // SAFETY: the type is that of the C library's function, and the arguments come from the caller.
    unsafe { NEXT.get::<unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int>()(clock, time) }
}

/// Replaces the C library's `gettimeofday`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    serve(libc::SYS_gettimeofday, [time as usize, zone as usize]) as c_int
}

/// Replaces the C library's `time`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(out: *mut time_t) -> time_t {
    let now = serve(libc::SYS_time, [0]) as time_t;
    if !out.is_null() {
        // SAFETY: the caller passed a pointer to a `time_t`.
        unsafe { *out = now };
    }
    now
}

/// Replaces the C library's `sysconf`. In hosts and during the set-up it hides how many processors and how much memory
/// the machine has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    static NEXT: Next = Next::new(c"sysconf");
    if current_thread().is_some() || setup::is_running() {
        match name {
            libc::_SC_NPROCESSORS_CONF | libc::_SC_NPROCESSORS_ONLN => {
                return identity::PROCESSORS.into();
            }
            libc::_SC_PHYS_PAGES => return (identity::MEMORY >> 12) as c_long,
            libc::_SC_AVPHYS_PAGES => return (identity::MEMORY >> 13) as c_long,
            _ => {}
        }
    }
    // SAFETY: the type is that of the C library's function.
    unsafe { NEXT.get::<unsafe extern "C" fn(c_int) -> c_long>()(name) }
}

/// Replaces the C library's `sched_getaffinity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(
    process: libc::pid_t,
    size: size_t,
    set: *mut libc::cpu_set_t,
) -> c_int {
    let arguments = [process as usize, size, set as usize];
    match serve(libc::SYS_sched_getaffinity, arguments) {
        written @ 0.. => {
            let rest = size.saturating_sub(written as usize);
            // SAFETY: the caller passed a set of `size` bytes, of which the call has written the first ones.
            unsafe { set.cast::<u8>().add(written as usize).write_bytes(0, rest) };
            0
        }
        failed => failed as c_int,
    }
}

/// The least size of a stack for signals in bytes. A call in a handler may be trapped, which puts a second frame on the
/// stack. With the largest registers, a frame takes nearly half of `SIGSTKSZ`.
const SIGNAL_STACK: c_ulong = 64 << 10;

/// Replaces the C library's `getauxval`. It hides from hosts the clock that can be read without a system call, and the
/// size of the processor's registers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getauxval(kind: c_ulong) -> c_ulong {
    static NEXT: Next = Next::new(c"getauxval");
    if kind == libc::AT_SYSINFO_EHDR && current_thread().is_some() {
        return 0;
    }
    if kind == libc::AT_MINSIGSTKSZ {
        return SIGNAL_STACK;
    }
    // SAFETY: the type is that of the C library's function.
    unsafe { NEXT.get::<unsafe extern "C" fn(c_ulong) -> c_ulong>()(kind) }
}
