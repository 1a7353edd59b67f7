//! The configuration of a run.

use super::address::Addr;
use super::message::Message;
use super::time::{Time, nanos};
use crate::network::Network;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The executor that runs the actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Executor {
    /// Deterministic virtual time, on [`Config::workers`] threads.
    #[default]
    Virtual,
    /// A tokio task and a bounded mailbox per actor, on [`Config::workers`] threads.
    Tokio,
    /// An OS thread and a bounded mailbox per actor.
    Threads,
    /// Any number of actors on a fixed pool of [`Config::workers`] OS threads.
    Pool,
}

/// The configuration of a run. Every field has a useful default.
///
/// ```
/// use corsair::{Config, Latency};
/// use std::time::Duration;
/// let config = Config {
///     seed: 7,
///     latency: Latency::constant(Duration::from_millis(2)),
///     ..Config::default()
/// };
/// assert!(config.check().is_ok());
///
/// // The windows of virtual time may not be wider than the smallest latency.
/// let config = Config { lookahead: Some(Duration::from_millis(3)), ..config };
/// assert!(config.check().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed of all random numbers of the run.
    pub seed: u64,
    /// The number of worker threads; by default the number of cores. In virtual time the result does not depend on it.
    pub workers: NonZeroUsize,
    /// The latencies of messages in virtual time.
    pub latency: Latency,
    /// The network model in virtual time. It replaces [`Config::latency`].
    pub network: Option<Arc<dyn Network>>,
    /// The maximum width of the windows in which the shards of the virtual executor run without a barrier: at most the
    /// smallest latency, which is also the default. The result of a run does not depend on the lookahead.
    pub lookahead: Option<Duration>,
    /// The time limit of the run: an event that is due later ends the run with
    /// [`RunError::PastEnd`](crate::RunError::PastEnd).
    pub end: Option<Time>,
    /// The number of events that a mailbox of a wall-clock executor holds.
    pub mailbox: NonZeroUsize,
    /// The treatment of messages for a full mailbox on a wall-clock executor.
    pub overflow: Overflow,
    /// The treatment of messages for actors that have ended.
    pub dead_letters: DeadLetters,
    /// If true, the run fails if there are dead letters, or if actors are still waiting when the root has ended.
    pub strict: bool,
    /// True to include totals per actor in the report.
    pub per_actor: bool,
    /// Cancels the run from outside, for instance on Ctrl-C.
    pub cancel: CancelToken,
    /// The end of the warm-up: [`Report::probes`](crate::Report::probes) contain only measurements that actors record
    /// from this time on.
    pub warm_up: Time,
    /// Whether a panic of an actor ends the run or only the actor.
    pub panics: Panics,
    /// In virtual time, the maximum number of events that an actor may cause itself at one instant, by timers without
    /// delay or by waking itself. One more event ends the run with [`RunError::Livelock`](crate::RunError::Livelock),
    /// because time would never advance.
    pub most_at_once: NonZeroU32,
    /// In virtual time, stores the send time, trace and cause of every message for
    /// [`Context::envelope`](crate::Context::envelope). If false, messages take half the memory. An ordinary message
    /// then belongs to no trace, and its reported send time is the time at which it arrives; requests and answers keep
    /// their traces.
    pub traces: bool,
    /// Receives the progress of a run in virtual time, for example for a progress bar.
    pub progress: Progress,
}

/// A configuration does not change after it was created, except for the user's network. So a panic can leave only the
/// network in an inconsistent state.
impl std::panic::UnwindSafe for Config {}

/// See the implementation of [`UnwindSafe`](std::panic::UnwindSafe) for the reason.
impl std::panic::RefUnwindSafe for Config {}

impl Default for Config {
    fn default() -> Self {
        Config {
            seed: 0,
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            latency: Latency::default(),
            network: None,
            lookahead: None,
            end: None,
            mailbox: NonZeroUsize::new(256).expect("256 is not 0"),
            overflow: Overflow::default(),
            dead_letters: DeadLetters::default(),
            strict: false,
            per_actor: false,
            cancel: CancelToken::default(),
            warm_up: Time::ZERO,
            panics: Panics::default(),
            most_at_once: NonZeroU32::new(1_000_000).expect("a million is not 0"),
            traces: true,
            progress: Progress::default(),
        }
    }
}

impl Config {
    /// Returns a copy of the configuration whose latencies cover those of its network.
    pub(crate) fn with_network(&self) -> Config {
        let mut config = self.clone();
        if let Some(network) = &self.network {
            let min = nanos(network.least());
            let spread = nanos(network.most()).saturating_sub(min);
            config.latency = Latency { min, spread };
        }
        config
    }

    /// Checks that the fields are consistent.
    ///
    /// # Errors
    /// Returns an error for the first invalid field.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.workers.get() > MAX_WORKERS {
            return Err(ConfigError::Workers(self.workers.get()));
        }
        let latency = self.with_network().latency;
        if latency.min == 0 {
            return Err(ConfigError::NoLatency);
        }
        match self.lookahead {
            Some(Duration::ZERO) => Err(ConfigError::NoLookahead),
            Some(lookahead) if nanos(lookahead) > latency.min => Err(ConfigError::Lookahead {
                lookahead,
                latency: latency.min(),
            }),
            _ => Ok(()),
        }
    }

    /// Also checks the values that depend on the message type.
    pub(crate) fn check_for<M: Message>(&self) -> Result<(), ConfigError> {
        self.check()?;
        let duplicates = self
            .network
            .as_ref()
            .is_some_and(|network| network.duplicates());
        if duplicates && !M::DUPLICATES {
            let message = std::any::type_name::<M>();
            return Err(ConfigError::NoDuplicate { message });
        }
        Ok(())
    }

    /// Returns the lookahead in nanoseconds: the configured one, or the smallest latency.
    pub(crate) fn lookahead_nanos(&self) -> u64 {
        self.lookahead.map_or(self.latency.min, nanos)
    }

    /// Returns the last instant at which an event may happen, in nanoseconds: [`Config::end`], at most one nanosecond
    /// before [`Time::MAX`].
    pub(crate) fn last_nanos(&self) -> u64 {
        let end = self.end.map_or(u64::MAX, Time::as_nanos);
        end.min(u64::MAX - 1)
    }
}

/// The maximum number of workers.
const MAX_WORKERS: usize = 1024;

/// The reasons why a [`Config`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too many workers.
    #[error(
        "{0} workers are too many; the maximum is {MAX_WORKERS}, and more workers than cores only cost time"
    )]
    Workers(usize),
    /// A latency of zero.
    #[error("a latency of zero is invalid; give at least 1ns")]
    NoLatency,
    /// A lookahead of zero.
    #[error("the lookahead must not be zero; give at least 1ns, or leave it out")]
    NoLookahead,
    /// A lookahead beyond the smallest latency.
    #[error(
        "the lookahead {lookahead:?} is longer than the smallest latency {latency:?}; messages would arrive in a window already running. Lower the lookahead or raise the latency"
    )]
    Lookahead {
        /// The configured lookahead.
        lookahead: Duration,
        /// The smallest latency.
        latency: Duration,
    },
    /// The network duplicates messages, but the message type cannot be copied.
    #[error(
        "the network delivers some messages twice, and `{message}` cannot be copied; add #[message(duplicate)] to the type, which must be Clone, or use another network"
    )]
    NoDuplicate {
        /// The type of messages.
        message: &'static str,
    },
    /// A range of latencies whose upper end is below its lower end.
    #[error("latencies from {min:?} to {max:?}: the range ends before it begins")]
    Latency {
        /// The lower end.
        min: Duration,
        /// The upper end.
        max: Duration,
    },
}

/// The latency of messages in virtual time.
///
/// Each ordered pair of actors has one latency, fixed for the run and derived from the seed and the two addresses. So
/// messages of a pair never overtake each other, and no latency is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub(crate) min: u64,
    /// The width of the range above `min`; with 0 all pairs have the same latency.
    pub(crate) spread: u64,
}

impl Latency {
    /// Creates a latency that is the same for every pair.
    pub const fn constant(latency: Duration) -> Latency {
        Latency {
            min: nanos(latency),
            spread: 0,
        }
    }

    /// Creates latencies that are uniformly distributed over the pairs, at least `min` and below `max`.
    ///
    /// # Errors
    /// [`ConfigError::Latency`] if `max` is less than `min`.
    pub fn between(min: Duration, max: Duration) -> Result<Latency, ConfigError> {
        if max < min {
            return Err(ConfigError::Latency { min, max });
        }
        Ok(Latency {
            min: nanos(min),
            spread: nanos(max) - nanos(min),
        })
    }

    /// Returns the smallest latency of any pair.
    pub const fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// Returns the longest latency of any pair.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.min.saturating_add(self.spread))
    }

    /// Derives the key for [`Latency::of`] from the seed.
    pub(crate) const fn key(seed: u64) -> u64 {
        crate::contract::random::key(seed, 0x4C41_5445_4E43_5921)
    }

    /// Returns the latency from one actor to another in a run with this [key](Latency::key), in nanoseconds.
    #[inline]
    pub(crate) const fn of(&self, key: u64, from: Addr, to: Addr) -> u64 {
        if self.spread == 0 {
            return self.min;
        }
        let pair = (from.0 as u64) << 32 | to.0 as u64;
        let bits = crate::contract::random::mix(pair ^ key);
        self.min + ((bits as u128 * self.spread as u128) >> 64) as u64
    }
}

/// Mixes two numbers: returns the xor of the two halves of their product.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

impl Default for Latency {
    /// Returns the range from 2^20 ns (1.05 ms) to 2^21 ns (2.10 ms). Windows of the virtual executor are powers of
    /// two, so a lookahead that is a power of two gives the fewest windows.
    fn default() -> Self {
        Latency {
            min: 1 << 20,
            spread: 1 << 20,
        }
    }
}

/// The treatment of messages for a full mailbox, on the wall-clock executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The sender's next wait lasts until the mailbox has accepted the message.
    #[default]
    Block,
    /// The message is dropped and counted.
    DropNewest,
    /// The oldest message of the mailbox is dropped and counted.
    DropOldest,
    /// The run fails.
    Fail,
}

/// The treatment of messages for actors that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeadLetters {
    /// Dead letters are counted by kind and dropped.
    #[default]
    Count,
    /// Dead letters are counted, and the root receives them as [`Event::DeadLetter`](crate::Event::DeadLetter) while it lives.
    ToRoot,
}

/// Whether a panic of an actor ends the run or only the actor. A panic of the root always ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Panics {
    /// In virtual time a panic ends the run, because a simulation without one of its actors has no valid result. On the
    /// wall clock a panic ends only the actor.
    #[default]
    ByExecutor,
    /// The panic ends the run with [`RunError::Panicked`](crate::RunError::Panicked).
    EndRun,
    /// The panic ends only the actor. Its parent is notified ([`Reason::Panicked`](crate::Reason::Panicked)), and
    /// [`Report::panics`](crate::Report::panics) lists it.
    EndActor,
}

/// Cancels runs from outside, for example on Ctrl-C. Clones share one state.
///
/// A cancelled run ends cleanly. Its report covers everything up to that moment, with
/// [`Outcome::Cancelled`](crate::Outcome::Cancelled).
///
/// ```
/// use corsair::{CancelToken, Config};
///
/// let config = Config::default();
/// let token: CancelToken = config.cancel.clone();
/// token.cancel();
/// assert!(config.cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels the runs that have this token in their [`Config`]. This method may be called on any thread and in a
    /// signal handler.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if [`cancel`](Self::cancel) was called.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The progress of a run in virtual time. Clones observe the same run.
///
/// The wall-clock executors do not report progress.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Returns the start of the most recent window.
    pub fn time(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Records that a window has begun. Only one thread of a run calls this method.
    #[inline]
    pub(crate) fn reached(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}
