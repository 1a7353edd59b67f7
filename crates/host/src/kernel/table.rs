//! The table of simulated calls: the numbers of Linux on x86-64, and the function that serves each.

use super::user::{self, Buffers, Error, error};
use super::{Attempt, Kernel, Step, handlers, identity};
use crate::raw::Args;

type CallResult = Result<Step, Error>;

fn done(result: Result<isize, Error>) -> CallResult {
    result.map(Step::Done)
}

/// Parses a limit in milliseconds; a negative number means no limit.
fn milliseconds(limit: usize) -> Option<u64> {
    u64::try_from(limit as i32)
        .ok()
        .map(|limit| limit * 1_000_000)
}

/// Parses a limit in a `timespec`; null means none.
fn timespec(limit: usize) -> Result<Option<u64>, Error> {
    match limit {
        0 => Ok(None),
        limit => user::timespec(limit).map(Some),
    }
}

/// Serves one attempt at a call.
pub(super) fn serve(kernel: &mut Kernel, number: i64, args: &Args, attempt: &mut Attempt) -> Step {
    let served = transfer(kernel, number, args, attempt)
        .or_else(|| waiting(kernel, number, args, attempt))
        .or_else(|| file(kernel, number, args, attempt))
        .or_else(|| descriptor(kernel, number, args))
        .or_else(|| path(kernel, number, args, attempt))
        .or_else(|| system(kernel, number, args));
    match served {
        Some(Ok(step)) => step,
        Some(Err(error)) => Step::Done(error),
        None => Step::Unsupported,
    }
}

/// Serves calls that read, write or transfer data.
fn transfer(
    kernel: &mut Kernel,
    number: i64,
    args: &Args,
    attempt: &mut Attempt,
) -> Option<CallResult> {
    let [a, b, c, ..] = *args;
    let vector = || Buffers::vector(b, c);
    Some(match number {
        libc::SYS_read => kernel.read(a, &Buffers::one(b, c), 0, attempt, |_, _| Ok(())),
        libc::SYS_readv => {
            vector().and_then(|buffers| kernel.read(a, &buffers, 0, attempt, |_, _| Ok(())))
        }
        libc::SYS_write => kernel.write(a, &Buffers::one(b, c), 0, None, attempt),
        libc::SYS_writev => {
            vector().and_then(|buffers| kernel.write(a, &buffers, 0, None, attempt))
        }
        libc::SYS_recvfrom => kernel.recvfrom(args, attempt),
        libc::SYS_sendto => kernel.sendto(args, attempt),
        libc::SYS_recvmsg => kernel.recvmsg(a, b, c, attempt),
        libc::SYS_sendmsg => kernel.sendmsg(a, b, c, attempt),
        _ => return None,
    })
}

/// Serves calls that wait, and calls about clocks.
fn waiting(
    kernel: &mut Kernel,
    number: i64,
    args: &Args,
    attempt: &mut Attempt,
) -> Option<CallResult> {
    let [a, b, c, d, e, _] = *args;
    Some(match number {
        libc::SYS_futex => kernel.futex(args, attempt),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
            kernel.epoll_wait(a, b, c, milliseconds(d), attempt)
        }
        libc::SYS_epoll_pwait2 => {
            timespec(d).and_then(|limit| kernel.epoll_wait(a, b, c, limit, attempt))
        }
        libc::SYS_poll => kernel.poll(a, b, milliseconds(c), attempt),
        libc::SYS_ppoll => timespec(c).and_then(|limit| kernel.poll(a, b, limit, attempt)),
        libc::SYS_select => match e {
            0 => kernel.select(a, [b, c, d], None, attempt),
            e => user::read::<libc::timeval>(e).and_then(|limit| {
                let nanos = limit.tv_sec as u64 * 1_000_000_000 + limit.tv_usec as u64 * 1_000;
                kernel.select(a, [b, c, d], Some(nanos), attempt)
            }),
        },
        libc::SYS_pselect6 => {
            timespec(e).and_then(|limit| kernel.select(a, [b, c, d], limit, attempt))
        }
        libc::SYS_nanosleep => kernel.sleep(libc::CLOCK_MONOTONIC, 0, a, attempt),
        libc::SYS_clock_nanosleep => kernel.sleep(a as i32, b as i32, c, attempt),
        libc::SYS_pause | libc::SYS_rt_sigsuspend => Ok(Kernel::wait_forever()),
        libc::SYS_sched_yield => match kernel.without_waiting(0, attempt) {
            Step::Done(_) => Ok(Step::Yield(0)),
            step => Ok(step),
        },
        libc::SYS_clock_gettime => kernel.clock_gettime(a, b, attempt),
        libc::SYS_clock_getres => done(kernel.clock_getres(b)),
        libc::SYS_gettimeofday => done(kernel.gettimeofday(a)),
        libc::SYS_time => Ok(Step::Done(
            (kernel.read_clock(libc::CLOCK_REALTIME) / 1_000_000_000) as isize,
        )),
        libc::SYS_clock_settime | libc::SYS_settimeofday => Ok(Step::Done(Kernel::set_clock())),
        libc::SYS_connect => kernel.connect(a, b, c, attempt),
        libc::SYS_accept => kernel.accept(a, b, c, 0, attempt),
        libc::SYS_accept4 => kernel.accept(a, b, c, d, attempt),
        _ => return None,
    })
}

/// Serves calls that create, change and close descriptors.
fn descriptor(kernel: &mut Kernel, number: i64, args: &Args) -> Option<CallResult> {
    let [a, b, c, d, e, _] = *args;
    Some(match number {
        libc::SYS_close => done(kernel.close(a)),
        libc::SYS_dup => done(kernel.duplicate(a, None, false)),
        libc::SYS_dup2 => done(kernel.duplicate(a, Some(b), false)),
        libc::SYS_dup3 if a == b => Err(error(libc::EINVAL)),
        libc::SYS_dup3 => done(kernel.duplicate(a, Some(b), c as i32 & libc::O_CLOEXEC != 0)),
        libc::SYS_fcntl => Ok(kernel.fcntl(a, b as i32, c)),
        libc::SYS_ioctl => Ok(kernel.ioctl(a, b as u64, c)),
        libc::SYS_pipe => done(kernel.pipe(a, 0)),
        libc::SYS_pipe2 => done(kernel.pipe(a, b)),
        libc::SYS_eventfd => done(kernel.eventfd(a, 0)),
        libc::SYS_eventfd2 => done(kernel.eventfd(a, b)),
        libc::SYS_signalfd => done(kernel.signalfd(a, b, 0)),
        libc::SYS_signalfd4 => done(kernel.signalfd(a, b, d)),
        libc::SYS_timerfd_create => done(kernel.timerfd_create(a, b)),
        libc::SYS_timerfd_settime => done(kernel.timerfd_settime(a, b, c, d)),
        libc::SYS_timerfd_gettime => done(kernel.timerfd_gettime(a, b)),
        libc::SYS_epoll_create => done(kernel.epoll_create(0)),
        libc::SYS_epoll_create1 => done(kernel.epoll_create(a)),
        libc::SYS_epoll_ctl => done(kernel.epoll_ctl(a, b, c, d)),
        libc::SYS_socket => Ok(kernel.socket(a, b, c)),
        libc::SYS_socketpair => Ok(kernel.socketpair(a, b, d)),
        libc::SYS_bind => done(kernel.bind(a, b, c)),
        libc::SYS_listen => done(kernel.listen(a, b)),
        libc::SYS_shutdown => done(kernel.shutdown(a, b)),
        libc::SYS_getsockname => done(kernel.socket_name(a, b, c, false)),
        libc::SYS_getpeername => done(kernel.socket_name(a, b, c, true)),
        libc::SYS_setsockopt => Ok(kernel.setsockopt(a, b, c, d, e)),
        libc::SYS_getsockopt => Ok(kernel.getsockopt(a, b, c, d, e)),
        libc::SYS_mmap => done(kernel.mmap(args)),
        _ => return None,
    })
}

/// Serves calls on open files.
fn file(
    kernel: &mut Kernel,
    number: i64,
    args: &Args,
    attempt: &mut Attempt,
) -> Option<CallResult> {
    let [a, b, c, d, ..] = *args;
    let one = Buffers::one(b, c);
    let mut positional = |buffers: Result<Buffers, Error>, is_write| {
        buffers.and_then(|buffers| kernel.positional(a, &buffers, d, is_write, attempt))
    };
    Some(match number {
        libc::SYS_pread64 => positional(Ok(one), false),
        libc::SYS_pwrite64 => positional(Ok(one), true),
        libc::SYS_preadv => positional(Buffers::vector(b, c), false),
        libc::SYS_pwritev => positional(Buffers::vector(b, c), true),
        libc::SYS_lseek => done(kernel.seek(a, b, c)),
        libc::SYS_ftruncate => done(kernel.ftruncate(a, b)),
        libc::SYS_fallocate => done(kernel.fallocate(a, b, c, d)),
        libc::SYS_fsync | libc::SYS_fdatasync => kernel.fsync(a, false, attempt),
        libc::SYS_syncfs => kernel.fsync(a, true, attempt),
        libc::SYS_sync => kernel.sync_inodes(None, attempt),
        libc::SYS_msync => kernel.msync(a, b, c, attempt),
        libc::SYS_flock => kernel.flock(a, b, attempt),
        libc::SYS_fcntl
            if matches!(
                b as i32,
                libc::F_SETLK
                    | libc::F_SETLKW
                    | libc::F_GETLK
                    | libc::F_OFD_SETLK
                    | libc::F_OFD_SETLKW
                    | libc::F_OFD_GETLK
            ) =>
        {
            kernel.record_lock(a, b as i32, c, attempt)
        }
        libc::SYS_getdents64 => done(kernel.directory_entries(a, b, c)),
        libc::SYS_fstat => done(kernel.fstat(a, b)),
        libc::SYS_fstatfs => done(kernel.inode_of(a).and_then(|_| kernel.statfs(b))),
        libc::SYS_fchmod => done(kernel.chmod(a, None, b)),
        libc::SYS_fchdir => done(kernel.chdir(a, None)),
        // Calls that only give advice, or start a write without waiting for it, have no effect.
        libc::SYS_fadvise64 | libc::SYS_readahead | libc::SYS_sync_file_range => Ok(Step::Done(0)),
        // Programs fall back to `read` and `write`.
        libc::SYS_copy_file_range => Err(error(libc::EOPNOTSUPP)),
        libc::SYS_sendfile | libc::SYS_splice => Err(error(libc::EINVAL)),
        libc::SYS_memfd_create => kernel.memory_file(b),
        _ => return None,
    })
}

/// Serves calls with paths.
fn path(
    kernel: &mut Kernel,
    number: i64,
    args: &Args,
    attempt: &mut Attempt,
) -> Option<CallResult> {
    const HERE: usize = libc::AT_FDCWD as usize;
    const NO_FOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;
    let [a, b, c, d, ..] = *args;
    Some(match number {
        libc::SYS_open => kernel.open_path(HERE, a, b, c, attempt),
        libc::SYS_openat => kernel.open_path(a, b, c, d, attempt),
        libc::SYS_creat => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            kernel.open_path(HERE, a, flags as usize, b, attempt)
        }
        libc::SYS_stat => done(kernel.stat(HERE, a, b, 0)),
        libc::SYS_lstat => done(kernel.stat(HERE, a, b, NO_FOLLOW)),
        libc::SYS_newfstatat => done(kernel.stat(a, b, c, d as i32)),
        libc::SYS_statx => done(kernel.statx(args)),
        libc::SYS_statfs => done(kernel.statfs(b)),
        libc::SYS_access => done(kernel.access(HERE, a, b)),
        libc::SYS_faccessat | libc::SYS_faccessat2 => done(kernel.access(a, b, c)),
        libc::SYS_readlink => done(kernel.readlink(HERE, a, b, c)),
        libc::SYS_readlinkat => done(kernel.readlink(a, b, c, d)),
        libc::SYS_mknod => done(kernel.mknod(HERE, a, b)),
        libc::SYS_mknodat => done(kernel.mknod(a, b, c)),
        libc::SYS_mkdir => done(kernel.mkdir(HERE, a, b)),
        libc::SYS_mkdirat => done(kernel.mkdir(a, b, c)),
        libc::SYS_unlink => done(kernel.unlink(HERE, a, false)),
        libc::SYS_rmdir => done(kernel.unlink(HERE, a, true)),
        libc::SYS_unlinkat => done(kernel.unlink(a, b, c as i32 & libc::AT_REMOVEDIR != 0)),
        libc::SYS_rename => done(kernel.rename(&[HERE, a, HERE, b, 0, 0])),
        libc::SYS_renameat => done(kernel.rename(&[a, b, c, d, 0, 0])),
        libc::SYS_renameat2 => done(kernel.rename(args)),
        libc::SYS_link => done(kernel.link(&[HERE, a, HERE, b, 0, 0])),
        libc::SYS_linkat => done(kernel.link(args)),
        libc::SYS_symlink => done(kernel.symlink(a, HERE, b)),
        libc::SYS_symlinkat => done(kernel.symlink(a, b, c)),
        libc::SYS_truncate => done(kernel.truncate(a, b)),
        libc::SYS_chmod => done(kernel.chmod(HERE, Some(a), b)),
        libc::SYS_fchmodat => done(kernel.chmod(a, Some(b), c)),
        libc::SYS_utimensat => done(kernel.set_times(a, b, c, d)),
        libc::SYS_chdir => done(kernel.chdir(HERE, Some(a))),
        libc::SYS_getcwd => done(kernel.getcwd(a, b)),
        // Ownership does not change, because a host has only one user.
        libc::SYS_chown | libc::SYS_fchown | libc::SYS_lchown | libc::SYS_fchownat => {
            Ok(Step::Done(0))
        }
        libc::SYS_getxattr
        | libc::SYS_lgetxattr
        | libc::SYS_fgetxattr
        | libc::SYS_setxattr
        | libc::SYS_fsetxattr
        | libc::SYS_listxattr
        | libc::SYS_flistxattr => Err(error(libc::EOPNOTSUPP)),
        _ => return None,
    })
}

/// Serves calls about the process and its machine.
fn system(kernel: &mut Kernel, number: i64, args: &Args) -> Option<CallResult> {
    let [a, b, c, d, ..] = *args;
    Some(match number {
        libc::SYS_getrandom => Ok(Step::Done(kernel.getrandom(a, b))),
        libc::SYS_getpid | libc::SYS_getpgrp | libc::SYS_getsid => {
            Ok(Step::Done(super::identity::PID as isize))
        }
        libc::SYS_getppid => Ok(Step::Done(1)),
        libc::SYS_gettid => Ok(Step::Done(Kernel::gettid())),
        libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid => {
            Ok(Step::Done(super::identity::USER as isize))
        }
        libc::SYS_sched_getaffinity => done(identity::affinity(b, c)),
        libc::SYS_sched_setaffinity | libc::SYS_setpriority => Ok(Step::Done(0)),
        libc::SYS_umask => Ok(Step::Done(kernel.umask(a))),
        libc::SYS_getcpu => done(Kernel::getcpu(a, b)),
        libc::SYS_sysinfo => done(kernel.sysinfo(a)),
        libc::SYS_getrusage => done(Kernel::getrusage(b)),
        libc::SYS_times => done(kernel.times(a)),
        // A host has one user and one group.
        libc::SYS_getgroups | libc::SYS_setpgid | libc::SYS_getpriority => Ok(Step::Done(0)),
        libc::SYS_getresuid | libc::SYS_getresgid => {
            let user = super::identity::USER;
            let each = [a, b, c].iter().try_for_each(|&out| user::write(out, user));
            done(each.map(|()| 0))
        }
        libc::SYS_uname => done(kernel.uname(a)),
        libc::SYS_getrlimit => done(Kernel::limits(a, b)),
        libc::SYS_prlimit64 => done(Kernel::limits(b, d)),
        libc::SYS_prctl => done(kernel.prctl(a, b)),
        libc::SYS_exit_group => Ok(kernel.exit(a)),
        libc::SYS_kill | libc::SYS_tkill => Ok(kernel.send_signal(a, b)),
        libc::SYS_tgkill => Ok(kernel.send_signal(a, c)),
        // The filter passes on only the actions for faults.
        libc::SYS_rt_sigaction => done(handlers::set_action(b, c)),
        // These calls do not exist, as on an older kernel; programs and the C library fall back.
        libc::SYS_io_uring_setup | libc::SYS_membarrier => Err(error(libc::ENOSYS)),
        // A process has no children.
        libc::SYS_wait4 | libc::SYS_waitid => Err(error(libc::ECHILD)),
        _ => return None,
    })
}

/// True if a signal ends this waiting call with `EINTR`. Other calls continue after the handler, as with `SA_RESTART`.
pub(super) fn is_interrupted(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_pause
            | libc::SYS_rt_sigsuspend
    )
}
