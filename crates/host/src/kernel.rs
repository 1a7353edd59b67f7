//! The simulated kernel of one host, which runs in the host's process.
//!
//! Every call of a program is a number and six arguments, as for the real kernel. A call arrives through a symbol of
//! the C library ([`crate::symbols`]) or through the filter ([`trap`]). The function [`call`] serves it. A call that
//! has to wait returns the reason for the wait. The thread then passes the baton on, and repeats the call when it is
//! woken.
#![allow(
    unsafe_code,
    reason = "reads and writes the memory that calls point to"
)]

mod attributes;
pub(crate) mod clock;
mod descriptors;
mod devices;
mod epoll;
mod events;
mod files;
mod futex;
mod identity;
mod inet;
mod locks;
pub(crate) mod memory;
mod messages;
pub(crate) mod names;
mod nested;
mod paths;
mod pipes;
mod poll;
mod process;
mod signals;
mod sockets;
mod streams;
mod table;
pub(crate) mod threads;
pub(crate) mod trap;
mod tsc;
mod unix;
pub(crate) mod user;

use crate::calls::Call;
use crate::channel::{Channel, Command, Ending};
use crate::disk::Disk;
use crate::drift::Drift;
use crate::filesystem::{FileSystem, Ino, ROOT};
use crate::packet::{Packet, Reader};
use crate::raw::{Args, args, raw};
use crate::settings::Settings;
pub(crate) use crate::tcp::{Id, NEVER};
use crate::world::World;
use std::cell::{Cell, UnsafeCell};
use std::collections::{BTreeMap, BTreeSet};

/// The result of an attempt at a call.
#[derive(Debug)]
pub(crate) enum Step {
    /// The result, in the format of the real kernel: errors are negative.
    Done(isize),
    /// The call is repeated when the thread is woken.
    Wait(Wait),
    /// The call is repeated after a microsecond.
    Linger,
    /// Other threads run first; then the call returns this result.
    Yield(isize),
    /// The calling thread raises a signal, and then the call returns this result.
    Raise { signal: i32, result: isize },
    /// The call is not simulated.
    Unsupported,
    /// The calling thread never returns.
    Exit,
}

/// A thread's reason for waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The events that wake the thread.
    pub on: On,
    /// The time at which the thread is woken; [`NEVER`] for no limit.
    pub until: u64,
}

/// Events that wake a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Only the passage of time.
    Time,
    /// A wake-up of the futex at this address, if the wake-up has any bit of this set.
    Futex(usize, u32),
    /// A change of any of the objects.
    Objects(Vec<Id>),
    /// The end of a thread.
    End(usize),
}

/// The reasons why a waiting thread continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waking {
    /// The awaited event has happened, or may have happened.
    #[default]
    Woken,
    /// The time limit was reached.
    TimedOut,
    /// A signal has arrived, and its handler has run.
    Interrupted,
}

/// The state of a call between its attempts.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// The time limit, computed at the first attempt.
    until: Option<u64>,
    /// True if the thread was woken because the time limit of its wait was reached.
    pub timed_out: bool,
    /// True if the thread was woken for another reason.
    pub woken: bool,
    /// The end of a named pipe that `open` has created, and that waits for a partner.
    pub opened: Option<Id>,
    /// The number of bytes that a blocking write has already transferred.
    pub sent: usize,
}

impl Attempt {
    /// Returns the time limit of a call, which is computed once.
    fn until(&mut self, compute: impl FnOnce() -> u64) -> u64 {
        *self.until.get_or_insert_with(compute)
    }
}

/// The state of a host.
pub(crate) struct Kernel {
    pub world: &'static World,
    pub host: usize,
    /// The time that the host's clocks count, in nanoseconds.
    pub now: u64,
    /// Virtual time in nanoseconds.
    time: u64,
    drift: Drift,
    channel: Channel,
    random: Random,
    scheduler: threads::Scheduler,
    descriptors: descriptors::Descriptors,
    inet: inet::Inet,
    unix: unix::Names,
    pipes: pipes::Pipes,
    /// The times at which objects must be checked again.
    timers: BTreeSet<(u64, Id)>,
    memory: memory::Regions,
    files: FileSystem,
    disk: Disk,
    /// True if names of other hosts can be looked up.
    has_names: bool,
    locks: locks::Locks,
    /// The directory at which relative paths start.
    directory: Ino,
    /// The permissions that new files do not get (`umask`).
    mask: u32,
    calls: u64,
    /// A hash of all calls, with their times and results.
    trace: u64,
    /// The number of consecutive calls that did not wait ([`Kernel::without_waiting`]).
    readings: u32,
    /// Threads that the program has started and not joined.
    pub started: Vec<threads::StartedThread>,
    /// Names of threads for the log.
    thread_names: BTreeMap<usize, String>,
    /// True if the process was stopped for a debugger.
    has_stopped: bool,
}

/// The generator of a host's random numbers.
#[derive(Debug)]
pub(crate) struct Random(corsair::Random);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a random number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u32) as usize
    }
}

/// The kernel of this process, if it is a host.
struct KernelCell(UnsafeCell<Option<Kernel>>);

// SAFETY: only the thread that has the baton calls `with`, or the machine's thread while no other thread has the baton.
unsafe impl Sync for KernelCell {}

static OWN: KernelCell = KernelCell(UnsafeCell::new(None));

thread_local! {
    /// The number of this simulated thread; `None` while it does not have the baton, and within [`outside`].
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
    /// True while this thread borrows the kernel.
    static BORROWED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the number of the calling thread, if it belongs to the program of a host.
pub(crate) fn current_thread() -> Option<usize> {
    THREAD.get()
}

/// Runs `act` so that its calls reach the real kernel. The calling thread keeps the baton.
pub(crate) fn outside<T>(act: impl FnOnce() -> T) -> T {
    let thread = THREAD.take();
    let result = act();
    THREAD.set(thread);
    result
}

/// Turns this process into a host.
pub(crate) fn install(kernel: Kernel) {
    // SAFETY: called once, by the only thread of a process that has just been forked.
    unsafe { *OWN.0.get() = Some(kernel) };
}

/// Calls `act` with the kernel. The calling thread must have the baton.
pub(crate) fn with<T>(act: impl FnOnce(&mut Kernel) -> T) -> T {
    if BORROWED.replace(true) {
        fatal("the simulated kernel was entered from within itself");
    }
    // SAFETY: only one thread of the process has the baton, which is this one, and `BORROWED` excludes a second
    // reference on it. The reference ends with the closure, which does not pass the baton on.
    let Some(kernel) = (unsafe { &mut *OWN.0.get() }) else {
        fatal("this process is not a host");
    };
    let result = act(kernel);
    BORROWED.set(false);
    result
}

/// Ends the process with a message, without allocating memory.
pub(crate) fn fatal(message: &str) -> ! {
    // Nothing is allocated, because the allocator may be the cause of the failure.
    for text in ["corsair-host: ", message, "\n"] {
        let arguments = args([2, text.as_ptr() as usize, text.len()]);
        // SAFETY: the text is valid for reads.
        unsafe { raw(libc::SYS_write, arguments) };
    }
    // SAFETY: the call takes no pointers, and ends the process.
    unsafe {
        raw(libc::SYS_exit_group, [134, 0, 0, 0, 0, 0]);
    }
    unreachable!("the process has ended")
}

/// Serves a call of the calling thread, which belongs to a host's program. Returns the result that the real kernel
/// would return.
pub(crate) fn call(number: i64, args: Args) -> isize {
    if BORROWED.get() {
        return nested::serve(number, &args);
    }
    if !nested::is_of_allocators(number) && with(|kernel| kernel.should_preempt()) {
        threads::pass_on(None);
    }
    let mut attempt = Attempt::default();
    loop {
        match with(|kernel| kernel.attempt(number, &args, &mut attempt)) {
            Step::Done(result) => return result,
            Step::Wait(wait) => {
                let waking = threads::pass_on(Some(wait));
                if waking == Waking::Interrupted && table::is_interrupted(number) {
                    return user::error(libc::EINTR);
                }
                attempt.timed_out = waking == Waking::TimedOut;
                attempt.woken = waking == Waking::Woken;
            }
            Step::Linger => {
                let wait = with(|kernel| kernel.linger());
                attempt.timed_out = threads::pass_on(Some(wait)) == Waking::TimedOut;
            }
            Step::Yield(result) => {
                threads::pass_on(None);
                return result;
            }
            // The handler makes calls, so the kernel is not borrowed.
            Step::Raise { signal, result } => {
                process::raise(signal);
                return result;
            }
            Step::Unsupported => process::refuse(number, &args),
            Step::Exit => threads::leave_forever(),
        }
    }
}

/// The address at which the journal of the disk is mapped.
const JOURNAL: usize = 0x2800_0000_0000;

/// Opens the disk of a host that is switched on.
fn boot_disk(
    world: &World,
    host: usize,
    boots: u32,
    lost_power: bool,
    random: &mut Random,
) -> std::io::Result<FileSystem> {
    let medium = world.medium.of_host(host);
    let medium = medium.ok_or_else(|| std::io::Error::other("there are too many hosts"))?;
    let mut files = FileSystem::open(medium, JOURNAL)?;
    if boots == 0 {
        let own = world.files.iter().filter(|file| file.0 == host);
        let time = clock::EPOCH;
        files.format(
            own.map(|(_, path, contents)| (&path[..], &contents[..])),
            time,
        );
    } else if lost_power {
        files.lose_power(|bound| random.below(bound));
    } else {
        files.end_program();
    }
    Ok(files)
}

impl Kernel {
    /// Creates the kernel of a host that is switched on at a virtual time.
    pub(crate) fn new(
        world: &'static World,
        host: usize,
        boots: u32,
        now: u64,
        lost_power: bool,
    ) -> std::io::Result<Kernel> {
        let channel = world.hosts[host].channel().map(Channel::other_side);
        let channel = channel.ok_or_else(|| std::io::Error::other("the host has no process"))?;
        let stream =
            corsair::Random::new(world.seed ^ ((host as u64 + 1) << 32) ^ (u64::from(boots) << 56));
        let mut random = Random(stream);
        let files = boot_disk(world, host, boots, lost_power, &mut random)?;
        Ok(Kernel {
            world,
            host,
            now,
            time: now,
            drift: Drift::default(),
            channel,
            scheduler: threads::Scheduler::default(),
            descriptors: descriptors::Descriptors::new(),
            inet: inet::Inet::new(&mut random),
            unix: unix::Names::default(),
            pipes: pipes::Pipes::default(),
            random,
            timers: BTreeSet::new(),
            memory: memory::Regions::new(),
            files,
            disk: world.disk,
            has_names: true,
            locks: locks::Locks::default(),
            directory: ROOT,
            mask: 0o022,
            calls: 0,
            trace: 0,
            readings: 0,
            started: vec![],
            thread_names: BTreeMap::new(),
            has_stopped: false,
        })
    }

    /// Makes one attempt at a call, and adds the result to the trace.
    fn attempt(&mut self, number: i64, args: &Args, attempt: &mut Attempt) -> Step {
        self.calls += 1;
        let step = table::serve(self, number, args, attempt);
        if matches!(step, Step::Wait(_)) {
            self.readings = 0;
        }
        self.report_call(number, args, &step);
        if let Step::Done(result) = step {
            let so_far = self.trace.rotate_left(5) ^ self.now;
            self.trace = (so_far ^ (number as u64) << 32 ^ result as u32 as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        step
    }

    /// Applies the settings of the host. If the wall clock is stepped, all waits for a time of the wall clock are
    /// computed again.
    fn change_settings(&mut self, settings: Settings) {
        self.disk = settings.disk;
        self.drift = settings.drift;
        self.now = self.drift.local(self.time);
        self.has_names = settings.has_names;
        if clock::set_wall(settings.wall) {
            self.scheduler.wake_timed();
            self.restart_wall_timers();
        }
    }

    /// Stores a call for reports. Logs the call if the host is traced.
    fn report_call(&mut self, number: i64, args: &Args, step: &Step) {
        let result = match step {
            Step::Done(result) | Step::Yield(result) | Step::Raise { result, .. } => *result,
            Step::Wait(_) => crate::calls::WAITS,
            _ => return,
        };
        let call = Call {
            time: self.time,
            thread: current_thread().unwrap_or(0),
            number,
            args: [args[0], args[1], args[2]],
            result,
        };
        self.channel.store_call(call);
        if self.world.debug.traced[self.host] {
            self.log(2, format!("{call}\n").as_bytes());
        }
    }

    /// Stops the process for a debugger if the requested time has been reached.
    fn stop_for_debugger(&mut self) {
        let Some((host, time)) = self.world.debug.stop else {
            return;
        };
        if host == self.host && self.time >= time && !std::mem::replace(&mut self.has_stopped, true)
        {
            let name = &self.world.hosts[host].name;
            process::stop(name, self.time);
        }
    }

    /// Hands a packet to the network.
    fn transmit(&mut self, packet: &Packet) {
        let mut bytes = Vec::with_capacity(packet.size());
        packet.write(&mut bytes);
        self.channel.write_packet(&bytes);
    }

    /// Logs bytes that a thread wrote to its standard output or error.
    pub(crate) fn log(&mut self, stream: u8, bytes: &[u8]) {
        let thread = current_thread().unwrap_or(0);
        for part in bytes.chunks(64 << 10) {
            crate::log::write_record(self.time, thread as u32, stream, part, |record| {
                self.channel.write_log(record);
            });
        }
    }

    /// Returns a random number below `bound`, which is not 0.
    pub(crate) fn random_below(&mut self, bound: u32) -> u32 {
        self.random.below(bound as usize) as u32
    }

    /// Records how the program ended. Only the first call has an effect.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.channel.end(ending);
    }

    /// Sets the time at which an object is checked again. The new time replaces the previous one.
    fn set_timer(&mut self, at: u64, id: Id) {
        let Some(object) = self.descriptors.get_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut object.timer, at);
        if before != at {
            self.timers.remove(&(before, id));
            if at != NEVER {
                self.timers.insert((at, id));
            }
        }
    }

    /// Returns the time of the next timer, time limit or packet from the host to itself.
    fn next(&self) -> u64 {
        let timer = self.timers.first().map_or(NEVER, |&(at, _)| at);
        timer
            .min(self.inet.next_loopback())
            .min(self.scheduler.next_limit())
    }

    /// Handles due packets, timers and time limits, without running threads.
    fn catch_up(&mut self) {
        while let Some(packet) = self.inet.take_loopback(self.now) {
            self.receive(packet);
        }
        while let Some(&(at, id)) = self.timers.first().filter(|&&(at, _)| at <= self.now) {
            self.timers.remove(&(at, id));
            if let Some(object) = self.descriptors.get_mut(id) {
                object.timer = NEVER;
            }
            self.on_timer(id);
        }
        self.scheduler.wake_expired(self.now);
    }
}

/// Ends the step and serves commands of the simulation until a thread is ready. Returns this thread. The caller is the
/// thread that has the baton and finds no thread ready: a thread of the program (this saves a switch), or the first
/// thread of the process.
pub(crate) fn next_thread() -> usize {
    loop {
        if let Some(thread) = with(|kernel| kernel.choose()) {
            return thread;
        }
        let channel = with(|kernel| {
            let next = kernel.next();
            kernel.check_deadlock(next);
            let switches = kernel.scheduler.switches;
            let channel = kernel.channel.other_side();
            channel.done(
                kernel.drift.virtual_at(next),
                kernel.calls,
                switches,
                kernel.trace,
            );
            channel
        });
        serve(channel.wait());
    }
}

/// Serves a command.
fn serve((command, time, input): (Command, u64, Vec<u8>)) {
    with(|kernel| {
        kernel.time = kernel.time.max(time);
        kernel.now = kernel.drift.local(kernel.time);
        nested::set_time(kernel.now);
        kernel.stop_for_debugger();
        match command {
            Command::Kill => kernel.kill(),
            Command::Signal => {
                let signal = Reader(&input).u32();
                kernel.deliver_signal(signal.unwrap_or(0) as i32);
            }
            Command::Settings => {
                if let Some(settings) = Settings::from_bytes(&input) {
                    kernel.change_settings(settings);
                }
            }
            Command::Step => {
                if let Some(packet) = Reader(&input).packet() {
                    kernel.receive(packet);
                }
            }
        }
    });
}

/// Runs a host. Called by the first thread of the process, which is not part of the program.
pub(crate) fn run_machine() -> ! {
    let channel = with(|kernel| kernel.channel.other_side());
    serve(channel.wait());
    loop {
        threads::hand_over(next_thread());
        threads::wait_for_machine();
    }
}
