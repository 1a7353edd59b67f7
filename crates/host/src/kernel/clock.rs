//! Clocks and sleeping.

use super::user::{self, Error, error};
use super::{Attempt, Kernel, NEVER, On, Step, Wait};
use std::sync::atomic::{AtomicI64, Ordering};

/// The date at which simulations begin, in nanoseconds since 1970: 2025-01-01 00:00:00 UTC.
pub(super) const EPOCH: u64 = 1_735_689_600_000_000_000;
/// The value of a monotonic clock when a simulation begins. The value is as large as on a host that has been running
/// for a day, so that programs can subtract from it.
const UPTIME: u64 = 100_000_000_000_000;
/// The number of consecutive clock readings that take no virtual time. Each further reading takes [`READING`]
/// nanoseconds, so that a loop that polls the clock ends.
const FREE_READINGS: u32 = 10_000;
const READING: u64 = 1_000;

/// The number of nanoseconds by which the host's wall clock is ahead of virtual time. This process is one host.
static WALL: AtomicI64 = AtomicI64::new(0);

/// Sets by how much the wall clock is ahead. Returns true if the value has changed.
pub(super) fn set_wall(ahead: i64) -> bool {
    WALL.swap(ahead, Ordering::Relaxed) != ahead
}

/// Returns the value of a clock at virtual time 0, in nanoseconds, after all steps of the wall clock so far.
pub(crate) fn base(clock: i32) -> u64 {
    match clock {
        libc::CLOCK_REALTIME
        | libc::CLOCK_REALTIME_COARSE
        | libc::CLOCK_TAI
        | libc::CLOCK_REALTIME_ALARM => EPOCH.saturating_add_signed(WALL.load(Ordering::Relaxed)),
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        _ => UPTIME,
    }
}

/// Writes nanoseconds of the wall clock as `gettimeofday` does.
pub(super) fn write_wall(out: usize, now: u64) -> Result<isize, Error> {
    let time = libc::timeval {
        tv_sec: (now / 1_000_000_000) as i64,
        tv_usec: (now / 1_000 % 1_000_000) as i64,
    };
    if out != 0 {
        user::write(out, time)?;
    }
    Ok(0)
}

impl Kernel {
    /// Returns the time that a clock shows, in nanoseconds.
    pub(crate) fn read_clock(&self, clock: i32) -> u64 {
        base(clock) + self.now
    }

    /// Returns the step of a call that reads the state without waiting, such as reading a clock. A loop of such calls
    /// would never let virtual time advance. So after many consecutive ones, each takes a microsecond.
    pub(super) fn without_waiting(&mut self, result: isize, attempt: &Attempt) -> Step {
        self.readings = self.readings.saturating_add(1);
        match self.readings > FREE_READINGS && !attempt.timed_out {
            true => Step::Linger,
            false => Step::Done(result),
        }
    }

    /// Returns the wait of a thread that [lingers](Step::Linger).
    pub(super) fn linger(&self) -> Wait {
        Wait {
            on: On::Time,
            until: self.now + READING,
        }
    }

    /// Simulates `clock_gettime`.
    pub(super) fn clock_gettime(
        &mut self,
        clock: usize,
        out: usize,
        attempt: &Attempt,
    ) -> Result<Step, Error> {
        user::write(out, user::to_timespec(self.read_clock(clock as i32)))?;
        Ok(self.without_waiting(0, attempt))
    }

    /// Simulates `clock_nanosleep` and `nanosleep`.
    pub(super) fn sleep(
        &mut self,
        clock: i32,
        flags: i32,
        time: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let time = user::timespec(time)?;
        let now = self.now;
        let until = match flags & libc::TIMER_ABSTIME {
            0 => attempt.until(|| now.saturating_add(time)),
            _ => time.saturating_sub(base(clock)),
        };
        if attempt.timed_out || until <= now {
            return Ok(Step::Done(0));
        }
        Ok(Step::Wait(Wait {
            on: On::Time,
            until,
        }))
    }

    /// Simulates `pause` and similar calls, which return only after a signal.
    pub(super) fn wait_forever() -> Step {
        Step::Wait(Wait {
            on: On::Time,
            until: NEVER,
        })
    }

    /// Simulates `clock_getres`.
    pub(super) fn clock_getres(&mut self, out: usize) -> Result<isize, Error> {
        if out != 0 {
            user::write(out, user::to_timespec(1))?;
        }
        Ok(0)
    }

    /// Simulates `gettimeofday`.
    pub(super) fn gettimeofday(&mut self, out: usize) -> Result<isize, Error> {
        write_wall(out, self.read_clock(libc::CLOCK_REALTIME))
    }

    /// Simulates `clock_settime` and `settimeofday`: they fail, because the program has no privileges.
    pub(super) fn set_clock() -> isize {
        error(libc::EPERM)
    }
}
