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
    /// Worker threads; default: as many as the machine has cores. In virtual time the result does
    /// not depend on it.
    pub workers: NonZeroUsize,
    /// How long messages travel in virtual time.
    pub latency: Latency,
    /// The network model in virtual time. It replaces [`Config::latency`].
    pub network: Option<Arc<dyn Network>>,
    /// The width of the windows in which shards of the virtual executor work without a barrier; at most the
    /// smallest latency, which is the default. The result does not depend on it.
    pub lookahead: Option<Duration>,
    /// The run may not go past this point in time: events later than it end the run with
    /// [`RunError::PastEnd`](crate::RunError::PastEnd).
    pub end: Option<Time>,
    /// How many events a mailbox of a wall-clock executor holds.
    pub mailbox: NonZeroUsize,
    /// The treatment of messages for a full mailbox on a wall-clock executor.
    pub overflow: Overflow,
    /// The treatment of messages for actors that have ended.
    pub dead_letters: DeadLetters,
    /// Make dead letters, and actors still waiting when the root has ended, errors of the run.
    pub strict: bool,
    /// Keep totals per actor for the report.
    pub per_actor: bool,
    /// Cancels the run from outside, for instance on Ctrl-C.
    pub cancel: CancelToken,
    /// The time from which [`Report::probes`](crate::Report::probes) include what actors record; earlier
    /// records are left out because the system is still settling.
    pub warm_up: Time,
    /// The scope of a panic: the run, or only the actor.
    pub panics: Panics,
    /// In virtual time, the maximum number of events that an actor causes itself at one instant, by timers
    /// without delay or by waking itself. The next one ends the run with
    /// [`RunError::Livelock`](crate::RunError::Livelock), because time would never advance.
    pub most_at_once: NonZeroU32,
    /// In virtual time, store with every message its send time, trace and cause for
    /// [`Context::envelope`](crate::Context::envelope). Without it, an ordinary message has its time of
    /// receipt as send time and belongs to no trace, and takes half the memory; requests and answers are not
    /// affected.
    pub traces: bool,
    /// The progress of a run in virtual time, for example for a progress bar.
    pub progress: Progress,
}

/// A network that has panicked is the user's own; nothing else in a configuration changes.
impl std::panic::UnwindSafe for Config {}

/// [`UnwindSafe`](std::panic::UnwindSafe) below has the reason.
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
    /// The configuration with the latencies of its network.
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
    /// The first one that does not.
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

    /// Also checks what depends on the type of messages.
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

    /// The lookahead in nanoseconds: the one given, or the smallest latency.
    pub(crate) fn lookahead_nanos(&self) -> u64 {
        self.lookahead.map_or(self.latency.min, nanos)
    }

    /// The last instant at which anything may happen, in nanoseconds: [`Config::end`], and never the end of time.
    pub(crate) fn last_nanos(&self) -> u64 {
        let end = self.end.map_or(u64::MAX, Time::as_nanos);
        end.min(u64::MAX - 1)
    }
}

/// The maximum number of workers.
const MAX_WORKERS: usize = 1024;

/// Why a [`Config`] cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too many workers.
    #[error(
        "{0} workers are too many; at most {MAX_WORKERS} work together, and more than the machine's cores only cost time"
    )]
    Workers(usize),
    /// A latency of zero.
    #[error("a latency of zero leaves virtual time no room; give at least 1ns")]
    NoLatency,
    /// A lookahead of zero.
    #[error("the lookahead must not be zero; give at least 1ns, or leave it out")]
    NoLookahead,
    /// A lookahead beyond the smallest latency.
    #[error(
        "the lookahead {lookahead:?} is longer than the smallest latency {latency:?}; messages would arrive in a window already running. Lower the lookahead or raise the latency"
    )]
    Lookahead {
        /// The lookahead asked for.
        lookahead: Duration,
        /// The smallest latency.
        latency: Duration,
    },
    /// The network delivers messages twice that cannot be copied.
    #[error(
        "the network delivers some messages twice, and `{message}` cannot be copied; put #[message(duplicate)] on the type, which is to be Clone, or take another network"
    )]
    NoDuplicate {
        /// The type of messages.
        message: &'static str,
    },
    /// A range of latencies that ends before it begins.
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
/// Each ordered pair of actors has one latency, fixed for the run and derived from the seed and the two
/// addresses. So messages of a pair never overtake each other, and no state is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub(crate) min: u64,
    /// Width of the range above `min`; 0: the same for all pairs.
    pub(crate) spread: u64,
}

impl Latency {
    /// The same for every pair.
    pub const fn constant(latency: Duration) -> Latency {
        Latency {
            min: nanos(latency),
            spread: 0,
        }
    }

    /// Uniformly distributed over the pairs, at least `min` and below `max`.
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

    /// The smallest latency of any pair.
    pub const fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// The longest latency of any pair.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.min.saturating_add(self.spread))
    }

    /// Derives the key for [`Latency::of`] from the seed.
    pub(crate) const fn key(seed: u64) -> u64 {
        crate::contract::random::key(seed, 0x4C41_5445_4E43_5921)
    }

    /// The latency from one actor to another in a run with this [key](Latency::key), in
    /// nanoseconds.
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

/// The two halves of a product, folded: one multiplication of good mixing.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

impl Default for Latency {
    /// From 2^20 ns (1.05 ms) to twice that: the windows of the virtual executor are powers of
    /// two, so a lookahead that is one makes the fewest of them.
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
    /// The sender waits, at its next wait, until the mailbox has capacity.
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
    /// They are counted by kind and dropped.
    #[default]
    Count,
    /// They are counted, and the root gets them as
    /// [`Event::DeadLetter`](crate::Event::DeadLetter) while it lives.
    ToRoot,
}

/// The scope of a panic. A panic of the root always ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Panics {
    /// The run in virtual time, where a simulation with a hole in it has no result; the actor on the
    /// clock of the wall.
    #[default]
    ByExecutor,
    /// The run, with [`RunError::Panicked`](crate::RunError::Panicked).
    EndRun,
    /// Only the actor. Its parent is notified ([`Reason::Panicked`](crate::Reason::Panicked)), and
    /// [`Report::panics`](crate::Report::panics) lists it.
    EndActor,
}

/// Cancels runs from outside, for example on Ctrl-C. Clones share one state.
///
/// A cancelled run ends cleanly, and its report says what it has done so far, with
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
    /// Cancels the runs that have this token in their [`Config`]. May be called from any thread, a signal
    /// handler's included.
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
/// The wall-clock executors do not set it, because their time is the clock's.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// The beginning of the window that was last begun.
    pub fn time(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Records that a window has begun. One thread of a run calls it.
    #[inline]
    pub(crate) fn reached(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}
