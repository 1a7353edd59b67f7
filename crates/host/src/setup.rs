//! The set-up of a simulation: the time in a process until hosts are forked from it.
//!
//! Hosts inherit the memory of this process. The program's allocator stores there when it will return memory to the
//! system, which addresses it has mapped, and how many processors the machine has. So that no host depends on the
//! machine or on the time that the set-up takes, clocks begin at virtual time 0 and advance only by waiting, entropy and
//! addresses are the same in each process, and there are as many processors as on a host.
#![allow(unsafe_code, reason = "makes calls of threads that belong to no host")]

use crate::image;
use crate::kernel::{nested, user};
use crate::raw::{Args, args, raw};
use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// True if hosts will be forked from this process, or if it becomes a host. The function allocates nothing, because
/// allocators call it while they begin.
pub(crate) fn is_running() -> bool {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let is_running = image::is_fixed() || image::variable(image::BOOT).is_some();
            STATE.store(if is_running { RUNNING } else { ENDED }, Ordering::Relaxed);
            is_running
        }
        state => state == RUNNING,
    }
}

/// Ends the set-up in this process.
pub(crate) fn end() {
    STATE.store(ENDED, Ordering::Relaxed);
}

/// Makes a call of a thread that belongs to no host.
///
/// # Safety
/// Pointers among the arguments must be valid for the call's reads and writes.
pub(crate) unsafe fn call(number: i64, given: Args) -> isize {
    if is_running() {
        if reads_state(number, &given) {
            return nested::serve(number, &given);
        }
        if let Some(wait) = Wait::of(number, &given) {
            // SAFETY: the caller guarantees that the pointers are valid.
            return unsafe { wait.call(number, given) };
        }
    }
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { raw(number, given) }
}

/// True for calls whose results an allocator stores.
fn reads_state(number: i64, args: &Args) -> bool {
    // Shared memory connects processes, so it is not memory of the program.
    let is_own_memory = args[3] as i32 & (libc::MAP_ANONYMOUS | libc::MAP_TYPE)
        == libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
    match number {
        libc::SYS_mmap => is_own_memory,
        libc::SYS_clock_gettime
        | libc::SYS_gettimeofday
        | libc::SYS_time
        | libc::SYS_getrandom
        | libc::SYS_sched_getaffinity => true,
        _ => false,
    }
}

/// A wait with a limit. It takes real time. If the limit is reached, the clocks have advanced by it: otherwise a loop
/// that waits until a time would never end.
struct Wait {
    nanos: u64,
    /// The clock and the index of the argument, if the limit is a time of a clock.
    until: Option<(i32, usize)>,
    /// The call's result when the limit is reached.
    reached: isize,
}

impl Wait {
    /// Returns the wait of a call, if it has a limit.
    fn of(number: i64, args: &Args) -> Option<Wait> {
        let [a, b, c, d, ..] = *args;
        let reached = match number {
            libc::SYS_futex => user::error(libc::ETIMEDOUT),
            _ => 0,
        };
        let span = |address| Some((user::timespec(address).ok()?, None));
        let until = |clock, at: usize| {
            let time = user::timespec(args[at]).ok()?;
            Some((time.saturating_sub(nested::now(clock)), Some((clock, at))))
        };
        let millis = |count| Some((u64::try_from(count as i32).ok()? * 1_000_000, None));
        let (nanos, until) = match number {
            libc::SYS_nanosleep => span(a),
            libc::SYS_clock_nanosleep if b as i32 == libc::TIMER_ABSTIME => until(a as i32, 2),
            libc::SYS_clock_nanosleep | libc::SYS_ppoll => span(c),
            libc::SYS_poll => millis(c),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => millis(d),
            libc::SYS_futex => match b as i32 & libc::FUTEX_CMD_MASK {
                libc::FUTEX_WAIT => span(d),
                libc::FUTEX_WAIT_BITSET if b as i32 & libc::FUTEX_CLOCK_REALTIME == 0 => {
                    until(libc::CLOCK_MONOTONIC, 3)
                }
                libc::FUTEX_WAIT_BITSET => until(libc::CLOCK_REALTIME, 3),
                _ => None,
            },
            _ => None,
        }?;
        Some(Wait {
            nanos,
            until,
            reached,
        })
    }

    /// Makes the call.
    ///
    /// # Safety
    /// As for [`call`].
    unsafe fn call(&self, number: i64, mut given: Args) -> isize {
        let mut time = user::to_timespec(0);
        if let Some((clock, at)) = self.until {
            let now = &raw mut time as usize;
            // SAFETY: the time is valid for a write.
            unsafe { raw(libc::SYS_clock_gettime, args([clock as usize, now])) };
            let now = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            time = user::to_timespec(now.saturating_add(self.nanos));
            given[at] = &raw const time as usize;
        }
        let end = nested::time().saturating_add(self.nanos);
        // SAFETY: the caller guarantees that the pointers are valid, and the replaced one is.
        let result = unsafe { raw(number, given) };
        if result == self.reached {
            nested::advance(end);
        }
        result
    }
}
