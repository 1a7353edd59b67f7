//! Hosts of a simulation, by name and state.

use std::fmt;

/// A host of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) usize);

impl HostId {
    /// Returns the position of the host in the order in which hosts were added, from 0 on, as in
    /// [`Line::host`](crate::Line::host).
    pub fn index(self) -> usize {
        self.0
    }
}

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
    /// The host's program used all the processor time that it may use between two system calls
    /// ([`Sim::processor_limit`](crate::Sim::processor_limit)).
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

impl fmt::Display for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostState::Running => "runs",
            HostState::Off => "is off",
            HostState::Killed => "was killed",
            HostState::Exited(status) => return write!(f, "exited with status {status}"),
            HostState::Panicked => "panicked",
            HostState::Crashed(signal) => return write!(f, "was ended by signal {signal}"),
            HostState::Unsupported => "made a call that is not simulated",
            HostState::Deadlocked => "is deadlocked",
            HostState::Stuck => {
                "computed for too long without a system call (Sim::processor_limit sets the limit)"
            }
        })
    }
}
