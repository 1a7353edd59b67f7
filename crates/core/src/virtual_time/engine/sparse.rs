//! Sparse windows, run one after the other by the thread that has borrowed all shards.
//!
//! Between such windows shards need no barrier and no exchange: messages are written where the receiver's shard reads
//! them. The end of the run, pauses, spawns and everything else that concerns all shards are left to the [main
//! loop](super).

use super::Engine;
use super::actor_cache::ActorCache;
use super::borrowed_shards::{BorrowedShard, JoinedQueues, PendingWindows};
use super::density::Density;
use super::window::{run_event, run_order};
use crate::contract::{Config, Message};
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::context::Running;
use crate::virtual_time::outbox::{OutboxCell, RING};
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::{Shard, ShardCell};
use crate::virtual_time::stored_event::{EventPtr, FewEvents};

/// The maximum number of events of a window that are sorted in place.
pub(super) const FEW: usize = 8;

/// The progress of the thread through the windows.
#[derive(Clone, Copy)]
struct Progress {
    /// The first window that may reach the limit or the pause.
    bound: u64,
    window_bits: u32,
    /// The window that was begun last.
    window: u64,
    /// The number of windows with events, except the current one.
    windows: u64,
    /// True if the window had events.
    busy: bool,
    /// True if the shards must synchronise, or windows are dense.
    stops: bool,
    density: Density,
}

impl Progress {
    #[inline(always)]
    fn begin(&mut self, window: u64, config: &Config) {
        self.windows += u64::from(self.busy);
        self.busy = false;
        self.window = window;
        self.stops = config.cancel.is_cancelled();
        config.progress.reached(window << self.window_bits);
    }

    #[inline(always)]
    fn note<const ALONE: bool>(&mut self, done: &WindowResult) {
        self.busy |= done.busy;
        self.stops |= done.concerns_all;
        if !ALONE {
            self.stops |= self.density.is_dense_after(done.events);
        }
    }
}

/// Runs windows as long as each concerns only actors, and, unless the shard is `ALONE`, until windows are
/// dense again.
///
/// `borrowed` are all shards of the run in their order. They have absorbed everything that was handed over to them, and
/// the first one runs on this thread.
pub(super) fn run_sparse<M: Message, P: Pause, const ALONE: bool>(
    borrowed: &mut [BorrowedShard<'_, M>],
    density: &mut Density,
    config: &Config,
    pause: &P,
) {
    for one in &mut *borrowed {
        one.cache = ActorCache::new();
        if !one.shard.with(|shard| shard.is_undisturbed()) {
            return;
        }
    }
    let mut progress = borrowed[0].shard.with(|shard| Progress {
        bound: shard.window.limit.min(pause.before()) >> shard.settings.window_bits,
        window_bits: shard.settings.window_bits,
        window: shard.window.number,
        windows: 0,
        busy: false,
        stops: false,
        density: *density,
    });
    // SAFETY: `borrowed` are all shards of the run, and stay borrowed until the queues are parted below.
    let joined = (!ALONE).then(|| unsafe { JoinedQueues::new(borrowed) });
    let mut next = u64::MAX;
    for one in &mut *borrowed {
        if P::EVER {
            one.engine.set_spawns_wait(pause);
        }
        one.shard.with(|shard| shard.window.scattered = false);
        one.look(progress.window);
        next = next.min(one.ahead.next);
    }
    if next >= progress.bound {
        return;
    }
    // The events of the last window before this loop have not been reported yet.
    for one in &mut *borrowed {
        progress.busy |= std::mem::take(&mut one.engine.busy);
    }
    if ALONE {
        let bound = progress.bound;
        run_on::<M, P, true>(borrowed, 0, bound, &mut progress, config, pause);
    } else {
        let mut running = Running::new(borrowed[0].shard);
        progress = run_in_turn(borrowed, &mut running, progress, config, pause);
    }
    drop(joined);
    *density = progress.density;
    for one in &mut *borrowed {
        let engine = &mut *one.engine;
        engine.windows += progress.windows;
        engine.counted = false;
        engine.order.clear();
        one.shard.with(|shard| {
            shard.leave();
            if shard.window.number < progress.window {
                shard.go_to(progress.window);
            }
        });
    }
    borrowed[0].engine.busy = progress.busy;
}

/// The result of a window.
#[derive(Default)]
struct WindowResult {
    /// The number of events.
    events: u64,
    /// True if the window had events.
    busy: bool,
    /// True if the shards must synchronise.
    concerns_all: bool,
}

/// Runs windows of one shard, up to the window `until`, in which another shard has an event. Stops earlier if the shard
/// sends an event to another shard. The shard's next window is before `until`.
#[inline(always)]
fn run_on<M: Message, P: Pause, const ALONE: bool>(
    borrowed: &mut [BorrowedShard<'_, M>],
    at: usize,
    until: u64,
    progress: &mut Progress,
    config: &Config,
    pause: &P,
) {
    let one = &mut borrowed[at];
    // Copies, so that the compiler can hold them in registers.
    let (shard, own, mut ahead) = (one.shard, one.own, one.ahead);
    let (engine, cache) = (&mut *one.engine, &mut one.cache);
    loop {
        let window = ahead.next;
        progress.begin(window, config);
        let done = run_own(engine, shard, own, ahead, cache, pause);
        progress.note::<ALONE>(&done);
        ahead.look(engine, own, window);
        if !ALONE && shard.with(|shard| std::mem::take(&mut shard.queues.has_sent)) {
            one.ahead = ahead;
            return pass_on(borrowed, window);
        }
        if ahead.next >= until || progress.stops {
            one.ahead = ahead;
            return;
        }
    }
}

/// Runs windows of several shards, whose queues are joined. `running` is for one of the shards. Returns the new progress.
fn run_in_turn<M: Message, P: Pause>(
    borrowed: &mut [BorrowedShard<'_, M>],
    running: &mut Running,
    mut progress: Progress,
    config: &Config,
    pause: &P,
) -> Progress {
    while !progress.stops {
        // The first window with events, the index of its shard, and the first window in which another shard has
        // events.
        let (mut first, mut at, mut second) = (u64::MAX, 0, progress.bound);
        for (index, one) in borrowed.iter().enumerate() {
            let next = one.ahead.next;
            if next < first {
                (second, first, at) = (first.min(second), next, index);
            } else {
                second = second.min(next);
            }
        }
        if first >= progress.bound {
            break;
        }
        if first < second {
            running.go_to(borrowed[at].shard);
            run_on::<M, P, false>(borrowed, at, second, &mut progress, config, pause);
        } else {
            progress.begin(first, config);
            let done = run_together(borrowed, running, first, pause);
            progress.note::<false>(&done);
        }
    }
    progress
}

/// Runs a window for which several shards have events. Returns the highest number of events of a shard.
#[inline(never)]
fn run_together<M: Message, P: Pause>(
    borrowed: &mut [BorrowedShard<'_, M>],
    running: &mut Running,
    window: u64,
    pause: &P,
) -> WindowResult {
    let mut all = WindowResult::default();
    for one in &mut *borrowed {
        if one.ahead.next != window {
            continue;
        }
        running.go_to(one.shard);
        let done = run_own(
            one.engine,
            one.shard,
            one.own,
            one.ahead,
            &mut one.cache,
            pause,
        );
        all.events = all.events.max(done.events);
        all.busy |= done.busy;
        all.concerns_all |= done.concerns_all;
        one.look(window);
    }
    for one in &*borrowed {
        one.shard.with(|shard| shard.queues.has_sent = false);
    }
    pass_on(borrowed, window);
    all
}

/// Updates the pending windows of all shards, which may have received events from this window. No event is due before the
/// next window.
#[inline(always)]
fn pass_on<M: Message>(borrowed: &mut [BorrowedShard<'_, M>], window: u64) {
    for one in borrowed {
        if one.own.with(|own| !own.far.is_empty()) {
            one.take_far(window);
        }
        one.ahead.look_first(one.own, window);
    }
}

/// Runs a window of one shard that has events in it.
#[inline(always)]
fn run_own<M: Message, P: Pause>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    own: OutboxCell<M>,
    ahead: PendingWindows,
    cache: &mut ActorCache<M>,
    pause: &P,
) -> WindowResult {
    let window = ahead.next;
    let place = (window % RING) as usize;
    shard.with(|shard| shard.go_to(window));
    let sent = own.with(|own| own.pending >> place & 1 == 1);
    if sent && ahead.later > window {
        let taken = own.with(|own| {
            let taken = own.ring[place].take_only();
            if taken.is_some() {
                own.pending &= !(1 << place);
            }
            taken
        });
        if let Some((event, spent)) = taken {
            let before = engine.counts();
            // SAFETY: the event was in the shard's own outbox and has not been moved out. Its memory is in `spent`. The
            // cache is cleared whenever the shard removes actors.
            unsafe { run_event(shard, cache, &engine.populations, event) };
            shard.with(|shard| shard.queues.pool().put(spent));
            return close(engine, shard, cache, 1, before);
        }
    } else if !sent && ahead.only_timers {
        if !shard.with(|shard| shard.queues.timers.is_due()) {
            return WindowResult::default();
        }
        let timer = shard.with(|shard| {
            let timer = shard.queues.timers.take_only()?;
            Some((timer, (timer.time - shard.window.base) as u32))
        });
        if let Some((timer, offset)) = timer {
            let spaces = &engine.event_spaces;
            let event = spaces.set_timer(0, offset, timer.actor, timer.token);
            let before = engine.counts();
            // SAFETY: the timer was set by an actor of this shard, and was just written to the engine's memory. The cache
            // is cleared whenever the shard removes actors.
            unsafe { run_event(shard, cache, &engine.populations, event) };
            return close(engine, shard, cache, 1, before);
        }
    }
    run_several(engine, shard, own, cache, place, pause)
}

/// Runs a window of one shard with any number and kind of events.
#[inline(never)]
fn run_several<M: Message, P: Pause>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    own: OutboxCell<M>,
    cache: &mut ActorCache<M>,
    place: usize,
    pause: &P,
) -> WindowResult {
    let inbound = engine.inbound_pending >> place & 1 == 1;
    if !inbound
        && !shard.with(|shard| shard.queues.far.is_due())
        && let Some(done) = run_few(engine, shard, own, cache, place)
    {
        return done;
    }
    run_many(engine, shard, cache, pause)
}

/// Updates the counters after a window with `events` events; `before` are the counters before it.
#[inline(always)]
fn close<M: Message>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    cache: &mut ActorCache<M>,
    events: u64,
    before: (u64, u64),
) -> WindowResult {
    let notable = shard.with(|shard| {
        let notable = shard.notable || shard.waits_are_many();
        debug_assert!(notable || !shard.concerns_all() && !shard.places.has_ended());
        notable
    });
    WindowResult {
        events,
        busy: engine.counts() != before,
        concerns_all: notable && close_notable(engine, shard, cache),
    }
}

/// Updates the counters like [`close`], for a window in which an actor has ended or failed, or a spawn or multicast was
/// requested. Returns true if all shards must synchronise.
#[inline(never)]
fn close_notable<M: Message>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    cache: &mut ActorCache<M>,
) -> bool {
    let has_ended = shard.with(|shard| {
        shard.notable = false;
        let has_ended = shard.places.has_ended();
        if has_ended {
            shard.leave();
        }
        has_ended
    });
    if has_ended {
        engine.forget_ended();
        *cache = ActorCache::new();
    }
    shard.with(|shard| {
        shard.sweep(false);
        shard.concerns_all()
    })
}

/// Runs a window of one shard, unless it has more than a few events. All of its events are in the shard's own
/// buffer of this window.
#[inline(never)]
fn run_few<M: Message>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    own: OutboxCell<M>,
    cache: &mut ActorCache<M>,
    place: usize,
) -> Option<WindowResult> {
    let mut few = FewEvents::<M, FEW>::new();
    let sent = own.with(|own| own.pending >> place & 1 == 1);
    if sent {
        // SAFETY: the chunk goes to `spent`, where it stays until the events have been handled.
        own.with(|own| unsafe { own.ring[place].try_each(|event| few.push(event)) })?;
    }
    let timers = shard.with(|shard| match shard.queues.timers.is_due() {
        true => shard.queues.timers.few_due(),
        false => Some(0),
    })?;
    if few.len() + timers > FEW {
        return None;
    }
    // From here on, the events are moved out one by one. Events that are not reached, because of a panic, are
    // leaked.
    let spent = sent.then(|| {
        own.with(|own| {
            own.pending &= !(1 << place);
            std::mem::replace(&mut own.ring[place], Buffer::new()).into_free_chunks()
        })
    });
    if timers > 0 {
        let spaces = &engine.event_spaces;
        shard.with(|shard| {
            let base = shard.window.base;
            shard.queues.timers.drain(|timer| {
                let offset = (timer.time - base) as u32;
                let event = spaces.set_timer(few.len(), offset, timer.actor, timer.token);
                few.push(event);
            });
        });
    }
    let order = few.as_mut_slice();
    sort(order);
    let before = engine.counts();
    // SAFETY: the events were sent to actors of this shard, or are timers that they have set. They have not been moved
    // out, and their memory is in `spent` and in the engine.
    unsafe { run_order(shard, &engine.populations, order) };
    if let Some(spent) = spent {
        shard.with(|shard| shard.queues.pool().put(spent));
    }
    let events = order.len() as u64;
    Some(close(engine, shard, cache, events, before))
}

/// Sorts a few events; events of one receiver become adjacent. The sort is stable.
#[inline(always)]
fn sort<M>(events: &mut [EventPtr<M>]) {
    for i in 1..events.len() {
        let mut j = i;
        while j > 0 && !events[j - 1].is_before(events[j]) {
            events.swap(j - 1, j);
            j -= 1;
        }
    }
}

/// Runs a window of one shard like [`run_few`], but with many events.
#[inline(never)]
fn run_many<M: Message, P: Pause>(
    engine: &mut Engine<M>,
    shard: ShardCell<M>,
    cache: &mut ActorCache<M>,
    pause: &P,
) -> WindowResult {
    engine.counted = false;
    engine.gather_window(shard.with(|shard| shard.window.number));
    engine.run_gathered(pause);
    *cache = ActorCache::new();
    let concerns_all = shard.with(|shard| {
        shard.window.scattered = false;
        shard.notable = false;
        shard.sweep(false);
        shard.concerns_all()
    });
    WindowResult {
        events: engine.order.events().len() as u64,
        busy: std::mem::take(&mut engine.busy),
        concerns_all,
    }
}

impl<M: Message> Shard<M> {
    /// True if all shards must synchronise, because of a spawn, a multicast, the root's end or a failure.
    fn concerns_all(&self) -> bool {
        let counters = &self.counters;
        !self.spawns.is_empty()
            || !self.multicasts.is_empty()
            || counters.root_end != u64::MAX
            || counters.failure.is_some()
            || counters.too_many
    }

    /// True if the next window needs no special treatment.
    fn is_undisturbed(&self) -> bool {
        let out = self.queues.out();
        !self.concerns_all()
            && self.has_deferred_nothing()
            && out.iter().all(|out| out.far.is_empty())
    }
}
