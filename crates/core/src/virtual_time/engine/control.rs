//! The control of a run that can be paused, for [`Simulation`](crate::Simulation). Other runs do not use it.

use super::{End, Engine, Outcome};
use crate::contract::{Addr, Config, Message, Probes, SpanId, Spawn, Time};
use crate::virtual_time::context::Running;
use crate::virtual_time::event::{Head, Kind, Label, ScheduledEvent};
use crate::virtual_time::exchange::Exchange;
use crate::virtual_time::header::State;
#[cfg(feature = "serde")]
use crate::virtual_time::multicast::Sharing;
use crate::virtual_time::outbox::{ShardBatch, next_pending};
use crate::virtual_time::pause::{Before, Never, Pause};
use crate::virtual_time::population::{ActorView, Blueprint};
use crate::virtual_time::shard::{LoggedEvent, ROOT, Shard, ShardCell};
#[cfg(feature = "serde")]
use crate::virtual_time::travel::{Common, Kinds, SnapshotError};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// A shard and its main loop, which the owner of a simulation controls between windows.
pub(in super::super) struct PausableShard<M: Message>(pub(super) ManuallyDrop<Engine<M>>);

// SAFETY: a shard owns everything that its pointers lead to: actors, events and their memory. Messages, actors, their
// origins and wakers are `Send`. Thread-local data about a shard is set only during calls of this type's methods, which
// borrow the shard exclusively.
unsafe impl<M: Message> Send for PausableShard<M> {}

impl<M: Message> PausableShard<M> {
    /// Creates a shard without actors.
    pub(super) fn empty(config: &Config, index: usize) -> PausableShard<M> {
        let shard = Box::into_raw(Shard::new(config, index));
        // SAFETY: the shard exists until this value is dropped, after everything that uses the cell. Only the thread that
        // borrows this value uses it.
        let shard = unsafe { ShardCell::new(shard) };
        PausableShard(ManuallyDrop::new(Engine::new(shard, config.workers.get())))
    }

    /// Creates a shard in which nothing has happened yet: the root's start is its first event.
    pub(in super::super) fn new(
        config: &Config,
        index: usize,
        root: Arc<dyn Blueprint<M, Shard<M>>>,
    ) -> PausableShard<M> {
        let mut new = PausableShard::empty(config, index);
        let first = (new.0).place(Addr::NONE.as_u32(), Spawn::one("root"), root, 0);
        let shard = new.0.shard();
        if first == Some(ROOT) && shard.places.owns(ROOT) {
            let start = ScheduledEvent::bare(Head::new(0, Kind::Start, ROOT, ROOT, 0, 0));
            shard.pending.push(start);
        }
        new
    }

    /// Creates a shard. If this is the shard of the root, also starts the root.
    pub(in super::super) fn begun(
        config: &Config,
        index: usize,
        root: Arc<dyn Blueprint<M, Shard<M>>>,
    ) -> PausableShard<M> {
        let mut begun = PausableShard::empty(config, index);
        begun.as_running(|engine| engine.begin(root));
        begun
    }

    /// Runs to the end of the run.
    pub(in super::super) fn run<X: Exchange<ShardBatch<M, Shard<M>>>>(
        &mut self,
        config: &Config,
        exchange: &mut X,
    ) -> End {
        self.as_running(|engine| engine.run(config, exchange, &Never))
    }

    /// Calls `act` with this shard as the one that runs on this thread.
    pub(super) fn as_running<T>(&mut self, act: impl FnOnce(&mut Engine<M>) -> T) -> T {
        let running = Running::new(self.0.shard);
        let done = act(&mut self.0);
        drop(running);
        done
    }

    /// Runs until the run ends or pauses.
    pub(in super::super) fn go<X: Exchange<ShardBatch<M, Shard<M>>>>(
        &mut self,
        config: &Config,
        exchange: &mut X,
        pause: Before,
    ) -> End {
        self.as_running(|engine| engine.run(config, exchange, &pause))
    }

    /// Ends the run and returns this shard's outcome.
    pub(in super::super) fn finish(&mut self, config: &Config, end: End) -> Outcome {
        self.as_running(|engine| engine.finish(config, end))
    }

    /// Returns the counters of the shard so far.
    pub(in super::super) fn so_far(&mut self, config: &Config, end: End) -> Outcome {
        let totals = if config.per_actor {
            self.0.totals()
        } else {
            Vec::new()
        };
        let engine = &mut *self.0;
        Outcome {
            end,
            counters: engine.shard().counters.clone(),
            spawned: engine.spawned,
            windows: engine.windows + u64::from(engine.busy),
            next: u64::MAX,
            waiting: Vec::new(),
            totals,
            names: Vec::new(),
        }
    }

    /// True if the run must stop because of this shard.
    pub(in super::super) fn has_failed(&mut self) -> bool {
        let counters = &self.0.shard().counters;
        counters.failure.is_some() || counters.too_many
    }

    /// Restricts multicasts to messages that other processes can make, because some shards are in other
    /// processes.
    #[cfg(feature = "serde")]
    pub(in super::super) fn share_what_is_portable(&mut self) {
        let sharing = &mut self.0.shard().settings.sharing;
        if *sharing == Sharing::All {
            *sharing = Sharing::Portable;
        }
    }

    /// Starts or stops storing causes in messages.
    pub(in super::super) fn set_traces(&mut self, traces: bool) {
        self.0.shard().settings.traces = traces;
    }

    /// Drops the measurements that actors have recorded.
    pub(in super::super) fn reset_probes(&mut self) {
        self.0.shard().counters.probes = Probes::default();
    }

    /// Records every event from now on.
    pub(in super::super) fn record(&mut self) {
        let shard = self.0.shard();
        shard.trail = Some(Vec::new());
        shard.settings.attentive = true;
    }

    /// Returns the events that were recorded since the last call.
    pub(in super::super) fn take_trail(&mut self) -> Vec<LoggedEvent> {
        let trail = self.0.shard().trail.as_mut();
        trail.map(std::mem::take).unwrap_or_default()
    }

    /// Returns counters that change with every event of this shard.
    pub(in super::super) fn counts(&mut self) -> (u64, u64) {
        self.0.counts()
    }

    /// Returns the sum of the hashes of all events of this shard.
    pub(in super::super) fn digest(&mut self) -> u64 {
        self.0.shard().counters.digest
    }

    /// Returns the last instant of the next window in which this shard has an event, if there is one.
    pub(in super::super) fn end_of_next_window(&mut self) -> Option<u64> {
        let inbound = self.0.inbound_pending;
        let shard = self.0.shard();
        let bits = shard.settings.window_bits;
        let next = shard
            .next_window()
            .min(next_pending(inbound, shard.window.number));
        let next = next.min(shard.window_beyond());
        (next != u64::MAX).then(|| next << bits | ((1 << bits) - 1))
    }

    /// Returns the time of the next event of this shard's actors, or sent by them.
    pub(in super::super) fn next(&mut self) -> Option<Time> {
        self.0.shard().sweep(true);
        match self.0.earliest() {
            u64::MAX => None,
            nanos => Some(Time::from_nanos(nanos)),
        }
    }

    /// Returns the time of an actor's next event, as far as this shard knows; O(pending).
    pub(in super::super) fn next_of(&mut self, actor: u32) -> Option<u64> {
        self.0
            .earliest_of(|label| label.to == actor, |shard| shard.next_of(actor))
    }

    /// Returns the number of the shard of an address.
    pub(in super::super) fn owner(&mut self, to: u32) -> usize {
        self.0.shard().places.owner(to)
    }

    /// Returns the first address that the root has spawned, if this shard has an actor of that spawn.
    #[cfg(feature = "serde")]
    pub(in super::super) fn first_spawned(&mut self) -> Option<Addr> {
        self.0.shard().places.first_spawned_by(ROOT).map(Addr)
    }

    /// Schedules a message to an actor of this shard.
    pub(in super::super) fn inject(
        &mut self,
        time: Time,
        to: Addr,
        sequence: u32,
        body: M,
    ) -> SpanId {
        let shard = self.0.shard();
        shard.inject(time.as_nanos(), to.as_u32(), sequence, body)
    }

    /// Returns a view of an actor, valid until the shard is used again.
    pub(in super::super) fn look(&mut self, who: Addr) -> Option<ActorView<'_>> {
        let engine = &mut *self.0;
        let number = engine.shard().places.population(who.as_u32())?;
        let population = engine.populations.get(number)?;
        // SAFETY: no actor runs or ends while this value is borrowed.
        unsafe { population.look(who.as_u32()) }
    }

    /// Returns an actor's name, if this shard knows it.
    pub(in super::super) fn name(&mut self, who: Addr) -> String {
        self.0.shard().places.name_of(who.as_u32())
    }

    /// Returns the state that all shards agree on, for saving.
    #[cfg(feature = "serde")]
    pub(in super::super) fn common(&mut self) -> Common {
        self.0.common()
    }

    /// Writes the state of this shard, and the state of the process unless another shard writes the state of the
    /// process.
    #[cfg(feature = "serde")]
    pub(in super::super) fn save(
        &mut self,
        kinds: &Kinds<M>,
        with_state: bool,
    ) -> Result<Vec<u8>, SnapshotError> {
        self.as_running(|engine| engine.save(kinds, with_state))
    }

    /// Returns the actors of this shard that have begun and not ended, in the order of addresses.
    pub(in super::super) fn actors(&mut self) -> Vec<Addr> {
        let known: Vec<_> = self.0.shard().places.actors().collect();
        let live = known.into_iter().filter(|&(who, _)| {
            let seen = self.look(Addr(who));
            seen.is_some_and(|seen| seen.state == State::Live)
        });
        live.map(|(who, _)| Addr(who)).collect()
    }
}

impl<M: Message> Drop for PausableShard<M> {
    fn drop(&mut self) {
        // Drops undelivered messages while the shard still exists, because destructors may use it.
        self.as_running(Engine::clear);
        let shard = self.0.shard;
        // SAFETY: neither the engine nor the shard is used again.
        unsafe {
            ManuallyDrop::drop(&mut self.0);
            drop(Box::from_raw(shard.as_ptr()));
        }
    }
}

impl<M: Message> Engine<M> {
    /// Takes the events after the pause out of the next window.
    #[cold]
    pub(super) fn set_aside<P: Pause>(&mut self, pause: &P) {
        let base = self.shard().window.base;
        let mut pending = Vec::new();
        let time = |label: &Label| base + label.offset() as u64;
        let also = pause.also().and_then(|who| {
            let events = self
                .order
                .events()
                .iter()
                .map(|event| (*event.label(), *event));
            let first =
                events.filter(|(label, _)| label.to == who && time(label) == pause.before());
            // If the actor has several such events, the earliest one is returned.
            first.min_by_key(|(label, _)| label.order())
        });
        let also = also.map(|(_, event)| event);
        self.order.retain(|event| {
            let time = time(event.label());
            let stays = time < pause.before() || also == Some(event);
            if !stays {
                // SAFETY: the event has not been moved out, and is moved out once, because `order` does not retain it.
                pending.push(unsafe { event.read(time) });
            }
            stays
        });
        self.shard().pending.append(&mut pending);
    }

    /// Returns the time of the first matching event, as far as this shard knows; O(pending).
    fn earliest_of(
        &mut self,
        wanted: impl Fn(&Label) -> bool,
        more: impl FnOnce(&mut Shard<M>) -> Option<u64>,
    ) -> Option<u64> {
        let near = self.near(wanted);
        near.into_iter().chain(more(self.shard())).min()
    }
}
