//! Where the bodies of actors are polled.
//!
//! One type stands for all executors, and a life comes in a box: so the code of an actor is compiled
//! once for the wall clock, and not once for each executor.

use super::alarm::Alarm;
use super::pool::{self, Job, Pool};
use super::threads::Threads;
#[cfg(feature = "tokio")]
use super::tokio::Tasks;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// The life of an actor, from its first poll to its end.
pub(super) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a runtime keeps of an actor to be able to end it: in a pool its job, elsewhere nothing.
pub(super) type Handle = OnceLock<Arc<Job>>;

/// Where bodies are polled.
pub(super) enum Runtime {
    #[cfg(feature = "tokio")]
    Tasks(Tasks),
    Threads(Threads),
    Pool(Pool),
}

impl Runtime {
    /// How many actors it can run at once, if it is limited.
    pub(super) fn limit(&self) -> Option<u64> {
        match self {
            Runtime::Threads(threads) => Some(threads.limit()),
            _ => None,
        }
    }

    /// Whether many lives can be begun by one more.
    pub(super) fn begins_many(&self) -> bool {
        !matches!(self, Runtime::Threads(_))
    }

    /// What begins lives, best many of them.
    pub(super) fn starter(&self) -> Starter<'_> {
        match self {
            #[cfg(feature = "tokio")]
            Runtime::Tasks(tasks) => Starter::Tasks(tasks),
            Runtime::Threads(threads) => Starter::Threads(threads),
            Runtime::Pool(pool) => Starter::Pool(pool.starter()),
        }
    }

    /// What is to wake an actor of this runtime.
    pub(super) fn alarm(&self) -> Alarm {
        match self {
            Runtime::Threads(_) => Alarm::Park,
            _ => Alarm::Clock(None),
        }
    }
}

/// Begins to run the lives of actors.
pub(super) enum Starter<'a> {
    #[cfg(feature = "tokio")]
    Tasks(&'a Tasks),
    Threads(&'a Threads),
    Pool(pool::Starter),
}

impl Starter<'_> {
    /// Begins to run the life of an actor.
    ///
    /// # Errors
    /// The system has no thread for it.
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
