//! Everything that can go wrong before and between processes, a sentence each.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why processes do not make a run together, or no longer do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The file of hosts cannot be read.
    #[error("cannot read the hosts of {path}: {why}")]
    HostsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The hosts make no sense.
    #[error("{path}: {what}")]
    Hosts {
        /// The file.
        path: PathBuf,
        /// Which line, and what is wrong with it.
        what: String,
    },
    /// The file of the secret cannot be read.
    #[error("cannot read the secret of {path}: {why}")]
    SecretFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A secret that could be guessed, or is no secret.
    #[error(
        "a secret of {length} bytes is refused; give {least} to {most}, as `openssl rand -hex 32` makes them"
    )]
    Secret {
        /// How long it is.
        length: usize,
        /// The shortest.
        least: usize,
        /// The longest.
        most: usize,
    },
    /// The number of this process is none of those that there are.
    #[error("there is no process {process} of {processes}; they are counted from 0 to {}", processes - 1)]
    Process {
        /// The number.
        process: usize,
        /// How many there are.
        processes: usize,
    },
    /// The system has no random numbers, without which nothing can be authenticated.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// This process cannot listen where the others expect it.
    #[error(
        "cannot listen at {address}: {why}; the hosts must name this machine for process {process}"
    )]
    Listen {
        /// This process.
        process: usize,
        /// Where.
        address: String,
        /// Why.
        why: io::Error,
    },
    /// A process cannot be reached in time.
    #[error("process {process} at {address} cannot be reached within {waited:?}: {why}")]
    Unreachable {
        /// Which.
        process: usize,
        /// Where.
        address: String,
        /// For how long it was tried.
        waited: Duration,
        /// What was the matter the last time.
        why: String,
    },
    /// What answers is something else.
    #[error(
        "what answers at {address} is no process of a corsair cluster; look at the hosts and their ports"
    )]
    NotCorsair {
        /// Where.
        address: String,
    },
    /// The other one speaks another protocol.
    #[error(
        "the process at {address} speaks version {theirs} of the protocol, this one version {ours}; run the same corsair everywhere"
    )]
    Protocol {
        /// Where.
        address: String,
        /// Its version.
        theirs: u32,
        /// This one's.
        ours: u32,
    },
    /// Not the same secret on both sides.
    #[error("the process at {address} has another secret; give the same --secret-file everywhere")]
    WrongSecret {
        /// Where.
        address: String,
    },
    /// The other one has a reason to refuse this one.
    #[error("the process at {address} refuses process {process}: {why}")]
    Refused {
        /// This process.
        process: usize,
        /// Who refuses.
        address: String,
        /// Why.
        why: String,
    },
    /// Not all came.
    #[error("{missing} did not come within {waited:?}{note}")]
    Missing {
        /// Which processes, in words.
        missing: String,
        /// For how long they were waited for.
        waited: Duration,
        /// What else was seen meanwhile, behind a semicolon.
        note: String,
    },
    /// A run that had begun is over because of another process, or of this one.
    #[error("{0}")]
    Lost(String),
    /// A thread or a socket cannot be had.
    #[error("{what}: {why}")]
    System {
        /// What for.
        what: &'static str,
        /// Why.
        why: io::Error,
    },
}

impl ClusterError {
    /// What makes an error of the system one of these.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> ClusterError {
        move |why| ClusterError::System { what, why }
    }
}
