//! The zygote: the process from which hosts are forked. The zygote is a copy of the simulation's process that was made
//! before this process had threads. So every host begins in the same state at each start.
#![allow(unsafe_code, reason = "forks processes")]

use crate::channel::{Channel, Ending};
use crate::executable::{self, Boot};
use crate::heap::{self, Zone};
use crate::kernel::{self, Kernel};
use crate::processors;
use crate::raw::args;
use crate::symbols::threads;
use crate::world::{Executable, HostSpec, Program, World};
use std::io;
use std::sync::Mutex;

/// The size of a request in bytes: the host, the number of the start, the virtual time, whether the power was lost
/// before, and the processor.
const REQUEST: usize = 40;

/// The simulation's handle to the process from which hosts are forked.
#[derive(Debug)]
pub(crate) struct Zygote {
    pid: i32,
    /// The file descriptor to which requests are written.
    requests: Mutex<i32>,
}

impl Zygote {
    /// Forks the zygote. The calling process must have no other threads.
    pub(crate) fn fork(world: &'static World) -> io::Result<Zygote> {
        let mut ends = [0; 2];
        // SAFETY: the array has space for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: this process has one thread, so the copy is in a consistent state.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: the descriptor is a copy that only this process uses.
                unsafe { libc::close(ends[1]) };
                serve(world, ends[0])
            }
            pid => {
                // SAFETY: this process does not use the descriptor.
                unsafe { libc::close(ends[0]) };
                Ok(Zygote {
                    pid,
                    requests: Mutex::new(ends[1]),
                })
            }
        }
    }

    /// Requests a process for a host. The process waits for commands on the host's channel.
    pub(crate) fn start(&self, boot: Boot, processor: Option<usize>) {
        let mut request = [0; REQUEST];
        let processor = processor.map_or(u64::MAX, |processor| processor as u64);
        let numbers = [
            boot.host as u64,
            boot.starts.into(),
            boot.now,
            boot.lost_power.into(),
            processor,
        ];
        for (bytes, number) in request.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the request is valid for reads. A pipe writes this number of bytes atomically.
        unsafe { libc::write(*requests, request.as_ptr().cast(), REQUEST) };
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // SAFETY: the process is a child that has not been waited for. The hosts end with it (`PR_SET_PDEATHSIG`).
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Makes this process end together with the one that forked it.
pub(crate) fn die_with_parent() {
    // SAFETY: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Runs the zygote: forks hosts and reports their ends.
fn serve(world: &'static World, requests: i32) -> ! {
    die_with_parent();
    // SAFETY: the set is initialised before it is used, and the calls take no other pointers.
    let ends = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    loop {
        let wait_for = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut list = [wait_for(requests), wait_for(ends)];
        // SAFETY: the list has two entries.
        unsafe { libc::poll(list.as_mut_ptr(), 2, -1) };
        if list[1].revents != 0 {
            let mut info = [0u8; 128];
            // SAFETY: the buffer holds one `signalfd_siginfo`.
            unsafe { libc::read(ends, info.as_mut_ptr().cast(), 128) };
            reap(world);
        }
        if list[0].revents & libc::POLLIN != 0 {
            let mut request = [0u8; REQUEST];
            // SAFETY: the buffer holds one request.
            let count = unsafe { libc::read(requests, request.as_mut_ptr().cast(), REQUEST) };
            if count == REQUEST as isize {
                let [host, starts, now, lost_power, processor] = [0, 8, 16, 24, 32].map(|at| {
                    u64::from_le_bytes(request[at..at + 8].try_into().unwrap_or_default())
                });
                let boot = Boot {
                    host: host as usize,
                    starts: starts as u32,
                    now,
                    lost_power: lost_power == 1,
                };
                fork_host(
                    world,
                    boot,
                    (processor != u64::MAX).then_some(processor as usize),
                );
            }
        } else if list[0].revents != 0 {
            // SAFETY: the call takes no pointers. The simulation has ended, so the zygote ends.
            unsafe { libc::_exit(0) };
        }
    }
}

fn reap(world: &World) {
    loop {
        let mut status = 0;
        // SAFETY: the status is valid for a write.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        if pid <= 0 {
            return;
        }
        let mut channels = world.hosts.iter().filter_map(HostSpec::channel);
        if let Some(channel) = channels.find(|channel| channel.pid() == pid) {
            channel.set_gone(status);
        }
    }
}

fn fork_host(world: &'static World, boot: Boot, processor: Option<usize>) {
    let host = boot.host;
    let Some(channel) = world.hosts[host].channel() else {
        return;
    };
    // The zygote moves, so that the copy begins on this processor.
    processor.inspect(|&processor| processors::stay_on(processor));
    // SAFETY: this process has one thread, so the copy is in a consistent state.
    match unsafe { libc::fork() } {
        -1 => channel.set_gone(-1),
        0 => {
            channel.set_pid(std::process::id() as i32);
            if let Program::File(executable, _) = &world.hosts[host].program {
                execute(world, executable, channel, boot);
            }
            run_host(world, boot)
        }
        pid => channel.set_pid(pid),
    }
}

/// Executes a program of this machine in the process of its host.
fn execute(world: &World, executable: &Executable, channel: &Channel, boot: Boot) -> ! {
    die_with_parent();
    let error = executable::execute(world, executable, boot);
    let text = format!("cannot execute {}: {error}\n", executable.path.display());
    crate::log::write_record(boot.now, 0, 2, text.as_bytes(), |record| {
        channel.write_log(record);
    });
    // SAFETY: the call takes no pointers. It ends the process with the status that a shell uses.
    unsafe { libc::_exit(127) }
}

/// Runs a host in this process.
fn run_host(world: &'static World, boot: Boot) -> ! {
    let host = boot.host;
    die_with_parent();
    set_environment(world);
    crate::arguments::set(&world.hosts[host]);
    heap::enter(Zone::Host);
    match Kernel::new(world, host, boot.starts, boot.now, boot.lost_power) {
        Ok(kernel) => kernel::install(kernel),
        Err(error) => kernel::fatal(&format!("cannot map the disk of a host: {error}")),
    }
    threads::prepare();
    if world.debug.stop.is_some() {
        // SAFETY: the call takes no pointers. It allows debuggers that are not parents to attach.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    }
    if let Err(error) = kernel::trap::install() {
        kernel::fatal(&error);
    }
    let mut handle = 0;
    let argument = std::ptr::without_provenance_mut(host);
    if threads::start(&mut handle, 8 << 20, main, argument) != 0 {
        kernel::fatal("cannot start the first thread of a host");
    }
    kernel::run_machine()
}

/// Runs the first thread of a host's program.
extern "C" fn main(host: *mut libc::c_void) -> *mut libc::c_void {
    let world = kernel::with(|kernel| kernel.world);
    let Program::Main(program, _) = &world.hosts[host.addr()].program else {
        kernel::fatal("the host has no main function");
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(program));
    let _ = io::Write::flush(&mut io::stdout());
    let (ending, status) = match outcome {
        Ok(status) => (Ending::Exited(status.into()), status.into()),
        Err(_) => (Ending::Panicked, 101),
    };
    kernel::with(|kernel| kernel.end(ending));
    kernel::call(libc::SYS_exit_group, args([status]));
    std::ptr::null_mut()
}

/// Sets environment variables to values that do not depend on the machine. Variables for diagnosis are passed on.
fn set_environment(world: &World) {
    let passed: Vec<_> = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_LOG"]
        .into_iter()
        .filter_map(|name| Some((name.to_string(), std::env::var(name).ok()?)))
        .collect();
    let fixed = [
        ("HOME", "/"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()));
    // SAFETY: this process has one thread.
    unsafe {
        libc::clearenv();
        for (name, value) in fixed.iter().chain(&passed).chain(&world.environment) {
            std::env::set_var(name, value);
        }
        libc::chdir(c"/".as_ptr());
    }
}
