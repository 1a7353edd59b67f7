//! How long processes wait for each other.

use std::time::Duration;

/// How long a process waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until all have found each other.
    pub rendezvous: Duration,
    /// For a sign of life of another process during the run.
    pub silence: Duration,
    /// For the end of a window.
    pub stall: Duration,
}

impl Default for Limits {
    /// A minute, ten seconds, and five minutes.
    fn default() -> Limits {
        Limits {
            rendezvous: Duration::from_secs(60),
            silence: Duration::from_secs(10),
            stall: Duration::from_secs(300),
        }
    }
}
