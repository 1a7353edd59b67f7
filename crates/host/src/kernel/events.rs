//! `eventfd` and `timerfd`.

use super::descriptors::{Kind, Object};
use super::user::{self, Error, error};
use super::{Kernel, NEVER, clock};

/// An `eventfd`.
#[derive(Debug)]
pub(crate) struct Counter {
    pub value: u64,
    /// True if each read subtracts one from the counter (`EFD_SEMAPHORE`), false if it resets the counter.
    pub semaphore: bool,
}

impl Counter {
    /// Returns the result of a read; `None` if the read has to wait.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.value == 0 {
            return None;
        }
        let taken = if self.semaphore { 1 } else { self.value };
        self.value -= taken;
        Some(taken)
    }

    /// Adds a written value. Returns false if the write has to wait.
    pub(crate) fn add(&mut self, more: u64) -> bool {
        match self.value.checked_add(more).filter(|&sum| sum < u64::MAX) {
            Some(sum) => self.value = sum,
            None => return false,
        }
        true
    }

    pub(crate) fn readiness(&self) -> u32 {
        let input = if self.value > 0 { libc::EPOLLIN } else { 0 };
        let output = if self.value < u64::MAX - 1 {
            libc::EPOLLOUT
        } else {
            0
        };
        (input | output) as u32
    }
}

/// A `timerfd`.
#[derive(Debug)]
pub(crate) struct Timer {
    /// The clock to which absolute times refer.
    clock: i32,
    /// The next expiration as an absolute time of the clock, if the program set an absolute time.
    absolute: Option<u64>,
    /// The next expiration; [`NEVER`] if the timer is not armed.
    due: u64,
    /// The interval between expirations; 0 if it expires once.
    period: u64,
    /// The number of expirations that have not been read.
    expired: u64,
}

impl Timer {
    /// Returns the virtual time of an absolute expiration. An expiration in the past gives the current time.
    fn absolute_due(&self, now: u64) -> Option<u64> {
        let time = self.absolute?.saturating_sub(clock::base(self.clock));
        Some(time.max(now))
    }

    /// Counts expirations until now. Returns the time of the next expiration.
    pub(crate) fn expire(&mut self, now: u64) -> Option<u64> {
        while self.due <= now {
            self.expired += 1;
            // Periods are of virtual time.
            self.absolute = None;
            self.due = match self.period {
                0 => NEVER,
                period => {
                    // Counts all missed expirations at once.
                    let missed = (now - self.due) / period;
                    self.expired += missed;
                    self.due + (missed + 1) * period
                }
            };
        }
        Some(self.due).filter(|&due| due != NEVER)
    }

    /// Returns the result of a read; `None` if the read has to wait.
    pub(crate) fn take(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.expired)).filter(|&expired| expired > 0)
    }

    pub(crate) fn readiness(&self) -> u32 {
        if self.expired > 0 {
            libc::EPOLLIN as u32
        } else {
            0
        }
    }
}

impl Kernel {
    /// Simulates `eventfd2`.
    pub(super) fn eventfd(&mut self, value: usize, flags: usize) -> Result<isize, Error> {
        let flags = flags as i32;
        let kind = Kind::Counter(Counter {
            value: u64::from(value as u32),
            semaphore: flags & libc::EFD_SEMAPHORE != 0,
        });
        self.open(Object::new(kind), flags)
    }

    /// Simulates `timerfd_create`.
    pub(super) fn timerfd_create(&mut self, clock: usize, flags: usize) -> Result<isize, Error> {
        let kind = Kind::Timer(Timer {
            clock: clock as i32,
            absolute: None,
            due: NEVER,
            period: 0,
            expired: 0,
        });
        self.open(Object::new(kind), flags as i32)
    }

    /// Simulates `timerfd_settime`.
    pub(super) fn timerfd_settime(
        &mut self,
        fd: usize,
        flags: usize,
        new: usize,
        old: usize,
    ) -> Result<isize, Error> {
        let period = user::timespec(new)?;
        let first = user::timespec(new + size_of::<libc::timespec>())?;
        if old != 0 {
            self.timerfd_gettime(fd, old)?;
        }
        let now = self.now;
        let (id, object) = self.descriptors.object(fd)?;
        let Kind::Timer(timer) = &mut object.kind else {
            return Err(error(libc::EINVAL));
        };
        timer.expired = 0;
        timer.period = period;
        timer.absolute =
            Some(first).filter(|&first| first != 0 && flags as i32 & libc::TFD_TIMER_ABSTIME != 0);
        timer.due = match first {
            0 => NEVER,
            time => timer.absolute_due(now).unwrap_or(now.saturating_add(time)),
        };
        let due = timer.due;
        self.set_timer(due, id);
        self.notify(id);
        Ok(0)
    }

    /// Computes absolute timers again, after a step of the wall clock.
    pub(super) fn restart_wall_timers(&mut self) {
        let now = self.now;
        for id in self.descriptors.ids() {
            if let Some(Kind::Timer(timer)) = self.descriptors.get_mut(id).map(|it| &mut it.kind)
                && timer.due != NEVER
                && let Some(due) = timer.absolute_due(now)
            {
                timer.due = due;
                self.set_timer(due, id);
            }
        }
    }

    /// Simulates `timerfd_gettime`.
    pub(super) fn timerfd_gettime(&mut self, fd: usize, out: usize) -> Result<isize, Error> {
        let now = self.now;
        let (_, object) = self.descriptors.object(fd)?;
        let Kind::Timer(timer) = &mut object.kind else {
            return Err(error(libc::EINVAL));
        };
        let left = if timer.due == NEVER {
            0
        } else {
            timer.due.saturating_sub(now).max(1)
        };
        user::write(out, user::to_timespec(timer.period))?;
        user::write(out + size_of::<libc::timespec>(), user::to_timespec(left))?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_counts_the_periods_that_were_missed() {
        let mut timer = Timer {
            clock: 0,
            absolute: None,
            due: 10,
            period: 5,
            expired: 0,
        };
        assert_eq!(timer.expire(9), Some(10));
        assert_eq!(timer.take(), None);
        assert_eq!(timer.expire(21), Some(25));
        assert_eq!(timer.take(), Some(3));
        let mut once = Timer {
            clock: 0,
            absolute: None,
            due: 10,
            period: 0,
            expired: 0,
        };
        assert_eq!(once.expire(10), None);
        assert_eq!((once.take(), once.take()), (Some(1), None));
    }

    #[test]
    fn a_semaphore_gives_one_at_a_time_and_a_counter_all() {
        let mut counter = Counter {
            value: 0,
            semaphore: false,
        };
        assert!(counter.add(3) && !counter.add(u64::MAX - 3));
        assert_eq!((counter.take(), counter.take()), (Some(3), None));
        let mut semaphore = Counter {
            value: 2,
            semaphore: true,
        };
        assert_eq!(
            (semaphore.take(), semaphore.take(), semaphore.take()),
            (Some(1), Some(1), None)
        );
    }
}
