//! Saves a run while it is paused, and restores it in this process or another.

use super::workers::WorkerThreads;
use super::{Simulation, lock};
use crate::contract::{Config, Kind, Message, RunError, Script, Time};
use crate::sync::Stopwatch;
use crate::virtual_time::actor_table::ActorTable;
use crate::virtual_time::context;
use crate::virtual_time::engine::PausableShard;
use crate::virtual_time::on_threads;
use crate::virtual_time::population::Blueprint;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::travel::{Head, Kinds, Share, Snapshot, SnapshotError, shares};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The data that a simulation needs to be saved.
pub(super) struct Saving<M: Message> {
    kinds: Kinds<M>,
    /// The seed of random numbers: a branch has another seed than its trunk.
    stream_seed: u64,
}

impl<M: Message> Simulation<M> {
    /// Creates a run whose root is a script of this kind. It can be saved if all its actors are spawned by
    /// kind.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::new`].
    ///
    /// # Panics
    /// If the root's kind is not in `kinds`.
    pub fn with_kinds<S: Kind + Script<M>>(
        config: &Config,
        kinds: &Kinds<M>,
        parameters: S::Parameters,
        local: S::Local,
    ) -> Result<Simulation<M>, RunError> {
        assert!(
            kinds.names().any(|name| name == S::NAME),
            "the root's kind `{}` is not among the given kinds",
            S::NAME
        );
        let root: Arc<dyn Blueprint<M, Shard<M>>> =
            Arc::new(context::scripts::<M, S>(Some(parameters), local));
        let mut simulation = Simulation::from_root(config, root)?;
        simulation.saving = Some(Saving {
            kinds: kinds.clone(),
            stream_seed: config.seed,
        });
        Ok(simulation)
    }

    /// Saves the complete run: actors, pending messages, timers, random streams and counters. The run then
    /// continues unchanged. Each worker writes its own part.
    ///
    /// ```
    /// use corsair::{Config, Context, Event, Kind, Kinds, Message, Script, Simulation, Time, Wait};
    /// use serde::{Deserialize, Serialize};
    /// use std::num::NonZeroUsize;
    /// use std::time::Duration;
    ///
    /// #[derive(Message, Serialize, Deserialize)]
    /// struct Tick(u32);
    ///
    /// /// Sends itself ten numbers.
    /// #[derive(Clone, Serialize, Deserialize, Kind)]
    /// #[kind(name = "clock")]
    /// struct Clock { ticks: u32 }
    ///
    /// impl Script<Tick> for Clock {
    ///     fn resume<C: Context<Tick>>(&mut self, _: Option<Event<Tick>>, cx: &mut C) -> Wait {
    ///         if self.ticks == 10 {
    ///             return Wait::End;
    ///         }
    ///         let me = cx.me();
    ///         cx.send(me, Tick(self.ticks));
    ///         self.ticks += 1;
    ///         Wait::Sleep(Duration::from_secs(1))
    ///     }
    /// }
    ///
    /// let kinds = Kinds::new().with_script::<Clock>(());
    /// let config = Config::default();
    /// let mut run = Simulation::with_kinds::<Clock>(&config, &kinds, Clock { ticks: 0 }, ())?;
    /// run.run_until(Time::ZERO.after(Duration::from_secs(4)));
    /// let snapshot = run.snapshot()?;
    ///
    /// let two = Config { workers: NonZeroUsize::new(2).expect("it is not 0"), ..config };
    /// let elsewhere = Simulation::restore(&two, &kinds, &snapshot)?;
    /// assert_eq!(elsewhere.finish()?.digest, run.finish()?.digest);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`SnapshotError::NoKind`] with an actor that was not spawned by kind, or another [`SnapshotError`].
    pub fn snapshot(&mut self) -> Result<Snapshot, SnapshotError> {
        if self.end.is_some() {
            return Err(SnapshotError::Over);
        }
        let Some(saving) = &self.saving else {
            let who = crate::Addr::from_u32(crate::virtual_time::shard::ROOT);
            let name = self.name(who);
            return Err(SnapshotError::NoKind { who, name });
        };
        let common = lock(&self.shards[0]).common();
        let (now, injected) = (self.now.as_nanos(), self.injected);
        let head = Head::new::<M>(&self.config, now, injected, saving.stream_seed, common);
        let save = |index: usize| lock(&self.shards[index]).save(&saving.kinds, index == 0);
        let parts = on_threads(&self.config, self.shards.len(), || (), save)?;
        let parts = parts.into_iter().collect::<Result<_, _>>()?;
        Snapshot::new(&head, parts).map_err(|error| SnapshotError::corrupt(0, error))
    }

    /// Restores a saved run, with any number of workers, in this process or another. `kinds` must be those of the
    /// program that saved it. The result equals the result that the saved run would have had. The configuration must be
    /// equal, except for the number of workers.
    ///
    /// # Errors
    /// Returns a [`SnapshotError`] if the run cannot be restored.
    pub fn restore(
        config: &Config,
        kinds: &Kinds<M>,
        snapshot: &Snapshot,
    ) -> Result<Simulation<M>, SnapshotError> {
        config.check_for::<M>().map_err(RunError::from)?;
        let config = &config.with_network();
        let started = Stopwatch::start();
        let head = snapshot.read_head()?;
        let shards = restored(config, kinds, snapshot, 0..config.workers.get())?;
        let shards: Vec<_> = shards
            .into_iter()
            .map(|shard| Arc::new(Mutex::new(shard)))
            .collect();
        let workers = WorkerThreads::new(config, &shards)?;
        Ok(Simulation {
            config: config.clone(),
            shards,
            workers,
            now: Time::from_nanos(head.now),
            begun: head.now != 0,
            end: None,
            injected: head.injected,
            pace: None,
            started,
            saving: Some(Saving {
                kinds: kinds.clone(),
                stream_seed: head.stream_seed,
            }),
        })
    }
}

/// Restores one shard for each worker from the parts of any number of workers.
pub(in super::super) fn restored<M: Message>(
    config: &Config,
    kinds: &Kinds<M>,
    snapshot: &Snapshot,
    wanted: Range<usize>,
) -> Result<Vec<PausableShard<M>>, SnapshotError> {
    let head = snapshot.read_head()?;
    head.check::<M>(config)?;
    let count = config.workers.get();
    let places = ActorTable::new(0, count);
    let shares = shares(snapshot, count, wanted.clone(), |at| places.owner(at))?;
    let shares = shares.into_iter();
    let shares: Vec<_> = shares.map(|share| Mutex::new(Some(share))).collect();
    let make = |index: usize| {
        let share: Option<Share> = lock(&shares[index]).take();
        let share = share.expect("each shard takes its own share");
        PausableShard::restored(config, wanted.start + index, &head, kinds, share)
    };
    let made = on_threads(config, wanted.len(), || (), make)?;
    made.into_iter().collect()
}
