//! `futex`, on which every lock, condition variable and parked thread of a program waits.

use super::user::{self, Error, error};
use super::{Attempt, Kernel, NEVER, On, Step, Wait, clock};
use crate::raw::Args;

const ALL_BITS: u32 = u32::MAX;

impl Kernel {
    /// Simulates `futex`.
    pub(super) fn futex(&mut self, args: &Args, attempt: &mut Attempt) -> Result<Step, Error> {
        let [word, operation, value, limit, second, bits] = *args;
        let operation = operation as i32;
        match operation & libc::FUTEX_CMD_MASK {
            libc::FUTEX_WAIT => self.futex_wait(
                word,
                value as u32,
                ALL_BITS,
                attempt,
                |kernel| Ok(kernel.now.saturating_add(user::timespec(limit)?)),
                limit,
            ),
            libc::FUTEX_WAIT_BITSET => {
                let clock = match operation & libc::FUTEX_CLOCK_REALTIME {
                    0 => libc::CLOCK_MONOTONIC,
                    _ => libc::CLOCK_REALTIME,
                };
                self.futex_wait(
                    word,
                    value as u32,
                    bits as u32,
                    attempt,
                    |_| Ok(user::timespec(limit)?.saturating_sub(clock::base(clock))),
                    limit,
                )
            }
            libc::FUTEX_WAKE => Ok(Step::Done(self.futex_wake(word, value, ALL_BITS))),
            libc::FUTEX_WAKE_BITSET => Ok(Step::Done(self.futex_wake(word, value, bits as u32))),
            libc::FUTEX_REQUEUE => self.futex_requeue(word, value, limit, second),
            libc::FUTEX_CMP_REQUEUE => {
                if user::read::<u32>(word)? != bits as u32 {
                    return Err(error(libc::EAGAIN));
                }
                self.futex_requeue(word, value, limit, second)
            }
            // Priority inheritance is not available: glibc falls back, or reports an error.
            libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_UNLOCK_PI
            | libc::FUTEX_TRYLOCK_PI => Err(error(libc::ENOSYS)),
            _ => Ok(Step::Unsupported),
        }
    }

    fn futex_wait(
        &mut self,
        word: usize,
        expected: u32,
        bits: u32,
        attempt: &mut Attempt,
        until: impl FnOnce(&Kernel) -> Result<u64, Error>,
        limit: usize,
    ) -> Result<Step, Error> {
        if attempt.woken {
            return Ok(Step::Done(0));
        }
        if attempt.timed_out {
            return Err(error(libc::ETIMEDOUT));
        }
        if user::read::<u32>(word)? != expected {
            return Err(error(libc::EAGAIN));
        }
        let until = if limit == 0 { NEVER } else { until(self)? };
        if until <= self.now {
            return Err(error(libc::ETIMEDOUT));
        }
        Ok(Step::Wait(Wait {
            on: On::Futex(word, bits),
            until,
        }))
    }

    fn futex_wake(&mut self, word: usize, most: usize, bits: u32) -> isize {
        let most = most as u32 as usize;
        self.scheduler.wake(
            most,
            |on| matches!(on, On::Futex(waited, wanted) if *waited == word && wanted & bits != 0),
        ) as isize
    }

    fn futex_requeue(
        &mut self,
        word: usize,
        wake: usize,
        move_most: usize,
        target: usize,
    ) -> Result<Step, Error> {
        let woken = self.futex_wake(word, wake, ALL_BITS);
        let moved = self
            .scheduler
            .requeue(word, target, move_most as u32 as usize);
        Ok(Step::Done(woken + moved as isize))
    }
}
