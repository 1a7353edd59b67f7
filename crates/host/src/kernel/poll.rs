//! Simulates `poll`, `ppoll` and `select`.

use super::user::{self, Error, error};
use super::{Attempt, Kernel, NEVER, On, Step, Wait};

impl Kernel {
    /// Simulates `poll`, with a time limit in nanoseconds.
    pub(super) fn poll(
        &mut self,
        list: usize,
        count: usize,
        limit: Option<u64>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        const SIZE: usize = size_of::<libc::pollfd>();
        if count > 1 << 20 {
            return Err(error(libc::EINVAL));
        }
        let mut watched = vec![];
        let mut ready = 0;
        for index in 0..count {
            let mut entry: libc::pollfd = user::read(list + index * SIZE)?;
            entry.revents = 0;
            if entry.fd >= 0 {
                match self.descriptors.id(entry.fd as usize) {
                    Err(_) => entry.revents = libc::POLLNVAL,
                    Ok(id) => {
                        // The bits of `poll` and `epoll` have equal values.
                        let always = libc::POLLERR | libc::POLLHUP;
                        entry.revents = self.readiness(id) as i16 & (entry.events | always);
                        watched.push(id);
                    }
                }
            }
            ready += isize::from(entry.revents != 0);
            user::write(list + index * SIZE, entry)?;
        }
        Ok(self.wait_or(ready, watched, limit, attempt))
    }

    /// Simulates `select`: replaces the sets with the ready descriptors.
    pub(super) fn select(
        &mut self,
        count: usize,
        sets: [usize; 3],
        limit: Option<u64>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let count = count.min(libc::FD_SETSIZE);
        let words = count.div_ceil(64);
        let read_set = |set: usize| match set {
            0 => Ok(vec![0; words]),
            set => (0..words)
                .map(|word| user::read::<u64>(set + word * 8))
                .collect(),
        };
        let asked: Vec<Vec<u64>> = sets
            .iter()
            .map(|&set| read_set(set))
            .collect::<Result<_, Error>>()?;
        let wanted = [
            libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR,
            libc::EPOLLOUT | libc::EPOLLERR,
            libc::EPOLLPRI,
        ];
        let mut result = vec![vec![0u64; words]; 3];
        let mut watched = vec![];
        let mut ready = 0;
        for fd in 0..count {
            let (word, bit) = (fd / 64, 1u64 << (fd % 64));
            for set in 0..3 {
                if asked[set][word] & bit == 0 {
                    continue;
                }
                let id = self.descriptors.id(fd)?;
                watched.push(id);
                if self.readiness(id) & wanted[set] as u32 != 0 {
                    result[set][word] |= bit;
                    ready += 1;
                }
            }
        }
        let step = self.wait_or(ready, watched, limit, attempt);
        if matches!(step, Step::Wait(_)) {
            return Ok(step);
        }
        for (set, words) in sets.into_iter().zip(result).filter(|&(set, _)| set != 0) {
            for (word, bits) in words.into_iter().enumerate() {
                user::write(set + word * 8, bits)?;
            }
        }
        Ok(step)
    }

    fn wait_or(
        &mut self,
        ready: isize,
        watched: Vec<super::Id>,
        limit: Option<u64>,
        attempt: &mut Attempt,
    ) -> Step {
        let now = self.now;
        let until = attempt.until(|| limit.map_or(NEVER, |limit| now.saturating_add(limit)));
        if ready > 0 || attempt.timed_out {
            return Step::Done(ready);
        }
        if until <= now {
            return self.without_waiting(0, attempt);
        }
        Step::Wait(Wait {
            on: On::Objects(watched),
            until,
        })
    }
}
