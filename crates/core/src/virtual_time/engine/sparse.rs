//! Sparse windows, run one after the other by the thread that has borrowed all shards.
//!
//! Between such windows shards need no barrier and no exchange: messages are written where the receiver's shard reads
//! them. The end of the run, pauses, spawns and everything else that concerns all shards are left to the [main
//! loop](super).

use super::actor_cache::ActorCache;
use super::borrowed_shards::{BorrowedShard, JoinedQueues, PendingWindows, ShardPointers};
use super::density::Density;
use super::window::{run_event, run_order};
use crate::contract::{Config, Message};
use crate::virtual_time::buffer::Buffer;
use crate::virtual_time::context::Running;
use crate::virtual_time::outbox::RING;
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::stored_event::{EventSpace, StoredEvent};
use std::ptr::{NonNull, null_mut};

/// The maximum number of events of a window that are sorted in place.
const FEW: usize = 8;

/// Memory for the events of a few timers, outside of all buffers. It is a separate allocation, so that no borrow of the
/// engine covers it.
pub(super) struct EventSpaces<M>(NonNull<[EventSpace<M>; FEW]>);

impl<M> EventSpaces<M> {
    pub(super) fn new() -> EventSpaces<M> {
        let event_spaces = Box::into_raw(Box::new([const { EventSpace::new() }; FEW]));
        EventSpaces(NonNull::new(event_spaces).expect("a box is not null"))
    }

    fn place(&self, number: usize) -> *mut u8 {
        assert!(number < FEW);
        self.0
            .as_ptr()
            .cast::<EventSpace<M>>()
            .wrapping_add(number)
            .cast()
    }
}

impl<M> Drop for EventSpaces<M> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, which is recreated only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

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
/// # Safety
/// The calling thread owns all shards of the run and holds no reference to any of them. `borrowed` contains the
/// borrowed shards in their order. They have absorbed everything that was handed over to them, and the first one runs
/// on this thread.
pub(super) unsafe fn run_sparse<M: Message, P: Pause, const ALONE: bool>(
    borrowed: &mut [BorrowedShard<M>],
    density: &mut Density,
    config: &Config,
    pause: &P,
) {
    // SAFETY: the thread has borrowed all shards. Each reference ends with its expression, or before actors run.
    unsafe {
        for one in &mut *borrowed {
            one.at.shard = (*one.at.engine).shard;
            one.at.own = (*one.at.shard).queues.own().as_ptr();
            one.cache = ActorCache::new();
            if !(*one.at.shard).is_undisturbed() {
                return;
            }
        }
        let window = &(*borrowed[0].at.shard).window;
        let bits = (*borrowed[0].at.shard).settings.window_bits;
        let mut progress = Progress {
            bound: window.limit.min(pause.before()) >> bits,
            window_bits: bits,
            window: window.number,
            windows: 0,
            busy: false,
            stops: false,
            density: *density,
        };
        let joined = (!ALONE).then(|| JoinedQueues::new(borrowed));
        let mut next = u64::MAX;
        for one in &mut *borrowed {
            if P::EVER {
                (*one.at.engine).set_spawns_wait(pause);
            }
            (*one.at.shard).window.scattered = false;
            one.ahead.look(one.at, progress.window);
            next = next.min(one.ahead.next);
        }
        if next >= progress.bound {
            return;
        }
        // The events of the last window before this loop have not been reported yet.
        for one in &mut *borrowed {
            progress.busy |= std::mem::take(&mut (*one.at.engine).busy);
        }
        if ALONE {
            let bound = progress.bound;
            run_on::<M, P, true>(borrowed, 0, bound, &mut progress, config, pause);
        } else {
            let mut running = Running::new(borrowed[0].at.shard);
            progress = run_in_turn(borrowed, &mut running, progress, config, pause);
        }
        drop(joined);
        *density = progress.density;
        for one in &mut *borrowed {
            let engine = &mut *one.at.engine;
            engine.windows += progress.windows;
            engine.counted = false;
            engine.order.clear();
            let shard = engine.shard();
            shard.leave();
            if shard.window.number < progress.window {
                shard.go_to(progress.window);
            }
        }
        (*borrowed[0].at.engine).busy = progress.busy;
    }
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
/// sends an event to another shard.
///
/// # Safety
/// As for [`run_sparse`]; the shard's next window is before `until`.
#[inline(always)]
unsafe fn run_on<M: Message, P: Pause, const ALONE: bool>(
    borrowed: &mut [BorrowedShard<M>],
    at: usize,
    until: u64,
    progress: &mut Progress,
    config: &Config,
    pause: &P,
) {
    // SAFETY: the thread has borrowed all shards. Each reference ends with its expression, or before actors run.
    unsafe {
        let one = &mut borrowed[at];
        // Copies, so that the compiler can hold them in registers.
        let (at, mut ahead) = (one.at, one.ahead);
        loop {
            let window = ahead.next;
            progress.begin(window, config);
            let done = run_own(at, ahead, &mut one.cache, pause);
            progress.note::<ALONE>(&done);
            ahead.look(at, window);
            if !ALONE && (*at.shard).queues.has_sent {
                (*at.shard).queues.has_sent = false;
                one.ahead = ahead;
                return pass_on(borrowed, window);
            }
            if ahead.next >= until || progress.stops {
                one.ahead = ahead;
                return;
            }
        }
    }
}

/// Runs windows of several shards. Returns the new progress.
///
/// # Safety
/// As for [`run_sparse`]; `running` is for one of the shards, and their queues are joined.
unsafe fn run_in_turn<M: Message, P: Pause>(
    borrowed: &mut [BorrowedShard<M>],
    running: &mut Running,
    mut progress: Progress,
    config: &Config,
    pause: &P,
) -> Progress {
    // SAFETY: the thread has borrowed all shards. Each reference ends with its expression, or before actors run.
    unsafe {
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
                running.go_to(borrowed[at].at.shard);
                run_on::<M, P, false>(borrowed, at, second, &mut progress, config, pause);
            } else {
                progress.begin(first, config);
                let done = run_together(borrowed, running, first, pause);
                progress.note::<false>(&done);
            }
        }
    }
    progress
}

/// Runs a window for which several shards have events. Returns the highest number of events of a shard.
///
/// # Safety
/// As for [`run_in_turn`].
#[inline(never)]
unsafe fn run_together<M: Message, P: Pause>(
    borrowed: &mut [BorrowedShard<M>],
    running: &mut Running,
    window: u64,
    pause: &P,
) -> WindowResult {
    let mut all = WindowResult::default();
    // SAFETY: the thread has borrowed all shards. Each reference ends with its expression, or before actors run.
    unsafe {
        for one in &mut *borrowed {
            if one.ahead.next != window {
                continue;
            }
            running.go_to(one.at.shard);
            let done = run_own(one.at, one.ahead, &mut one.cache, pause);
            all.events = all.events.max(done.events);
            all.busy |= done.busy;
            all.concerns_all |= done.concerns_all;
            one.ahead.look(one.at, window);
        }
        for one in &*borrowed {
            (*one.at.shard).queues.has_sent = false;
        }
        pass_on(borrowed, window);
    }
    all
}

/// Updates the pending windows of all shards, which may have received events from this window.
///
/// # Safety
/// As for [`run_in_turn`]; no event is due before the next window.
#[inline(always)]
unsafe fn pass_on<M: Message>(borrowed: &mut [BorrowedShard<M>], window: u64) {
    for one in borrowed {
        // SAFETY: the thread has borrowed all shards, and no code writes to their outboxes here. Each reference ends
        // with its expression.
        unsafe {
            let own = &*one.at.own;
            if !own.far.is_empty() {
                one.take_far(window);
            }
            one.ahead.look_first(one.at, window);
        }
    }
}

/// Runs a window of one shard that has events in it.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(always)]
unsafe fn run_own<M: Message, P: Pause>(
    at: ShardPointers<M>,
    ahead: PendingWindows,
    cache: &mut ActorCache<M>,
    pause: &P,
) -> WindowResult {
    let ShardPointers { engine, shard, own } = at;
    let window = ahead.next;
    let place = (window % RING) as usize;
    // SAFETY: the thread has borrowed the shard with its engine and outbox. Each reference ends with its expression, or
    // before actors run.
    unsafe {
        (*shard).go_to(window);
        let sent = (*own).pending >> place & 1 == 1;
        if sent && ahead.later > window {
            if let Some((event, spent)) = (&mut (*own).ring)[place].take_only() {
                (*own).pending &= !(1 << place);
                let before = (*engine).counts();
                run_event(shard, cache, &(*engine).populations, event);
                (*shard).queues.pool().put(spent);
                return close(at, cache, 1, before);
            }
        } else if !sent && ahead.only_timers {
            let timers = &mut (*shard).queues.timers;
            if !timers.is_due() {
                return WindowResult::default();
            }
            if let Some(timer) = timers.take_only() {
                let space = (*engine).event_spaces.place(0);
                let offset = (timer.time - (*shard).window.base) as u32;
                StoredEvent::<M>::write_timer(space, offset, timer.actor, timer.token);
                let before = (*engine).counts();
                run_event(shard, cache, &(*engine).populations, space.cast());
                return close(at, cache, 1, before);
            }
        }
        run_several(at, cache, place, pause)
    }
}

/// Runs a window of one shard with any number and kind of events.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(never)]
unsafe fn run_several<M: Message, P: Pause>(
    at: ShardPointers<M>,
    cache: &mut ActorCache<M>,
    place: usize,
    pause: &P,
) -> WindowResult {
    let ShardPointers { engine, shard, .. } = at;
    // SAFETY: the thread has borrowed the shard with its engine and outbox. Each reference ends with its expression, or
    // before actors run.
    unsafe {
        let inbound = (*engine).inbound_pending >> place & 1 == 1;
        if !inbound
            && !(*shard).queues.far.is_due()
            && let Some(done) = run_few(at, cache, place)
        {
            return done;
        }
        run_many(at, cache, pause)
    }
}

/// Updates the counters after a window with `events` events; `before` are the counters before it.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(always)]
unsafe fn close<M: Message>(
    at: ShardPointers<M>,
    cache: &mut ActorCache<M>,
    events: u64,
    before: (u64, u64),
) -> WindowResult {
    // SAFETY: the thread has borrowed the shard with its engine. Each reference ends with its expression, or before
    // actors run.
    unsafe {
        let ShardPointers { engine, shard, .. } = at;
        let notable = (*shard).notable || (*shard).waits_are_many();
        debug_assert!(notable || !(*shard).concerns_all() && !(*shard).places.has_ended());
        WindowResult {
            events,
            busy: (*engine).counts() != before,
            concerns_all: notable && close_notable(at, cache),
        }
    }
}

/// Updates the counters like [`close`], for a window in which an actor has ended or failed, or a spawn or multicast was
/// requested. Returns true if all shards must synchronise.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(never)]
unsafe fn close_notable<M: Message>(at: ShardPointers<M>, cache: &mut ActorCache<M>) -> bool {
    let ShardPointers { engine, shard, .. } = at;
    // SAFETY: the thread has borrowed the shard with its engine. Each reference ends with its expression, or before
    // actors run.
    unsafe {
        (*shard).notable = false;
        if (*shard).places.has_ended() {
            (*shard).leave();
            (*engine).forget_ended();
            *cache = ActorCache::new();
        }
        (*shard).sweep(false);
        (*shard).concerns_all()
    }
}

/// Runs a window of one shard, unless it has more than a few events. All of its events are in the shard's own
/// buffer of this window.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(never)]
unsafe fn run_few<M: Message>(
    at: ShardPointers<M>,
    cache: &mut ActorCache<M>,
    place: usize,
) -> Option<WindowResult> {
    let ShardPointers { engine, shard, own } = at;
    let mut few = [null_mut::<StoredEvent<M>>(); FEW];
    // SAFETY: the thread has borrowed the shard with its engine and outbox. Each reference ends with its expression, or
    // before actors run.
    unsafe {
        let mut count = 0;
        let sent = (*own).pending >> place & 1 == 1;
        if sent {
            count = (&(*own).ring)[place].append_few(&mut few, count)?;
        }
        let timers = match (*shard).queues.timers.is_due() {
            true => (*shard).queues.timers.few_due()?,
            false => 0,
        };
        if count + timers > FEW {
            return None;
        }
        let mut spent = None;
        if sent {
            (*own).pending &= !(1 << place);
            // From here on, the events are moved out one by one. Events that are not reached, because of a panic, are
            // leaked.
            let buffer = std::mem::replace(&mut (&mut (*own).ring)[place], Buffer::new());
            spent = Some(buffer.into_free_chunks());
        }
        if timers > 0 {
            let base = (*shard).window.base;
            (*shard).queues.timers.drain(|timer| {
                let space = (*engine).event_spaces.place(count);
                let offset = (timer.time - base) as u32;
                StoredEvent::<M>::write_timer(space, offset, timer.actor, timer.token);
                few[count] = space.cast();
                count += 1;
            });
        }
        let order = &mut few[..count];
        sort(order);
        let before = (*engine).counts();
        run_order(shard, &(*engine).populations, order);
        if let Some(spent) = spent {
            (*shard).queues.pool().put(spent);
        }
        Some(close(at, cache, count as u64, before))
    }
}

/// Sorts a few events; events of one receiver become adjacent. The sort is stable.
///
/// # Safety
/// The events are valid and have not been moved out.
#[inline(always)]
unsafe fn sort<M>(events: &mut [*mut StoredEvent<M>]) {
    for i in 1..events.len() {
        let mut j = i;
        // SAFETY: the events are stored events that have not been moved out.
        while j > 0 && unsafe { !StoredEvent::is_before(events[j - 1], events[j]) } {
            events.swap(j - 1, j);
            j -= 1;
        }
    }
}

/// Runs a window of one shard like [`run_few`], but with many events.
///
/// # Safety
/// As for [`run_sparse`].
#[inline(never)]
unsafe fn run_many<M: Message, P: Pause>(
    at: ShardPointers<M>,
    cache: &mut ActorCache<M>,
    pause: &P,
) -> WindowResult {
    let ShardPointers { engine, shard, .. } = at;
    // SAFETY: the thread has borrowed the shard with its engine. Each reference ends with its expression, or before
    // actors run.
    unsafe {
        (*engine).counted = false;
        (*engine).gather_window((*shard).window.number);
        (*engine).run_gathered(pause);
        *cache = ActorCache::new();
        (*shard).window.scattered = false;
        (*shard).notable = false;
        (*shard).sweep(false);
        WindowResult {
            events: (*engine).order.events().len() as u64,
            busy: std::mem::take(&mut (*engine).busy),
            concerns_all: (*shard).concerns_all(),
        }
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
