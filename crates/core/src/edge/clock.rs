//! The clock that measures the time spent blocked.
//!
//! An end of an edge reads the clock twice per wait, and many waits are shorter than the time to read an exact clock
//! twice. This clock costs a few nanoseconds and advances by kernel ticks of some milliseconds: a single wait may be
//! off by a tick, but the sum of many waits is correct.
#![allow(unsafe_code, reason = "the coarse monotonic clock is a call of libc")]

/// Returns the nanoseconds since an arbitrary point in the past, at least 1, in steps of a tick.
#[cfg(target_os = "linux")]
pub(super) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for a write. If the clock does not exist, the call fails and the time stays 0.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
        .max(1)
}

/// Returns nanoseconds since the first call, at least 1.
#[cfg(not(target_os = "linux"))]
pub(super) fn now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed().as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX).max(1)
}
