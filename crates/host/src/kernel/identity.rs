//! The identity of a program and its machine, and random numbers.

#![allow(unsafe_code, reason = "zeroes structures of the C library")]

use super::user::{self, Error, error};
use super::{Kernel, current_thread};

/// The process id of a host's program, which is equal on every host.
pub(crate) const PID: i32 = 100;
/// The user and the group of a host's program.
pub(crate) const USER: u32 = 1000;
/// The number of processors of a host.
pub(crate) const PROCESSORS: u32 = 2;
/// The size of a host's memory in bytes.
pub(crate) const MEMORY: u64 = 8 << 30;

/// Simulates `sched_getaffinity`, which reports two processors.
pub(super) fn affinity(size: usize, out: usize) -> Result<isize, Error> {
    if size < 8 {
        return Err(error(libc::EINVAL));
    }
    user::write(out, (1u64 << PROCESSORS) - 1)?;
    Ok(8)
}

impl Kernel {
    /// Returns the next random bytes of the host.
    pub(super) fn random_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend(self.random.bits().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// Simulates `getrandom`.
    pub(super) fn getrandom(&mut self, out: usize, count: usize) -> isize {
        let bytes = self.random_bytes(count);
        user::bytes_mut(out, count).copy_from_slice(&bytes);
        count as isize
    }

    /// Simulates `gettid`.
    pub(super) fn gettid() -> isize {
        PID as isize + current_thread().unwrap_or(0) as isize
    }

    /// Simulates `getcpu`.
    pub(super) fn getcpu(cpu: usize, node: usize) -> Result<isize, Error> {
        for out in [cpu, node].into_iter().filter(|&out| out != 0) {
            user::write(out, 0u32)?;
        }
        Ok(0)
    }

    /// Simulates `uname`, which reports the name of the host.
    pub(super) fn uname(&self, out: usize) -> Result<isize, Error> {
        // Six fields of 65 bytes: system, host, release, version, machine, domain.
        let fields = [
            "Linux",
            &self.world.hosts[self.host].name,
            "6.1.0",
            "#1",
            "x86_64",
            "(none)",
        ];
        let mut bytes = vec![0u8; 6 * 65];
        for (field, text) in bytes.chunks_mut(65).zip(fields) {
            let count = text.len().min(64);
            field[..count].copy_from_slice(&text.as_bytes()[..count]);
        }
        user::bytes_mut(out, bytes.len()).copy_from_slice(&bytes);
        Ok(0)
    }

    /// Simulates `sysinfo`: the machine has 8 GiB of memory, of which half is free.
    pub(super) fn sysinfo(&self, out: usize) -> Result<isize, Error> {
        // SAFETY: all-zero is a valid `sysinfo`.
        let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
        info.uptime = (self.read_clock(libc::CLOCK_BOOTTIME) / 1_000_000_000) as i64;
        (info.totalram, info.freeram) = (MEMORY, MEMORY / 2);
        (info.mem_unit, info.procs) = (1, 1);
        user::write(out, info)?;
        Ok(0)
    }

    /// Simulates `getrusage`: it reports no processor time, because computing takes no virtual time.
    pub(super) fn getrusage(out: usize) -> Result<isize, Error> {
        // SAFETY: all-zero is a valid `rusage`.
        let usage: libc::rusage = unsafe { std::mem::zeroed() };
        user::write(out, usage)?;
        Ok(0)
    }

    /// Simulates `times`: it reports no processor time, like [`Kernel::getrusage`]. The result is the clock in
    /// hundredths of a second.
    pub(super) fn times(&self, out: usize) -> Result<isize, Error> {
        if out != 0 {
            user::write(out, [0u64; 4])?;
        }
        Ok((self.read_clock(libc::CLOCK_MONOTONIC) / 10_000_000) as isize)
    }

    /// Simulates `umask`.
    pub(super) fn umask(&mut self, mask: usize) -> isize {
        std::mem::replace(&mut self.mask, mask as u32 & 0o777) as isize
    }

    /// Simulates `getrlimit` and `prlimit64`. The limits are equal on every machine.
    pub(super) fn limits(resource: usize, out: usize) -> Result<isize, Error> {
        if out == 0 {
            return Ok(0);
        }
        let soft = match resource as u32 {
            libc::RLIMIT_NOFILE => 1024,
            libc::RLIMIT_STACK => 8 << 20,
            libc::RLIMIT_CORE => 0,
            _ => u64::MAX,
        };
        let hard = match resource as u32 {
            libc::RLIMIT_NOFILE => 1 << 20,
            _ => u64::MAX,
        };
        user::write(out, [soft, hard])?;
        Ok(0)
    }

    /// Simulates `prctl`: it stores the names of threads for the log. Other options have no effect.
    pub(super) fn prctl(&mut self, option: usize, argument: usize) -> Result<isize, Error> {
        let thread = current_thread().unwrap_or(0);
        match option as i32 {
            libc::PR_SET_NAME => {
                let name = user::string(argument)?;
                self.thread_names
                    .insert(thread, name.chars().take(15).collect());
                Ok(0)
            }
            libc::PR_GET_NAME => {
                let name = self.thread_names.get(&thread).cloned().unwrap_or_default();
                let mut bytes = [0u8; 16];
                bytes[..name.len().min(15)].copy_from_slice(&name.as_bytes()[..name.len().min(15)]);
                user::write(argument, bytes)?;
                Ok(0)
            }
            libc::PR_SET_PDEATHSIG | libc::PR_SET_DUMPABLE | libc::PR_SET_TIMERSLACK => Ok(0),
            _ => Err(error(libc::EINVAL)),
        }
    }
}
