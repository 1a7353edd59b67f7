//! Refuses calls that start processes, because hosts cannot start processes. The filter cannot refuse these calls,
//! because the C library blocks signals in them.

use super::Next;
use crate::kernel::{call, current_thread};
use crate::raw::args;
use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

type Fork = unsafe extern "C" fn() -> pid_t;
type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

static FORK: Next = Next::new(c"fork");
static SPAWN: Next = Next::new(c"posix_spawn");
static SPAWN_BY_NAME: Next = Next::new(c"posix_spawnp");

fn fork_or_refuse() -> pid_t {
    if current_thread().is_some() {
        return call(libc::SYS_fork, args([])) as pid_t;
    }
    // SAFETY: the type is that of the C library's function.
    unsafe { FORK.get::<Fork>()() }
}

/// Replaces the C library's `fork`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> pid_t {
    fork_or_refuse()
}

/// Replaces the C library's `vfork`, which may behave like `fork`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    fork_or_refuse()
}

/// Replaces the C library's `posix_spawn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    if current_thread().is_some() {
        return -call(libc::SYS_execve, args([path as usize])) as c_int;
    }
    // SAFETY: the type is that of the C library's function, and the arguments come from the caller.
    unsafe { SPAWN.get::<Spawn>()(pid, path, actions, attributes, arguments, environment) }
}

/// Replaces the C library's `posix_spawnp`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    name: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    if current_thread().is_some() {
        return -call(libc::SYS_execve, args([name as usize])) as c_int;
    }
    // SAFETY: the type is that of the C library's function, and the arguments come from the caller.
    unsafe { SPAWN_BY_NAME.get::<Spawn>()(pid, name, actions, attributes, arguments, environment) }
}
