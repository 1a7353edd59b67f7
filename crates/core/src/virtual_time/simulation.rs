//! A run in virtual time that its caller advances step by step.

#[cfg(feature = "serde")]
mod checkpoint;
mod error;
mod inspect;
mod pace;
mod workers;

use super::conclusion::conclude;
use super::engine::{End, PausableShard};
use super::pause::Before;
use super::shard::LoggedEvent;
use crate::contract::{Addr, Config, Message, Report, RunError, Scenario, SpanId, Time};
use crate::sync::{Stopwatch, lock};
#[cfg(feature = "serde")]
pub(super) use checkpoint::restored;
pub use error::{InjectError, InspectError};
use pace::Pace;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use workers::WorkerThreads;

/// A run in virtual time that advances only as far as its caller requests. While it is paused, its actors can be
/// inspected and messages injected.
///
/// ```
/// use corsair::{
///     Actor, AsyncContext, Config, Context, Event, Flow, Message, Scenario, Simulation, Spawn, Time,
/// };
/// use std::time::Duration;
///
/// #[derive(Message)]
/// struct Coin;
///
/// /// Counts its messages.
/// struct Purse {
///     coins: u32,
/// }
///
/// impl Actor<Coin> for Purse {
///     fn on<C: Context<Coin>>(&mut self, _: Event<Coin>, _: &mut C) -> Flow {
///         self.coins += 1;
///         Flow::Continue
///     }
/// }
///
/// /// Gives a coin every second.
/// struct Allowance;
///
/// impl Scenario<Coin> for Allowance {
///     async fn root<C: AsyncContext<Coin>>(self, mut cx: C) {
///         let purses = cx.spawn_actors(Spawn::one("purse"), |_| Purse { coins: 0 }).await;
///         for _ in 0..10 {
///             cx.sleep(Duration::from_secs(1)).await;
///             cx.send(purses.get(0), Coin);
///         }
///         cx.settle().await;
///     }
/// }
///
/// let second = |n| Time::ZERO.after(Duration::from_secs(n));
/// let mut simulation = Simulation::new(&Config::default(), Allowance)?;
/// simulation.run_until(second(5));
/// let purse = simulation.find("purse").expect("it was spawned");
/// assert_eq!(simulation.inspect(purse, |purse: &Purse| purse.coins)?, 4);
///
/// simulation.inject(second(6), purse, Coin)?; // without a sender
/// simulation.run_until(second(8));
/// assert_eq!(simulation.inspect(purse, |purse: &Purse| purse.coins)?, 8);
///
/// let report = simulation.finish()?;
/// assert_eq!(report.delivered(), 11);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Wherever the run is paused, its result equals the result of [`run`](crate::run()) to the last bit, with any number
/// of workers. Injected messages change the result; it then depends on these messages and their times, but not on the
/// pauses. A run that is never paused has no overhead.
///
/// The first worker is the caller's thread; the others are threads that wait while the run is paused. Dropping a
/// simulation stops it and drops its actors.
pub struct Simulation<M: Message> {
    /// The other threads. They are dropped first, so that no other thread holds a shard.
    workers: WorkerThreads<M>,
    config: Config,
    /// A shard for each worker. The shards are unlocked while the run is paused.
    shards: Vec<Arc<Mutex<PausableShard<M>>>>,
    /// The current time: all events up to it have happened, and no later ones.
    now: Time,
    /// True if events at time 0 may have happened already.
    begun: bool,
    end: Option<End>,
    injected: u32,
    pace: Option<Pace>,
    started: Stopwatch,
    /// The data for saving the run; `None` if the run cannot be saved because its root is an async body.
    #[cfg(feature = "serde")]
    saving: Option<checkpoint::Saving<M>>,
}

impl<M: Message> Simulation<M> {
    /// Creates a run in which nothing has happened yet.
    ///
    /// # Errors
    /// Returns [`RunError::Config`] if the configuration contradicts itself, or [`RunError::Thread`] if the system
    /// cannot create a thread.
    pub fn new(config: &Config, scenario: impl Scenario<M>) -> Result<Simulation<M>, RunError> {
        let root = super::context::root_form(move |context| scenario.root(context));
        Simulation::from_root(config, Arc::new(root))
    }

    fn from_root(
        config: &Config,
        root: Arc<dyn super::Blueprint<M, super::Shard<M>>>,
    ) -> Result<Simulation<M>, RunError> {
        config.check_for::<M>()?;
        super::check_memory::<M>(config)?;
        let config = &config.with_network();
        let started = Stopwatch::start();
        let shards: Vec<_> = (0..config.workers.get())
            .map(|index| {
                Arc::new(Mutex::new(PausableShard::new(
                    config,
                    index,
                    Arc::clone(&root),
                )))
            })
            .collect();
        let workers = WorkerThreads::new(config, &shards)?;
        Ok(Simulation {
            config: config.clone(),
            shards,
            workers,
            now: Time::ZERO,
            begun: false,
            end: None,
            injected: 0,
            pace: None,
            started,
            #[cfg(feature = "serde")]
            saving: None,
        })
    }

    /// Runs all events up to `time`, inclusive. Returns true if events are left after `time`. A run whose
    /// [`Config::end`] is before `time` is then over.
    pub fn run_until(&mut self, time: Time) -> bool {
        self.keep_pace(self.within(time));
        self.advance(time)
    }

    /// Runs the next window of virtual time that has events; its width is the lookahead. Returns false if no events are
    /// left, or if the run is over.
    pub fn step(&mut self) -> bool {
        loop {
            let before = self.counts();
            let Some(end) = self.end_of_next_window() else {
                return false;
            };
            let end = match self.pace {
                Some(_) => self.next().map_or(end, |next| next.max(end)),
                None => end,
            };
            self.run_until(end);
            if self.counts() != before {
                return true;
            }
            if self.end.is_some() {
                return false;
            }
        }
    }

    /// Runs until this actor has handled its next event. No actor handles a later event. Returns false if the actor has
    /// no further event, or if the run is over.
    ///
    /// Each call searches all pending events.
    pub fn step_actor(&mut self, who: Addr) -> bool {
        loop {
            let Some(end) = self.end_of_next_window() else {
                return false;
            };
            match self.next_of(who) {
                // From here on, messages of other actors arrive only in later windows.
                Some(time) if time <= end && time == self.within(time) => {
                    self.keep_pace(time);
                    let before = self.counts();
                    self.go(Before {
                        time: time.as_nanos(),
                        also: Some(who.as_u32()),
                        pauses: true,
                    });
                    self.now = self.now.max(time);
                    if self.counts() != before || self.end.is_some() {
                        return self.end.is_none();
                    }
                }
                _ => {
                    if !self.run_until(end) {
                        return false;
                    }
                }
            }
        }
    }

    /// Runs in [steps](Simulation::step), as long as the condition holds and events are left. Returns true if
    /// events are left.
    ///
    /// ```
    /// # use corsair::*;
    /// # struct Sleeper;
    /// # #[derive(Message)] struct Nothing;
    /// # impl Scenario<Nothing> for Sleeper {
    /// #     async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
    /// #         for _ in 0..100 { cx.sleep(std::time::Duration::from_millis(10)).await; }
    /// #     }
    /// # }
    /// let mut simulation = Simulation::new(&Config::default(), Sleeper)?;
    /// simulation.run_while(|simulation| simulation.report().timers < 50);
    /// assert_eq!(simulation.report().timers, 50);
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn run_while(&mut self, mut condition: impl FnMut(&mut Simulation<M>) -> bool) -> bool {
        while condition(self) {
            if !self.step() {
                break;
            }
        }
        self.end.is_none()
    }

    /// Returns the current time: all events up to it have happened, and no later ones.
    ///
    /// After [`Simulation::step_actor`], there may be further events at this instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the time of the next event; `None` if no events are left, or the run is over.
    ///
    /// The call searches all pending events.
    #[allow(
        clippy::should_implement_trait,
        reason = "a simulation is not an iterator: looking at the next event's time does not take it"
    )]
    pub fn next(&mut self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        self.shards().filter_map(|mut shard| shard.next()).min()
    }

    /// True if the run is over: its root has returned and the consequences have happened, an actor has failed, or the
    /// run was cancelled.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Injects a message without a sender ([`Addr::NONE`]) at a future time. At each instant, injected messages follow
    /// the messages of actors, and arrive in the order of injection.
    ///
    /// # Errors
    /// If that time has passed, or the run is over.
    pub fn inject(&mut self, time: Time, to: Addr, body: M) -> Result<SpanId, InjectError> {
        if self.end.is_some() {
            return Err(InjectError::Over);
        }
        if time < self.now || self.begun && time == self.now || time == Time::MAX {
            return Err(InjectError::Past {
                time,
                now: self.now,
            });
        }
        self.injected = self
            .injected
            .checked_add(1)
            .filter(|&number| number != u32::MAX)
            .ok_or(InjectError::TooMany)?;
        let number = self.injected;
        Ok(self.shard_of(to).inject(time, to, number, body))
    }

    /// Runs to the end of the run, and returns the report, like [`run`](crate::run()).
    ///
    /// # Errors
    /// Returns a [`RunError`] if the run fails.
    pub fn finish(mut self) -> Result<Report, RunError> {
        while self.end.is_none() {
            if self.pace.is_some() && self.step() {
                continue;
            }
            self.go_to_end();
        }
        let end = self.end.unwrap_or(End::Quiet);
        let config = &self.config;
        let outcomes = self
            .shards()
            .map(|mut shard| shard.finish(config, end))
            .collect();
        conclude(M::KINDS, config, self.started.elapsed(), outcomes)
    }

    /// Discards the measurements that actors have recorded so far: [`Report::probes`] contains only later ones.
    /// [`Config::warm_up`] does the same at a fixed time.
    pub fn reset_probes(&mut self) {
        self.shards().for_each(|mut shard| shard.reset_probes());
    }

    /// Records every event from here on.
    pub(crate) fn record(&mut self) {
        self.shards().for_each(|mut shard| shard.record());
    }

    /// Returns the events that were recorded since the last call, in an order that does not depend on workers.
    pub(crate) fn take_trail(&mut self) -> Vec<LoggedEvent> {
        let mut trail: Vec<_> = self
            .shards()
            .flat_map(|mut shard| shard.take_trail())
            .collect();
        trail.sort_unstable();
        trail
    }

    fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, PausableShard<M>>> {
        self.shards.iter().map(|shard| lock(shard))
    }

    /// Returns the shard of the worker that has an address.
    fn shard_of(&mut self, who: Addr) -> MutexGuard<'_, PausableShard<M>> {
        let owner = lock(&self.shards[0]).owner(who.as_u32());
        lock(&self.shards[owner])
    }

    /// Returns counters that change with every event.
    fn counts(&self) -> (u64, u64) {
        let counts = self.shards().map(|mut shard| shard.counts());
        counts.fold((0, 0), |(a, b), (x, y)| (a.wrapping_add(x), b + y))
    }

    /// Returns the last instant of the next window that has an event.
    pub(crate) fn end_of_next_window(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        let ends = self
            .shards()
            .filter_map(|mut shard| shard.end_of_next_window());
        // The window in which the run was paused may be over, except for cancelled timers that have not been removed.
        ends.min().map(|end| Time::from_nanos(end).max(self.now))
    }

    fn next_of(&self, who: Addr) -> Option<Time> {
        let next = self
            .shards()
            .filter_map(|mut shard| shard.next_of(who.as_u32()));
        next.min().map(Time::from_nanos)
    }

    /// Returns the earlier of this time and the configured end.
    fn within(&self, time: Time) -> Time {
        self.config.end.map_or(time, |end| time.min(end))
    }

    /// Runs all events up to `time`. Returns true if the run is not over.
    fn advance(&mut self, time: Time) -> bool {
        let until = self.within(time);
        if until >= self.now && self.end.is_none() {
            self.go(Before {
                time: until.as_nanos().saturating_add(1),
                also: None,
                pauses: true,
            });
            if self.end.is_none() {
                self.now = until;
            }
        }
        if time > until && self.end.is_none() {
            self.go_to_end();
        }
        self.end.is_none()
    }

    fn go_to_end(&mut self) {
        self.go(Before {
            time: u64::MAX,
            also: None,
            pauses: false,
        });
    }

    fn go(&mut self, pause: Before) {
        self.begun = true;
        let mut end = self.workers.go(&self.config, &self.shards, pause);
        if end == End::Paused && self.shards().any(|mut shard| shard.has_failed()) {
            end = End::Halted;
        }
        if end != End::Paused {
            self.end = Some(end);
            self.now = self.now.max(self.report().time);
        }
    }
}

impl<M: Message> fmt::Debug for Simulation<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.now)
            .field("is_over", &self.is_over())
            .finish_non_exhaustive()
    }
}
