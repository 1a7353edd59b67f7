//! The runtime that polls the bodies of actors: one type for all executors.

use super::alarm::Alarm;
use super::boxed::Life;
use super::pool::{self, Handle, Pool};
use super::threads::Threads;
#[cfg(feature = "tokio")]
use super::tokio::Tasks;
use std::io;

/// The runtime that polls bodies.
pub(super) enum Runtime {
    #[cfg(feature = "tokio")]
    Tasks(Tasks),
    Threads(Threads),
    Pool(Pool),
}

impl Runtime {
    /// Returns the maximum number of concurrent actors, if there is one.
    pub(super) fn limit(&self) -> Option<u64> {
        match self {
            Runtime::Threads(threads) => Some(threads.limit()),
            _ => None,
        }
    }

    /// True if one life can start many others.
    pub(super) fn begins_many(&self) -> bool {
        !matches!(self, Runtime::Threads(_))
    }

    /// Returns a starter, which can start many lives.
    pub(super) fn starter(&self) -> Starter<'_> {
        match self {
            #[cfg(feature = "tokio")]
            Runtime::Tasks(tasks) => Starter::Tasks(tasks),
            Runtime::Threads(threads) => Starter::Threads(threads),
            Runtime::Pool(pool) => Starter::Pool(pool.starter()),
        }
    }

    /// Returns the alarm for an actor of this runtime.
    pub(super) fn alarm(&self) -> Alarm {
        match self {
            Runtime::Threads(_) => Alarm::Park,
            _ => Alarm::Clock(None),
        }
    }
}

/// Starts the lives of actors.
pub(super) enum Starter<'a> {
    #[cfg(feature = "tokio")]
    Tasks(&'a Tasks),
    Threads(&'a Threads),
    Pool(pool::Starter),
}

impl Starter<'_> {
    /// Starts the life of an actor.
    ///
    /// # Errors
    /// If the system cannot create the needed thread.
    pub(super) fn start(
        &self,
        handle: &Handle,
        name: impl FnOnce() -> String,
        life: Life,
    ) -> io::Result<()> {
        match self {
            #[cfg(feature = "tokio")]
            Starter::Tasks(tasks) => tasks.start(life),
            Starter::Threads(threads) => return threads.start(name(), life),
            Starter::Pool(pool) => pool.start(handle, life),
        }
        Ok(())
    }
}
