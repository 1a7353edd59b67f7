//! Errors of simulations.

use crate::state::HostState;
use corsair::Time;

/// The reason why a simulation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The platform is not supported: programs can be simulated only on Linux with glibc on x86-64.
    #[error(
        "hosts can be simulated on Linux x86-64 with glibc only; skip this test elsewhere with #[cfg(...)]"
    )]
    Platform,
    /// The process was not prepared by the test attribute or [`init`](crate::init).
    #[error(
        "a simulation needs a process of its own: use #[corsair_host::test], or call corsair_host::init() first in main"
    )]
    NotPrepared,
    /// Two hosts have the same name, or a name is invalid.
    #[error("'{0}' cannot name a host: names are unique, 1 to 63 letters, digits and hyphens")]
    Name(String),
    /// A host was added after the simulation had begun.
    #[error(
        "host {0} was added after the simulation had begun; add all hosts before the first run_until"
    )]
    TooLate(String),
    /// A setting contradicts another.
    #[error("the simulation cannot begin: {0}")]
    Settings(String),
    /// A system call failed.
    #[error("the simulation cannot begin: {what}: {source}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A program failed.
    #[error("host {host} {}, seed {seed}, at or before {time}\n{log}", .state)]
    Host {
        /// The host's name.
        host: String,
        /// The state that the failure has caused.
        state: HostState,
        /// The seed of the simulation.
        seed: u64,
        /// The time at which the failure was detected.
        time: Time,
        /// The log of all hosts.
        log: String,
    },
}
