//! Hosts of a simulation, by name and state.

/// A host of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) usize);

/// The state of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// The host's program is running.
    Running,
    /// The host has no power.
    Off,
    /// The host's program was killed.
    Killed,
    /// The host's program has ended with this status.
    Exited(i32),
    /// The host's program has panicked.
    Panicked,
    /// A signal has ended the host's program, for example after a segmentation fault or an abort.
    Crashed(i32),
    /// The host's program made a call that is not simulated.
    Unsupported,
    /// No thread of the host's program can ever run again.
    Deadlocked,
    /// The host's program ran for many seconds of the wall clock without any system call.
    Stuck,
}

impl HostState {
    /// True if the program has failed by itself.
    pub fn is_failure(self) -> bool {
        !matches!(
            self,
            HostState::Running | HostState::Off | HostState::Killed | HostState::Exited(0)
        )
    }
}
