//! The simulated kernel of one host, which runs in the host's process.
//!
//! Every call of a program is a number and six arguments, as for the real kernel. A call arrives through a symbol of
//! the C library ([`crate::symbols`]) or through the filter ([`trap`]). The function [`call`] serves it. A call that
//! has to wait returns the reason for the wait. The thread then passes the baton on, and repeats the call when it is
//! woken.

mod attributes;
pub(crate) mod clock;
mod commands;
mod descriptors;
mod devices;
mod epoll;
mod events;
mod files;
mod futex;
mod handlers;
pub(crate) mod identity;
mod inet;
mod locks;
pub(crate) mod memory;
mod messages;
pub(crate) mod names;
pub(crate) mod nested;
mod objects;
mod paths;
mod pipes;
mod poll;
mod process;
mod scheduler;
mod signals;
mod sockets;
mod state;
mod step;
mod streams;
mod table;
pub(crate) mod threads;
pub(crate) mod trap;
pub(crate) mod tsc;
mod unix;
pub(crate) mod user;

use crate::calls::Call;
use crate::channel::{Channel, Ending};
use crate::drift::Drift;
use crate::filesystem::{FileSystem, ROOT};
use crate::packet::Packet;
use crate::raw::Args;
use crate::settings::Settings;
pub(crate) use crate::tcp::{Id, NEVER};
use crate::world::World;
use commands::{next_thread, serve};
use objects::Descriptors;
use objects::files::Locks;
use objects::inet::Inet;
use objects::pipes::Pipes;
use objects::unix::Names;
use scheduler::Scheduler;
pub(crate) use scheduler::StartedThread;
use state::{BORROWED, Random, Regions};
pub(crate) use state::{Kernel, current_thread, fatal, install, outside, with};
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use step::{Attempt, On, Step, Wait, Waking};

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
                handlers::raise(signal);
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
            scheduler: Scheduler::default(),
            descriptors: Descriptors::new(),
            inet: Inet::new(&mut random.0),
            unix: Names::default(),
            pipes: Pipes::default(),
            random,
            timers: BTreeSet::new(),
            memory: Regions::new(memory::MAPPINGS),
            files,
            disk: world.disk,
            has_names: true,
            locks: Locks::default(),
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

/// Runs a host. Called by the first thread of the process, which is not part of the program.
pub(crate) fn run_machine() -> ! {
    let channel = with(|kernel| kernel.channel.other_side());
    serve(channel.wait());
    loop {
        threads::hand_over(next_thread());
        threads::wait_for_machine();
    }
}
