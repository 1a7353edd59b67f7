//! Where the bodies of actors are polled, and what wakes them when a timer is due.
//!
//! One type stands for all executors, and a life comes in a box: so the code of an actor is compiled
//! once for the wall clock, and not once for each executor.

use super::clock::Clock;
use super::pool::{ClockAlarm, Job, Pool};
use super::threads::{self, Threads};
#[cfg(feature = "tokio")]
use super::tokio::{SleepAlarm, Tasks};
use crate::contract::Time;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

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
            Runtime::Tasks(tasks) => tasks.start(life),
            Runtime::Threads(threads) => return threads.start(name(), life),
            Runtime::Pool(pool) => pool.start(handle, life),
        }
        Ok(())
    }

    /// What is to wake an actor of this runtime.
    pub(super) fn alarm(&self) -> Alarm {
        match self {
            #[cfg(feature = "tokio")]
            Runtime::Tasks(_) => Alarm::Sleep(SleepAlarm::default()),
            Runtime::Threads(_) => Alarm::Park,
            Runtime::Pool(_) => Alarm::Clock(ClockAlarm::default()),
        }
    }
}

/// What wakes one actor when its next timer is due.
pub(super) enum Alarm {
    #[cfg(feature = "tokio")]
    Sleep(SleepAlarm),
    Park,
    Clock(ClockAlarm),
}

impl Alarm {
    /// Whether it is time. If not, `task` will be woken when it is, or earlier.
    pub(super) fn poll<M>(&mut self, clock: &Clock<M>, due: Time, task: &Waker) -> Poll<()> {
        match self {
            #[cfg(feature = "tokio")]
            Alarm::Sleep(sleep) => sleep.poll(clock.instant(due), task),
            Alarm::Park if due <= clock.now() => Poll::Ready(()),
            Alarm::Park => {
                threads::wake_at(clock.instant(due), task);
                Poll::Pending
            }
            Alarm::Clock(alarm) => alarm.poll(clock, due, task),
        }
    }
}
