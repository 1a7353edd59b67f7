//! The state of a host's kernel, and the access of the process's threads to it.
#![allow(
    unsafe_code,
    reason = "shares the kernel between the threads of the process"
)]

use super::objects::Descriptors;
use super::objects::files::Locks;
use super::objects::inet::Inet;
use super::objects::pipes::Pipes;
use super::objects::unix::Names;
use super::scheduler::{Scheduler, StartedThread};
use crate::channel::Channel;
use crate::disk::Disk;
use crate::drift::Drift;
use crate::filesystem::{FileSystem, Ino};
use crate::raw::{args, raw};
use crate::tcp::Id;
use crate::world::World;
use std::cell::{Cell, UnsafeCell};
use std::collections::{BTreeMap, BTreeSet};

/// Address ranges of a program that are in use.
#[derive(Debug)]
pub(crate) struct Regions {
    pub(super) next_mapping: usize,
    /// Stacks by slot: the size of the mapping, and whether a thread uses it.
    pub(super) stacks: Vec<(usize, bool)>,
    /// The mappings that write to files, with their addresses and inodes. Mappings that the program has unmapped stay
    /// in the list.
    pub(super) written: Vec<((usize, usize), Ino)>,
}

impl Regions {
    pub(crate) fn new(next_mapping: usize) -> Regions {
        Regions {
            next_mapping,
            stacks: vec![],
            written: vec![],
        }
    }
}

/// The state of a host.
pub(crate) struct Kernel {
    pub world: &'static World,
    pub host: usize,
    /// The time that the host's clocks count, in nanoseconds.
    pub now: u64,
    /// Virtual time in nanoseconds.
    pub(super) time: u64,
    pub(super) drift: Drift,
    pub(super) channel: Channel,
    pub(super) random: Random,
    pub(super) scheduler: Scheduler,
    pub(super) descriptors: Descriptors,
    pub(super) inet: Inet,
    pub(super) unix: Names,
    pub(super) pipes: Pipes,
    /// The times at which objects must be checked again.
    pub(super) timers: BTreeSet<(u64, Id)>,
    pub(super) memory: Regions,
    pub(super) files: FileSystem,
    pub(super) disk: Disk,
    /// True if names of other hosts can be looked up.
    pub(super) has_names: bool,
    pub(super) locks: Locks,
    /// The directory at which relative paths start.
    pub(super) directory: Ino,
    /// The permissions that new files do not get (`umask`).
    pub(super) mask: u32,
    pub(super) calls: u64,
    /// A hash of all calls, with their times and results.
    pub(super) trace: u64,
    /// The number of consecutive calls that did not wait ([`Kernel::without_waiting`]).
    pub(super) readings: u32,
    /// Threads that the program has started and not joined.
    pub started: Vec<StartedThread>,
    /// Names of threads for the log.
    pub(super) thread_names: BTreeMap<usize, String>,
    /// True if the process was stopped for a debugger.
    pub(super) has_stopped: bool,
}

/// The generator of a host's random numbers.
#[derive(Debug)]
pub(crate) struct Random(pub(super) corsair::Random);

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
    pub(super) static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
    /// True while this thread borrows the kernel.
    pub(super) static BORROWED: Cell<bool> = const { Cell::new(false) };
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
