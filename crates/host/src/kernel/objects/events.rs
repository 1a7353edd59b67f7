//! The data of an `eventfd`, a `timerfd` and a `signalfd`.

use crate::tcp::NEVER;
use std::collections::VecDeque;

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
    pub clock: i32,
    /// The next expiration as an absolute time of the clock, if the program set an absolute time.
    pub absolute: Option<u64>,
    /// The next expiration; [`NEVER`] if the timer is not armed.
    pub due: u64,
    /// The interval between expirations; 0 if it expires once.
    pub period: u64,
    /// The number of expirations that have not been read.
    pub expired: u64,
}

impl Timer {
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

/// A descriptor from which signals are read.
#[derive(Debug)]
pub(crate) struct Signals {
    pub mask: u64,
    pub queue: VecDeque<i32>,
}

impl Signals {
    /// Returns the result of a read; `None` if the read has to wait.
    pub(crate) fn take(&mut self) -> Option<[u8; 128]> {
        let mut info = [0; 128];
        info[..4].copy_from_slice(&self.queue.pop_front()?.to_ne_bytes());
        Some(info)
    }

    pub(crate) fn readiness(&self) -> u32 {
        match self.queue.is_empty() {
            true => 0,
            false => libc::EPOLLIN as u32,
        }
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
