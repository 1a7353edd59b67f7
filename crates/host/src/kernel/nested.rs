//! Calls that the simulated kernel itself makes, through the program's allocator.
//!
//! The kernel's memory comes from the program's global allocator, like all memory of Rust code. An allocator such as
//! jemalloc maps memory and reads the clock while the kernel is borrowed.
#![allow(unsafe_code, reason = "maps memory")]

use super::{clock, identity, user};
use crate::raw::{Args, raw};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The lowest address at which memory for the kernel is mapped.
const MAPPINGS: usize = 0x2900_0000_0000;
const PAGE: usize = 4096;

static NEXT: AtomicUsize = AtomicUsize::new(MAPPINGS);
static NOW: AtomicU64 = AtomicU64::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);

/// The virtual time that the allocator reads.
pub(super) fn set_time(now: u64) {
    NOW.store(now, Ordering::Relaxed);
}

/// Returns the virtual time that the allocator reads.
pub(crate) fn time() -> u64 {
    NOW.load(Ordering::Relaxed)
}

/// Advances the clocks to a virtual time, if it is not past.
pub(crate) fn advance(to: u64) {
    NOW.fetch_max(to, Ordering::Relaxed);
}

/// True for calls that must not switch to another thread. An allocator makes these calls while it holds locks that
/// allocations of the simulated kernel need.
pub(super) fn is_of_allocators(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_mmap
            | libc::SYS_clock_gettime
            | libc::SYS_getrandom
            | libc::SYS_sched_getaffinity
    )
}

/// Serves a call that was made while the kernel is borrowed, or during the [set-up](crate::setup).
pub(crate) fn serve(number: i64, args: &Args) -> isize {
    let result = match number {
        libc::SYS_mmap => map(args),
        libc::SYS_clock_gettime => {
            user::write(args[1], user::to_timespec(now(args[0] as i32))).map(|()| 0)
        }
        libc::SYS_gettimeofday => clock::write_wall(args[0], now(libc::CLOCK_REALTIME)),
        libc::SYS_time => Ok((now(libc::CLOCK_REALTIME) / 1_000_000_000) as isize),
        libc::SYS_sched_getaffinity => identity::affinity(args[1], args[2]),
        libc::SYS_getrandom => {
            for byte in user::bytes_mut(args[0], args[1]) {
                let next = RANDOM
                    .load(Ordering::Relaxed)
                    .wrapping_mul(0x5851_f42d_4c95_7f2d);
                RANDOM.store(next.wrapping_add(1), Ordering::Relaxed);
                *byte = (next >> 56) as u8;
            }
            Ok(args[1] as isize)
        }
        libc::SYS_getpid | libc::SYS_gettid => Ok(identity::PID as isize),
        libc::SYS_sched_yield => Ok(0),
        _ => super::fatal(
            "the allocator made a call within the simulated kernel that is not served there",
        ),
    };
    result.unwrap_or_else(|error| error)
}

/// Maps memory for the stack of a thread. Returns its lowest address.
pub(crate) fn map_stack(size: usize) -> Option<usize> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let args = [0, size, protection as usize, flags as usize, usize::MAX, 0];
    usize::try_from(map(&args).ok()?).ok()
}

/// True if memory at this address was mapped here.
pub(crate) fn maps(address: usize) -> bool {
    (MAPPINGS..super::memory::MAPPINGS).contains(&address)
}

/// Returns the time that a clock shows, in nanoseconds.
pub(crate) fn now(clock: i32) -> u64 {
    clock::base(clock) + time()
}

fn map(args: &Args) -> Result<isize, user::Error> {
    let mut args = *args;
    let flags = args[3] as i32;
    if flags & libc::MAP_ANONYMOUS == 0 {
        return Err(user::error(libc::ENODEV));
    }
    if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == 0 {
        let length = args[1].next_multiple_of(PAGE) + PAGE;
        args[0] = NEXT.fetch_add(length, Ordering::Relaxed);
        args[3] |= libc::MAP_FIXED_NOREPLACE as usize;
    }
    // SAFETY: existing mappings are replaced only if the allocator requests this for its own memory.
    Ok(unsafe { raw(libc::SYS_mmap, args) })
}
