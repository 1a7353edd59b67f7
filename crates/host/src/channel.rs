//! The memory that a host's process shares with the simulation: one command and one reply at a time, and a
//! log that remains readable after the process has died.
//!
//! The two sides take turns. The simulation writes a command and raises `command`. The process runs until all its
//! threads wait for a later virtual time or a packet. Then it writes its reply and raises `reply`.
#![allow(unsafe_code, reason = "memory shared between processes")]

use crate::calls::Call;
use crate::raw::{Signal, args, raw};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The size of a command in bytes: at most one packet, whose data is at most 64 KiB.
const INPUT: usize = 128 << 10;
/// The size of the packets in one reply in bytes. Further packets are sent in another reply ([`Reply::More`]).
const OUTPUT: usize = 4 << 20;
/// The size of the log in one reply in bytes.
const LOG: usize = 1 << 20;

/// The number of most recent calls that are stored for reports.
const CALLS: usize = 512;

/// A request of the simulation to a host's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    /// Advances to a virtual time, delivers a packet if there is one, and runs until every thread waits.
    Step = 1,
    /// Closes all descriptors, as the kernel does when it kills a process.
    Kill = 2,
    /// Changes the settings of the host.
    Settings = 3,
    /// Delivers a signal.
    Signal = 4,
}

/// The answer of a host's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// No work is left until the given time.
    Done,
    /// A buffer is full; the step continues when the buffer has been read.
    More,
    /// The process is gone, with this wait status.
    Gone(i32),
    /// The process did not answer within the limit.
    Stuck,
}

const DONE: u32 = 1;
const MORE: u32 = 2;

/// The end of a host's process, as the process reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The process is running.
    Running,
    /// The program called `exit` with this status, or `main` returned (status 0).
    Exited(i32),
    /// `main` panicked.
    Panicked,
    /// The program made a call that is not simulated.
    Unsupported,
    /// No thread can ever run again.
    Deadlocked,
    /// A signal that the simulation sent has killed the program.
    Killed,
}

impl Ending {
    fn encode(self) -> u32 {
        match self {
            Ending::Running => 0,
            Ending::Panicked => 1,
            Ending::Unsupported => 2,
            Ending::Deadlocked => 3,
            Ending::Killed => 4,
            Ending::Exited(status) => 0x100 | (status as u32 & 0xff),
        }
    }

    fn decode(number: u32) -> Ending {
        match number {
            0 => Ending::Running,
            1 => Ending::Panicked,
            2 => Ending::Unsupported,
            3 => Ending::Deadlocked,
            4 => Ending::Killed,
            more => Ending::Exited((more & 0xff) as i32),
        }
    }
}

#[repr(C)]
struct Memory {
    command: Signal,
    reply: Signal,
    gone: Signal,
    kind: AtomicU32,
    answer: AtomicU32,
    pid: AtomicI32,
    is_gone: AtomicU32,
    wait_status: AtomicI32,
    ending: AtomicU32,
    time: AtomicU64,
    next: AtomicU64,
    calls: AtomicU64,
    switches: AtomicU64,
    trace: AtomicU64,
    input_len: AtomicU32,
    output_len: AtomicU32,
    log_len: AtomicU32,
    stored: AtomicU64,
    recent: UnsafeCell<[Call; CALLS]>,
    input: UnsafeCell<[u8; INPUT]>,
    output: UnsafeCell<[u8; OUTPUT]>,
    log: UnsafeCell<[u8; LOG]>,
}

/// One side's access to the memory.
#[derive(Debug)]
pub(crate) struct Channel(&'static Memory);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

// SAFETY: the counters are atomic. The two sides take turns, and only the side whose turn it is accesses the buffers.
unsafe impl Sync for Memory {}

/// The output of a host since the previous reply.
#[derive(Debug, Default)]
pub(crate) struct HostOutput {
    /// Packets, as [`crate::packet::Packet::write`] wrote them.
    pub packets: Vec<u8>,
    /// Log records.
    pub log: Vec<u8>,
}

impl Channel {
    /// Maps memory that forked processes share. The memory is never unmapped, because a process runs only one
    /// simulation.
    pub(crate) fn new() -> std::io::Result<Channel> {
        Channel::map(
            -1,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        )
    }

    fn map(fd: i32, flags: i32) -> std::io::Result<Channel> {
        // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Memory>(),
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the mapping is large enough, page-aligned and zeroed; all-zero is a valid `Memory`.
        Ok(Channel(unsafe { &*memory.cast::<Memory>() }))
    }

    /// Creates the memory in a file, so that a process that executes another program can inherit its descriptor.
    pub(crate) fn with_file() -> std::io::Result<(Channel, i32)> {
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(c"corsair-channel".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: this function has just created the descriptor.
        if fd < 0 || unsafe { libc::ftruncate(fd, size_of::<Memory>() as i64) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok((Channel::open(fd)?, fd))
    }

    /// Maps the memory of a file that [`Channel::with_file`] has made.
    pub(crate) fn open(fd: i32) -> std::io::Result<Channel> {
        Channel::map(fd, libc::MAP_SHARED)
    }

    /// Returns the channel for the process at the other end, a fork that shares this memory.
    pub(crate) fn other_side(&self) -> Channel {
        Channel(self.0)
    }

    // ---- the simulation's side --------------------------------------------------------------------

    /// Prepares the memory for a new process.
    pub(crate) fn reset(&self) {
        let memory = self.0;
        for word in [
            &memory.is_gone,
            &memory.ending,
            &memory.log_len,
            &memory.output_len,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        memory.stored.store(0, Ordering::Relaxed);
        for flag in [&memory.command, &memory.reply, &memory.gone] {
            flag.wait_for(Some(0));
        }
        memory.pid.store(0, Ordering::Release);
    }

    /// Sends a command. [`Channel::receive`] returns the reply.
    pub(crate) fn send(&self, command: Command, time: u64, input: &[u8]) {
        let memory = self.0;
        assert!(input.len() <= INPUT, "a packet is larger than the channel");
        // SAFETY: the process waits for a command and does not read until the flag is raised.
        unsafe { (&mut *memory.input.get())[..input.len()].copy_from_slice(input) };
        memory
            .input_len
            .store(input.len() as u32, Ordering::Relaxed);
        memory.time.store(time, Ordering::Relaxed);
        memory.kind.store(command as u32, Ordering::Release);
        memory.command.raise();
    }

    /// Resumes a process that answered [`Reply::More`].
    pub(crate) fn resume(&self) {
        self.0.command.raise();
    }

    /// Waits for the reply, and takes the output of the process. The process is stuck when it has used `limit` of
    /// processor time since the command, or none in ten minutes. How long a busy machine delays it must not change a result.
    pub(crate) fn receive(&self, limit: Duration, output: &mut HostOutput) -> Reply {
        let memory = self.0;
        let mut answered = memory.reply.wait_for(Some(1));
        let (mut used, mut last, mut idle) = (Duration::ZERO, None, 0);
        // Without a limit, a debugger may have stopped the process.
        while !answered && used < limit && (idle < IDLE || limit == Duration::MAX) {
            answered = memory.reply.wait_for(Some(1));
            let now = processor_time(self.pid());
            let more = now
                .unwrap_or_default()
                .saturating_sub(last.or(now).unwrap_or_default());
            (used, last) = (used + more, now);
            idle = if more.is_zero() { idle + 1 } else { 0 };
        }
        let gone = memory.is_gone.load(Ordering::Acquire) == 1;
        if !answered && !gone {
            return Reply::Stuck;
        }
        self.take(output);
        if gone {
            return Reply::Gone(memory.wait_status.load(Ordering::Relaxed));
        }
        match memory.answer.load(Ordering::Acquire) {
            MORE => Reply::More,
            _ => Reply::Done,
        }
    }

    /// Takes the output of the process. After the process has died, the output is complete to the last byte.
    pub(crate) fn take(&self, output: &mut HostOutput) {
        let memory = self.0;
        let length = (memory.output_len.swap(0, Ordering::AcqRel) as usize).min(OUTPUT);
        let log = (memory.log_len.swap(0, Ordering::AcqRel) as usize).min(LOG);
        // SAFETY: the process has answered or has ended, so it does not write.
        unsafe {
            output
                .packets
                .extend_from_slice(&(&*memory.output.get())[..length]);
            output.log.extend_from_slice(&(&*memory.log.get())[..log]);
        }
    }

    /// Kills the process and waits until it has been reaped.
    pub(crate) fn kill(&self) {
        let memory = self.0;
        let pid = memory.pid.load(Ordering::Acquire);
        if pid == 0 {
            return;
        }
        if memory.is_gone.load(Ordering::Acquire) == 0 {
            // SAFETY: the zygote has forked this process and has not reaped it, so no other process has its id.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            while memory.is_gone.load(Ordering::Acquire) == 0 {
                memory.gone.wait_for(Some(1));
            }
        }
        memory.pid.store(0, Ordering::Release);
    }

    /// Returns the time at which the process next acts without a packet; `None` if it never does.
    pub(crate) fn next(&self) -> Option<u64> {
        Some(self.0.next.load(Ordering::Relaxed)).filter(|&next| next != u64::MAX)
    }

    /// Returns how the process ended.
    pub(crate) fn ending(&self) -> Ending {
        Ending::decode(self.0.ending.load(Ordering::Relaxed))
    }

    /// Returns the numbers of simulated calls and of thread switches, and the hash of all calls and their results.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let memory = self.0;
        (
            memory.calls.load(Ordering::Relaxed),
            memory.switches.load(Ordering::Relaxed),
            memory.trace.load(Ordering::Relaxed),
        )
    }

    /// Returns the last calls of the process, in order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let stored = self.0.stored.load(Ordering::Acquire) as usize;
        // SAFETY: the process has answered or has ended, so it does not write. All bit patterns are valid calls.
        let recent = unsafe { &*self.0.recent.get() };
        let first = stored.saturating_sub(CALLS);
        (first..stored).map(|index| recent[index % CALLS]).collect()
    }

    // ---- the zygote's side ------------------------------------------------------------------------

    /// Records that the process is gone, and wakes the simulation.
    pub(crate) fn set_gone(&self, wait_status: i32) {
        let memory = self.0;
        memory.wait_status.store(wait_status, Ordering::Relaxed);
        memory.is_gone.store(1, Ordering::Release);
        memory.reply.raise();
        memory.gone.raise();
    }

    /// Returns the process id; 0 if there is none.
    pub(crate) fn pid(&self) -> i32 {
        self.0.pid.load(Ordering::Acquire)
    }

    /// Records the id of the forked process.
    pub(crate) fn set_pid(&self, pid: i32) {
        self.0.pid.store(pid, Ordering::Release);
    }

    // ---- the host's side --------------------------------------------------------------------------

    /// Waits for a command. Returns the command with its time and its input.
    pub(crate) fn wait(&self) -> (Command, u64, Vec<u8>) {
        let memory = self.0;
        memory.command.wait();
        let command = match memory.kind.load(Ordering::Acquire) {
            2 => Command::Kill,
            3 => Command::Settings,
            4 => Command::Signal,
            _ => Command::Step,
        };
        let length = memory.input_len.load(Ordering::Relaxed) as usize;
        // SAFETY: the simulation has raised the flag, and does not write until it has the reply.
        let input = unsafe { (&*memory.input.get())[..length].to_vec() };
        (command, memory.time.load(Ordering::Relaxed), input)
    }

    /// Replies to the command.
    pub(crate) fn done(&self, next: u64, calls: u64, switches: u64, trace: u64) {
        let memory = self.0;
        memory.next.store(next, Ordering::Relaxed);
        memory.calls.store(calls, Ordering::Relaxed);
        memory.switches.store(switches, Ordering::Relaxed);
        memory.trace.store(trace, Ordering::Relaxed);
        memory.answer.store(DONE, Ordering::Release);
        memory.reply.raise();
    }

    /// Stores a call for reports.
    pub(crate) fn store_call(&self, call: Call) {
        let stored = self.0.stored.load(Ordering::Relaxed);
        // SAFETY: only the thread with the baton calls this. The simulation reads only after the process has answered.
        unsafe { (&mut *self.0.recent.get())[stored as usize % CALLS] = call };
        self.0.stored.store(stored + 1, Ordering::Release);
    }

    /// Records how the process ended. Only the first call has an effect.
    pub(crate) fn end(&self, ending: Ending) {
        let (running, ending) = (Ending::Running.encode(), ending.encode());
        let _ =
            self.0
                .ending
                .compare_exchange(running, ending, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Appends packets.
    pub(crate) fn write_packet(&self, bytes: &[u8]) {
        let memory = self.0;
        self.append(
            &memory.output_len,
            memory.output.get().cast(),
            OUTPUT,
            bytes,
        );
    }

    /// Appends a log record, which survives the death of the process.
    pub(crate) fn write_log(&self, bytes: &[u8]) {
        let memory = self.0;
        self.append(&memory.log_len, memory.log.get().cast(), LOG, bytes);
    }

    fn append(&self, length: &AtomicU32, buffer: *mut u8, capacity: usize, bytes: &[u8]) {
        let memory = self.0;
        if length.load(Ordering::Relaxed) as usize + bytes.len() > capacity {
            memory.answer.store(MORE, Ordering::Release);
            memory.reply.raise();
            memory.command.wait();
        }
        let start = length.load(Ordering::Relaxed) as usize;
        assert!(
            start + bytes.len() <= capacity,
            "one record exceeds the channel"
        );
        // SAFETY: the range is within the buffer, and the simulation does not read until it has the reply.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.add(start), bytes.len()) };
        length.store((start + bytes.len()) as u32, Ordering::Release);
    }
}

/// The seconds after which a process that does not run is stuck: it waits for something that nobody simulates.
const IDLE: u32 = 600;

/// Returns the processor time that a process has used; `None` if it does not exist.
fn processor_time(pid: i32) -> Option<Duration> {
    // The clock of a process, as `clock_getcpuclockid` computes its number.
    let clock = (!pid << 3) | 2;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let found = &raw mut time as usize;
    // SAFETY: the call writes to `time`, which outlives it.
    let result = unsafe { raw(libc::SYS_clock_gettime, args([clock as usize, found])) };
    (pid > 0 && result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
