//! `eventfd` and `timerfd`.

use super::objects::events::{Counter, Timer};
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Kernel, NEVER, clock};

impl Timer {
    /// Returns the virtual time of an absolute expiration. An expiration in the past gives the current time.
    fn absolute_due(&self, now: u64) -> Option<u64> {
        let time = self.absolute?.saturating_sub(clock::base(self.clock));
        Some(time.max(now))
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
